// The estimate of the false-positive rate is the truth: what is counted with ids that were never inserted
// lies in its interval, whatever the load does, while the filter is as full as its target lets it be.
#include "tests/support/fpp_truth.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/published/published_fbf.h"
#include "src/published/published_model.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 3'600'000;
constexpr int kStepsPerHorizon = 1000;
constexpr int kSteps = 2400;
// Looks begin when a whole horizon has passed. They meet intervals at all their ages.
constexpr int kFirstLook = kStepsPerHorizon;
constexpr int kStepsPerLook = 7;
constexpr size_t kMoments = 12;
constexpr size_t kFewestMoments = 4;

// How much comes at a time in horizons.
struct Load {
  const char* name;
  double (*rate)(double);
};
const Load kLoads[] = {
    {"steady", [](double) { return 1.0; }},
    {"rising", [](double t) { return 0.02 * std::pow(50, std::min(t / 2.2, 1.0)); }},
    {"falling", [](double t) { return std::pow(50, -std::min(t / 2.2, 1.0)); }},
    {"bursting", [](double t) { return std::fmod(t, 0.4) < 0.1 ? 2.0 : 0.7; }},
};

struct Case {
  double target;
  double ids;   // the most that come in a horizon
  double hits;  // false positives to be expected of a load's probes
};

// The most that comes of a load in a horizon, in its own unit.
double Peak(const Load& load) {
  double in_horizon = 0;
  double most = 0;
  for (int step = 1; step <= kSteps; ++step) {
    in_horizon += load.rate(step / double{kStepsPerHorizon}) / kStepsPerHorizon;
    if (step > kStepsPerHorizon)
      in_horizon -= load.rate(step / double{kStepsPerHorizon} - 1) / kStepsPerHorizon;
    most = std::max(most, in_horizon);
  }
  return most;
}

// The ids of each step, from the first on.
std::vector<double> IdsBySteps(const Case& given, const Load& load) {
  const double of_each = given.ids / Peak(load) / kStepsPerHorizon;
  std::vector<double> ids;
  for (int step = 1; step <= kSteps; ++step) {
    ids.push_back(of_each * load.rate(step / double{kStepsPerHorizon}));
  }
  return ids;
}

constexpr int kPast = 14;
constexpr int kIntervalsPerHorizon = kPast + 1;

// The bits of a generation with which the published filter's rate, by its model, comes up to four fifths of
// the target in the worst moment of this load that is looked at.
int64_t PublishedBits(const Case& given, const Load& load, int hashes) {
  std::vector<double> ids(kSteps * kIntervalsPerHorizon / kStepsPerHorizon + 1, 0.0);
  int step = 0;
  for (const double in_step : IdsBySteps(given, load)) {
    ids[static_cast<size_t>(++step * kIntervalsPerHorizon / kStepsPerHorizon)] += in_step;
  }
  const auto worst = [&](double bits) {
    double fpp = 0;
    for (size_t now = kIntervalsPerHorizon; now < ids.size(); ++now) {
      std::vector<double> newest_first(kPast + 2, 0.0);
      for (size_t age = 0; age < newest_first.size() && age <= now; ++age) newest_first[age] = ids[now - age];
      fpp = std::max(fpp, FppWithSharedIntervals(newest_first, bits, hashes));
    }
    return fpp;
  };
  double low = given.ids / 100;
  double high = given.ids * 100;
  for (int i = 0; i < 30; ++i) {
    const double middle = std::sqrt(low * high);
    (worst(middle) > 0.8 * given.target ? low : high) = middle;
  }
  return static_cast<int64_t>(high);
}

std::unique_ptr<Filter> Make(const Case& given, const Load& load, MemoryBudget* memory) {
  const absl::Duration horizon = absl::Milliseconds(kHorizonMs);
  PublishedFbfOptions sized =
      PublishedShape({.horizon = horizon, .target_fpp = given.target, .memory = memory});
  EXPECT_EQ(sized.past_generations, kPast);
  EXPECT_EQ(sized.refresh_period * kIntervalsPerHorizon, horizon);
  sized.bits_per_generation = PublishedBits(given, load, sized.hashes);
  auto filter = PublishedFbf::Create(sized);
  EXPECT_OK(filter);
  return *std::move(filter);
}

// Gives the filter the load, always the same ids, and calls look(step, filter) after steps.
template <typename Look>
void UnderLoad(const Case& given, const Load& load, uint64_t first_id, const Look& look) {
  MemoryBudget memory(int64_t{1} << 30);
  const std::unique_ptr<Filter> filter = Make(given, load, &memory);
  uint64_t next = first_id;
  double due = 0;
  std::vector<TimedId> batch;
  int step = 0;
  for (const double in_step : IdsBySteps(given, load)) {
    ++step;
    due += in_step;
    for (batch.clear(); due >= 1; --due) {
      batch.push_back({MixedId(next++), step * kHorizonMs / kStepsPerHorizon});
    }
    filter->Insert(batch);
    look(step, *filter);
  }
}

struct Moment {
  int step;
  double estimate;
};

// The moments in which the filter is near its target, in time's order. It is never far above it.
std::vector<Moment> MomentsNearTheTarget(const Case& given, const Load& load, uint64_t first_id) {
  std::vector<Moment> near;
  UnderLoad(given, load, first_id, [&](int step, const Filter& filter) {
    if (step < kFirstLook || step % kStepsPerLook != 0) return;
    const FilterStatus status = filter.Status();
    EXPECT_LE(status.fpp.estimated, 2 * given.target) << "at step " << step;
    if (status.fpp.estimated < given.target / 3) return;
    near.push_back({step, status.fpp.estimated});
  });
  return near;
}

class FppTruth : public testing::TestWithParam<std::tuple<Case, Load>> {};

TEST_P(FppTruth, IsInTheIntervalOfTheEstimate) {
  const auto& [given, load] = GetParam();
  const uint64_t seed = TestSeed();
  const uint64_t first_id = (seed & 0x3fffffff) << 32;
  const std::vector<Moment> near = MomentsNearTheTarget(given, load, first_id);
  ASSERT_GE(near.size(), kFewestMoments) << "the filter was hardly ever near its target";
  std::vector<Moment> moments;
  double estimates = 0;
  for (size_t i = 0; i < std::min(kMoments, near.size()); ++i) {
    moments.push_back(near[i * near.size() / std::min(kMoments, near.size())]);
    estimates += moments.back().estimate;
  }
  // As many in each moment.
  const auto probes = static_cast<int64_t>(std::ceil(WantedHits(given.hits) / estimates));

  Truth truth;
  uint64_t next_stranger = first_id | uint64_t{1} << 63;
  auto moment = moments.begin();
  UnderLoad(given, load, first_id, [&, &given = given](int step, const Filter& filter) {
    if (moment == moments.end() || step != moment->step) return;
    ++moment;
    const FilterStatus status = filter.Status();
    EXPECT_GE(status.fpp.estimated, given.target / 10);
    EXPECT_LE(status.fpp.estimated, 2 * given.target);
    // All words of small filters are counted, and then there is nothing to be unsure of.
    EXPECT_EQ(status.fpp.deviation, 0);
    truth.Add(CountHits(filter, probes, &next_stranger), static_cast<double>(probes), status.fpp.estimated,
              status.fpp.deviation);
  });
  EXPECT_EQ(moment, moments.end());
  EXPECT_GE(truth.expected, 0.95 * WantedHits(given.hits)) << "too little was learnt";
  EXPECT_LT(truth.deviation, 0.05 * truth.expected);
  ExpectTruth(truth, absl::StrCat("published at ", given.target, ", ", load.name, ", ", moments.size(),
                                  " moments of ", probes, " probes"));
}

INSTANTIATE_TEST_SUITE_P(Published, FppTruth,
                         testing::Combine(testing::Values(Case{1e-3, 30'000, 1000}, Case{1e-4, 30'000, 400},
                                                          Case{1e-5, 20'000, 60}),
                                          testing::ValuesIn(kLoads)),
                         [](const auto& given) {
                           return absl::StrCat(
                               "at_1e", static_cast<int>(-std::log10(std::get<0>(given.param).target) + 0.5),
                               "_", std::get<1>(given.param).name);
                         });

}  // namespace
}  // namespace lethe
