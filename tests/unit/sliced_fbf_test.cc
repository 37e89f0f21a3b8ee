#include "src/filter/sliced_fbf.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lethe {
namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// As good as a seeded hash of the number.
IdHash Id(uint64_t number) {
  const uint64_t a = Mix(number);
  return {a, Mix(a ^ 0x1234567)};
}

// Ids that no test inserts.
IdHash Stranger(uint64_t number) { return Id(number | uint64_t{1} << 63); }

uint64_t SeedFromEnvironment() {
  const char* seed = std::getenv("LETHE_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : std::random_device{}();
}

std::unique_ptr<Filter> Make(FilterOptions options) {
  absl::StatusOr<std::unique_ptr<Filter>> filter = NewSlicedFbf(options);
  EXPECT_TRUE(filter.ok()) << filter.status();
  return *std::move(filter);
}

bool Has(const Filter& filter, IdHash id) {
  Verdict verdict;
  filter.Contains({&id, 1}, {&verdict, 1});
  return verdict == Verdict::kDuplicate;
}

// Of so many strangers, those that the filter takes for duplicates.
int Positives(const Filter& filter, int probes, uint64_t salt) {
  std::vector<IdHash> ids(1000);
  std::vector<Verdict> verdicts(ids.size());
  int positives = 0;
  for (int done = 0; done < probes; done += 1000) {
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = Stranger(Mix(salt) + static_cast<uint64_t>(done) + i);
    filter.Contains(ids, absl::MakeSpan(verdicts));
    positives += static_cast<int>(std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate));
  }
  return positives;
}

// A filter beside the exact memory of what it must still know.
class Checked {
 public:
  explicit Checked(const FilterOptions& options)
      : horizon_ms_(absl::ToInt64Milliseconds(options.horizon)), filter_(Make(options)) {}

  void Insert(uint64_t number, int64_t time) {
    now_ = std::max(now_, time);
    const TimedId id = {Id(number), time};
    Verdict verdict;
    filter_->TestAndInsert({&id, 1}, {&verdict, 1});
    if (verdict == Verdict::kUnique) inserted_.push_back({number, now_});
  }

  void AdvanceTo(int64_t time) {
    now_ = std::max(now_, time);
    filter_->AdvanceTo(time);
  }

  // Ids within the horizon that the filter has lost.
  int Lost() {
    while (!inserted_.empty() && inserted_.front().time + horizon_ms_ < now_) inserted_.pop_front();
    int lost = 0;
    for (const Known& known : inserted_) lost += !Has(*filter_, Id(known.number));
    return lost;
  }

  Filter& filter() { return *filter_; }
  int64_t now() const { return now_; }

 private:
  struct Known {
    uint64_t number;
    int64_t time;
  };
  const int64_t horizon_ms_;
  std::unique_ptr<Filter> filter_;
  std::deque<Known> inserted_;
  int64_t now_ = kNoStreamTime;
};

TEST(SlicedFbf, SaysWhatIsWrongWithOptions) {
  MemoryBudget memory(1 << 20);
  EXPECT_EQ(NewSlicedFbf({.target_fpp = 1e-13, .memory = &memory}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NewSlicedFbf({.target_fpp = std::nan(""), .memory = &memory}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NewSlicedFbf({.horizon = absl::ZeroDuration(), .memory = &memory}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(NewSlicedFbf({.horizon = absl::InfiniteDuration(), .memory = &memory}).status().code(),
            absl::StatusCode::kInvalidArgument);
  MemoryBudget none(1000);
  EXPECT_EQ(NewSlicedFbf({.memory = &none}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(none.used_bytes(), 0);
}

TEST(SlicedFbf, StartsSmallAndGivesItsMemoryBack) {
  MemoryBudget memory(int64_t{1} << 30);
  {
    std::unique_ptr<Filter> filter = Make({.memory = &memory});
    EXPECT_LE(memory.used_bytes(), 32 << 10);
    EXPECT_EQ(filter->Status().memory_bytes, memory.used_bytes());
    EXPECT_EQ(filter->Status().fpp_estimated, 0);
    EXPECT_FALSE(Has(*filter, Id(1)));
  }
  EXPECT_EQ(memory.used_bytes(), 0);
}

TEST(SlicedFbf, RemembersBeforeTimeHasBegun) {
  MemoryBudget memory(1 << 30);
  Checked checked({.horizon = absl::Seconds(10), .memory = &memory});
  for (uint64_t i = 0; i < 5000; ++i) {
    const TimedId id = {Id(i), kNoStreamTime};
    checked.filter().Insert({&id, 1});
  }
  checked.AdvanceTo(1'000'000'000);
  checked.AdvanceTo(1'000'010'000);  // as old as the horizon
  for (uint64_t i = 0; i < 5000; ++i) EXPECT_TRUE(Has(checked.filter(), Id(i)));
  for (uint64_t i = 5000; i < 5050; ++i) checked.Insert(i, 1'000'010'000);
  checked.AdvanceTo(1'000'030'000);
  int known = 0;
  for (uint64_t i = 0; i < 5000; ++i) known += Has(checked.filter(), Id(i));
  EXPECT_LT(known, 200) << "what is far beyond the horizon is still there";
}

TEST(SlicedFbf, BatchesAndSinglesGiveTheSameVerdicts) {
  MemoryBudget memory(1 << 30);
  std::unique_ptr<Filter> batched = Make({.horizon = absl::Seconds(1), .memory = &memory});
  std::unique_ptr<Filter> single = Make({.horizon = absl::Seconds(1), .memory = &memory});
  std::mt19937_64 random(7);
  std::vector<TimedId> ids;
  for (int64_t i = 0; i < 60000; ++i) ids.push_back({Id(random() % 50000), i / 20});
  std::vector<Verdict> verdicts(ids.size());
  for (size_t begin = 0; begin < ids.size(); begin += 777) {
    const size_t count = std::min<size_t>(777, ids.size() - begin);
    batched->TestAndInsert({&ids[begin], count}, {&verdicts[begin], count});
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    Verdict verdict;
    single->TestAndInsert({&ids[i], 1}, {&verdict, 1});
    ASSERT_EQ(verdict, verdicts[i]) << "id " << i;
  }
}

// Random loads, bursts, gaps and repetitions: no id is lost within the horizon, whatever passes run.
TEST(SlicedFbf, LosesNothingWithinTheHorizon) {
  const uint64_t seed = SeedFromEnvironment();
  SCOPED_TRACE("LETHE_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  int64_t unfolds = 0;
  int64_t folds = 0;
  for (int round = 0; round < 60; ++round) {
    MemoryBudget memory(int64_t{1} << 32);
    const double target = std::pow(10.0, -1.0 - static_cast<double>(random() % 9));
    const int64_t horizon = int64_t{1} << (4 + random() % 20);
    Checked checked({.horizon = absl::Milliseconds(horizon), .target_fpp = target, .memory = &memory});
    int64_t time = static_cast<int64_t>(random() % 2000) - 1000;
    uint64_t next = 1;
    while (next < 12000) {
      // A phase: so many ids at such a distance.
      const int64_t count = int64_t{1} << (random() % 13);
      const double step = static_cast<double>(horizon) * std::pow(10.0, -static_cast<double>(random() % 6));
      const double repeated = random() % 4 == 0 ? 0.5 : 0.02;
      double exact_time = static_cast<double>(time);
      for (int64_t i = 0; i < count; ++i) {
        exact_time += step * static_cast<double>(random() % 2048) / 1024 * (random() % 500 == 0 ? 40 : 0.2);
        time = static_cast<int64_t>(exact_time);
        const bool again = static_cast<double>(random() % 1000) < 1000 * repeated;
        checked.Insert(again ? next - random() % std::min<uint64_t>(next, 1000) : next++, time);
        if (random() % 4096 == 0) {
          ASSERT_EQ(checked.Lost(), 0) << "round " << round;
        }
      }
      if (random() % 8 == 0) {
        time += static_cast<int64_t>(random() % static_cast<uint64_t>(2 * horizon));
        checked.AdvanceTo(time);
      }
      ASSERT_EQ(checked.Lost(), 0) << "round " << round;
    }
    const FilterStatus status = checked.filter().Status();
    EXPECT_EQ(status.limit_hits, 0);
    EXPECT_EQ(status.memory_bytes, memory.used_bytes());
    for (const AdaptationStep& step : status.steps) {
      unfolds += step.kind == AdaptationStep::Kind::kUnfold;
      folds += step.kind == AdaptationStep::Kind::kFold;
    }
  }
  EXPECT_GT(unfolds, 20);
  EXPECT_GT(folds, 5);
}

struct Load {
  const char* name;
  // Ids per horizon at a time in horizons.
  std::function<double(double)> rate;
};

std::vector<Load> Loads() {
  return {
      {"steady", [](double) { return 60000.0; }},
      {"rising a hundredfold at once", [](double t) { return t < 2.3 ? 3000.0 : 300000.0; }},
      {"rising a hundredfold within a horizon",
       [](double t) { return 2000 * std::pow(100.0, std::clamp(t - 2, 0.0, 1.0)); }},
      {"falling", [](double t) { return t < 2.3 ? 200000.0 : 2000.0; }},
      {"bursts", [](double t) { return std::fmod(t, 0.7) < 0.03 ? 600000.0 : 20000.0; }},
      {"day and night", [](double t) { return 50000 * (1 + 0.95 * std::sin(t * 2)); }},
  };
}

// Of a count with this mean, the value that is passed less than once in ten million times.
double RarelyAbove(double mean) { return mean + 5.2 * std::sqrt(mean) + 9; }

class UnderLoad : public testing::TestWithParam<double> {};

// The rate measured in the worst moments keeps the target, whatever the load does.
TEST_P(UnderLoad, KeepsTheTarget) {
  const double target = GetParam();
  constexpr int64_t kHorizon = 3'600'000;
  constexpr int kStepsPerHorizon = 1000;
  constexpr int kProbes = 20'000;
  for (const Load& load : Loads()) {
    SCOPED_TRACE(load.name);
    MemoryBudget memory(int64_t{1} << 32);
    std::unique_ptr<Filter> filter =
        Make({.horizon = absl::Milliseconds(kHorizon), .target_fpp = target, .memory = &memory});
    uint64_t next = 1;
    double due = 0;
    double worst = 0;
    double positives = 0;
    double probes = 0;
    std::vector<TimedId> batch;
    std::vector<Verdict> verdicts;
    for (int step = 0; step < 6 * kStepsPerHorizon; ++step) {
      const int64_t time = step * kHorizon / kStepsPerHorizon;
      batch.clear();
      due += load.rate(static_cast<double>(step) / kStepsPerHorizon) / kStepsPerHorizon;
      for (; due >= 1; --due) batch.push_back({Id(next++), time});
      verdicts.resize(batch.size());
      filter->TestAndInsert(batch, absl::MakeSpan(verdicts));
      if (step % 10 != 0) continue;
      const FilterStatus status = filter->Status();
      EXPECT_LE(status.fpp_modelled, target);
      EXPECT_LE(status.fpp_estimated, target);
      EXPECT_LE(status.fpp_at_interval_end, target);
      // Probe where the model sees the worst of the last horizon or two.
      worst = std::max(worst * 0.999, status.fpp_modelled);
      if (status.fpp_modelled < 0.9 * worst) continue;
      positives += Positives(*filter, kProbes, static_cast<uint64_t>(step));
      probes += kProbes;
    }
    EXPECT_GT(probes, 5 * kProbes);
    EXPECT_LE(positives, RarelyAbove(target * probes)) << "of " << probes << " probes";
    EXPECT_EQ(filter->Status().limit_hits, 0);
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, UnderLoad, testing::Values(1e-2, 1e-3, 1e-4));

}  // namespace
}  // namespace lethe
