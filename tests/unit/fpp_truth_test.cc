// The estimate of the false-positive rate is the truth: what is measured with ids that were never inserted
// lies in its interval, whatever the load does, at targets down to 1e-6.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 3'600'000;

// Ids per horizon, as a share of the most that comes, at a time in horizons.
struct Load {
  std::string name;
  double (*rate)(double);
};
const Load kLoads[] = {
    {"steady", [](double) { return 1.0; }},
    {"rising", [](double t) { return 0.02 * std::pow(50, std::min(t / 2.2, 1.0)); }},
    {"falling", [](double t) { return std::pow(50, -std::min(t / 2.2, 1.0)); }},
    {"bursting", [](double t) { return std::fmod(t, 0.4) < 0.1 ? 2.0 : 0.7; }},
};

struct Target {
  double fpp;
  double ids;     // in a horizon
  double probes;  // all together
};

class FppTruth : public testing::TestWithParam<std::tuple<Engine, Target>> {};

// Ids whose hash is a bijection of a number: as good as seeded, and cheap enough for 10^8 of them.
IdHash MixedId(uint64_t number) {
  const auto mix = [](uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  const uint64_t a = mix(number);
  return {a, mix(a ^ 0x1234567)};
}

double Hits(const Filter& filter, double probes, uint64_t* next) {
  std::vector<IdHash> ids(8000);
  std::vector<Verdict> verdicts(ids.size());
  int64_t hits = 0;
  for (double done = 0; done < probes; done += static_cast<double>(ids.size())) {
    for (IdHash& id : ids) id = MixedId((*next)++);
    filter.Contains(ids, absl::MakeSpan(verdicts));
    hits += std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate);
  }
  return static_cast<double>(hits);
}

TEST_P(FppTruth, IsInTheIntervalOfTheEstimate) {
  const auto [engine, target] = GetParam();
  const uint64_t seed = TestSeed();
  constexpr int kMoments = 10;
  // The published layout takes ten times as long for each.
  const double all_probes = engine == Engine::kPublished ? target.probes / 4 : target.probes;
  double expected_in_all = 0;
  for (const Load& load : kLoads) {
    MemoryBudget memory(static_cast<int64_t>(target.ids * 16) + 65536);
    const auto filter = NewFilter({.horizon = absl::Milliseconds(kHorizonMs),
                                   .target_fpp = target.fpp,
                                   .memory = &memory,
                                   .engine = engine});
    ASSERT_TRUE(filter.ok()) << filter.status();
    uint64_t next = (seed & 0x3fffffff) << 32;
    uint64_t next_stranger = next | uint64_t{1} << 63;
    double due = 0;
    double hits = 0;
    double expected = 0;
    double variance = 0;
    std::string moments;
    constexpr int kSteps = 2400;  // to 2.4 horizons
    std::vector<TimedId> batch;
    for (int step = 1; step <= kSteps; ++step) {
      due += load.rate(step / 1000.0) * target.ids / 1000;
      for (batch.clear(); due >= 1; --due) {
        batch.push_back({MixedId(next++), step * kHorizonMs / 1000});
      }
      (*filter)->Insert(batch);
      // From when the first columns have expired; the moments meet intervals at all their ages.
      if (step < 1200 || step % (1200 / kMoments) != 7) continue;
      const double probes = std::round(all_probes / std::size(kLoads) / kMoments / 8000) * 8000;
      const FilterStatus status = (*filter)->Status();
      const double hits_now = Hits(**filter, probes, &next_stranger);
      hits += hits_now;
      expected += status.fpp_estimated * probes;
      variance += std::pow(status.fpp_estimated_deviation * probes, 2) + status.fpp_estimated * probes;
      absl::StrAppend(&moments, "\n  at ", step / 1000.0, " horizons: measured ", hits_now / probes,
                      ", estimated ", status.fpp_estimated, " +- ", status.fpp_estimated_deviation);
    }
    // Of a Poisson count and a nearly normal estimate: left less than once in ten million times.
    EXPECT_NEAR(hits, expected, 5.4 * std::sqrt(variance) + 9)
        << load.name << ", LETHE_SEED=" << seed << ", target " << target.fpp << moments;
    expected_in_all += expected;
  }
  EXPECT_GT(expected_in_all, 10) << "nothing was learnt";
}

INSTANTIATE_TEST_SUITE_P(Engines, FppTruth,
                         testing::Combine(testing::Values(Engine::kSliced, Engine::kPublished),
                                          testing::Values(Target{1e-3, 30'000, 8e6},
                                                          Target{1e-4, 30'000, 1.5e7},
                                                          Target{1e-6, 20'000, 1.2e8})),
                         [](const auto& given) {
                           return absl::StrCat(
                               EngineName(std::get<0>(given.param)), "_at_1e",
                               static_cast<int>(-std::log10(std::get<1>(given.param).fpp) + 0.5));
                         });

}  // namespace
}  // namespace lethe
