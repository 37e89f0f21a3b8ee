#include "src/reference/sliced/sliced_fbf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/support/fpp_truth.h"
#include "tests/support/seed.h"

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

// An id that was inserted, and when.
struct Known {
  uint64_t number;
  int64_t time;
};

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
  const int64_t horizon_ms_;
  std::unique_ptr<Filter> filter_;
  std::deque<Known> inserted_;
  int64_t now_ = kNoStreamTime;
};

TEST(SlicedFbf, NeedsMemory) {
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
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  int64_t unfolds = 0;
  int64_t folds = 0;
  for (int round = 0; round < 300; ++round) {
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
  EXPECT_GT(unfolds, 100);
  EXPECT_GT(folds, 100);
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
      const auto count = static_cast<int64_t>(due);
      due -= static_cast<double>(count);
      for (int64_t i = 0; i < count; ++i) batch.push_back({Id(next++), time});
      verdicts.resize(batch.size());
      filter->TestAndInsert(batch, absl::MakeSpan(verdicts));
      if (step % 20 != 0) continue;
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

// A steady stream of new ids at `rate` per horizon, from where it stopped last.
class Stream {
 public:
  Stream(Filter* filter, int64_t horizon_ms) : filter_(filter), horizon_ms_(horizon_ms) {}

  void Run(double horizons, double rate) {
    const auto count = static_cast<int64_t>(horizons * rate);
    std::vector<TimedId> batch;
    std::vector<Verdict> verdicts(kBatch);
    const double start = time_;
    for (int64_t i = 0; i < count;) {
      batch.clear();
      for (; i < count && batch.size() < kBatch; ++i) {
        time_ = start + static_cast<double>(i) / rate * static_cast<double>(horizon_ms_);
        batch.push_back({Id(next_ + batch.size()), static_cast<int64_t>(time_)});
      }
      filter_->TestAndInsert(batch, absl::MakeSpan(verdicts).first(batch.size()));
      for (size_t j = 0; j < batch.size(); ++j, ++next_) {
        if (verdicts[j] == Verdict::kUnique) inserted_.push_back({next_, batch[j].stream_time_ms});
      }
    }
  }

  // The share of the ids of the last `horizons` that the filter still has.
  double KnownOfLast(double horizons) const {
    const double since = time_ - horizons * static_cast<double>(horizon_ms_);
    int64_t known = 0;
    int64_t all = 0;
    for (auto i = inserted_.rbegin(); i != inserted_.rend(); ++i, ++all) {
      if (static_cast<double>(i->time) < since) break;
      known += Has(*filter_, Id(i->number));
    }
    return static_cast<double>(known) / static_cast<double>(all);
  }

 private:
  static constexpr size_t kBatch = 200;
  Filter* const filter_;
  const int64_t horizon_ms_;
  double time_ = 0;
  uint64_t next_ = 0;
  std::vector<Known> inserted_;
};

constexpr int64_t kHour = 3'600'000;

// The window that was paid for is there: so many bits for each id of the horizon, all included, and no
// id lost, at the rate of the target.
TEST(SlicedFbf, HoldsAHorizonInTheBitsThatTheModelSays) {
  struct Case {
    double target;
    double bits;
  };
  for (const Case& given : {Case{1e-4, 31}, Case{1e-6, 44}}) {
    SCOPED_TRACE(given.target);
    constexpr double kRate = 1e6;
    MemoryBudget memory(static_cast<int64_t>(kRate * given.bits / 8));
    std::unique_ptr<Filter> filter =
        Make({.horizon = absl::Hours(1), .target_fpp = given.target, .memory = &memory});
    Stream stream(filter.get(), kHour);
    stream.Run(3, kRate);
    const FilterStatus status = filter->Status();
    EXPECT_GE(status.window, absl::Hours(1));
    EXPECT_EQ(stream.KnownOfLast(1), 1);
    EXPECT_LE(status.fpp_at_interval_end, given.target);
    EXPECT_LE(status.fpp_estimated, given.target);
    EXPECT_LE(status.memory_bytes, memory.limit_bytes());
    EXPECT_LE(Positives(*filter, 1'000'000, 5), RarelyAbove(1e6 * given.target));
  }
}

TEST(SlicedFbf, AtTheLimitForgetsEarly) {
  MemoryBudget memory(200'000);
  std::unique_ptr<Filter> filter = Make({.horizon = absl::Hours(1), .target_fpp = 1e-3, .memory = &memory});
  Stream stream(filter.get(), kHour);
  stream.Run(3, 200'000);
  const FilterStatus status = filter->Status();
  EXPECT_LE(memory.used_bytes(), memory.limit_bytes());
  EXPECT_GT(status.limit_hits, 0);
  EXPECT_LT(status.window, absl::Minutes(30));
  EXPECT_LE(status.fpp_modelled, 1e-3);
  EXPECT_LE(status.fpp_estimated, 1e-3);
  // The window is the truth: what it covers is there, what it does not is gone.
  const double window = absl::FDivDuration(status.window, absl::Hours(1));
  EXPECT_EQ(stream.KnownOfLast(window * 0.999), 1);
  EXPECT_LT(stream.KnownOfLast(1), 0.6);
}

TEST(SlicedFbf, AtTheLimitForgetsNothingIfConfigured) {
  MemoryBudget memory(200'000);
  std::unique_ptr<Filter> filter = Make({.horizon = absl::Hours(1),
                                         .target_fpp = 1e-3,
                                         .memory = &memory,
                                         .at_memory_limit = AtMemoryLimit::kExceedFpp});
  Stream stream(filter.get(), kHour);
  stream.Run(3, 130'000);
  const FilterStatus status = filter->Status();
  EXPECT_LE(memory.used_bytes(), memory.limit_bytes());
  EXPECT_GT(status.limit_hits, 0);
  EXPECT_GE(status.window, absl::Hours(1));
  EXPECT_GT(status.fpp_modelled, 1e-2);
  EXPECT_EQ(stream.KnownOfLast(1), 1);
}

// A filter that takes everything for a duplicate gets nothing to insert; it recovers all the same.
TEST(SlicedFbf, RecoversWhenItWasFullOfFalsePositives) {
  for (const bool judge : {true, false}) {
    MemoryBudget memory(200'000);
    std::unique_ptr<Filter> filter = Make({.horizon = absl::Hours(1),
                                           .target_fpp = 1e-3,
                                           .memory = &memory,
                                           .at_memory_limit = AtMemoryLimit::kExceedFpp});
    Stream stream(filter.get(), kHour);
    stream.Run(0.9, 2'000'000);
    EXPECT_GT(Positives(*filter, 1000, 1), 900);
    if (judge) {
      stream.Run(2, 20'000);
    } else {
      for (int64_t i = 0; i < 2000; ++i) filter->AdvanceTo(kHour + i * 3000);
    }
    EXPECT_LT(Positives(*filter, 1000, 1), 20);
  }
}

// Filters that share a limit never pass it together, and what one gives back another can have.
TEST(SlicedFbf, FiltersShareALimit) {
  MemoryBudget memory(1'000'000);
  std::unique_ptr<Filter> first = Make({.horizon = absl::Hours(1), .target_fpp = 1e-3, .memory = &memory});
  std::unique_ptr<Filter> second = Make({.horizon = absl::Hours(1), .target_fpp = 1e-3, .memory = &memory});
  Stream to_first(first.get(), kHour);
  Stream to_second(second.get(), kHour);
  to_first.Run(1.5, 300'000);
  EXPECT_GT(first->Status().memory_bytes, 500'000);
  to_second.Run(1.5, 300'000);
  EXPECT_GT(second->Status().limit_hits, 0);
  EXPECT_LE(memory.used_bytes(), memory.limit_bytes());
  EXPECT_EQ(memory.used_bytes(), first->Status().memory_bytes + second->Status().memory_bytes);
  first.reset();
  to_second.Run(1.5, 300'000);
  EXPECT_EQ(to_second.KnownOfLast(1), 1);
}

// Also to so few ids that time has to take its folds further, and that come too often to be pauses.
TEST(SlicedFbf, MemoryFollowsTheLoadDown) {
  for (const double ids_per_horizon : {30'000, 3'000}) {
    MemoryBudget memory(int64_t{1} << 30);
    std::unique_ptr<Filter> filter = Make({.horizon = absl::Hours(1), .target_fpp = 1e-4, .memory = &memory});
    Stream stream(filter.get(), kHour);
    stream.Run(2, 3e6);
    const int64_t most = memory.used_bytes();
    EXPECT_GT(most, 10 << 20);
    stream.Run(4, ids_per_horizon);
    EXPECT_LE(memory.used_bytes(), most / 32) << ids_per_horizon;
    EXPECT_EQ(stream.KnownOfLast(1), 1);
  }
}

// The smallest filters, where an id may meet the same line twice, and chance has a greater part. All are
// given as much as they hold, at the same times, so that their intervals are of the same age.
struct SmallFilters {
  double target;
  double hits;  // false positives to be expected of all probes; 0: the rate is too low to be counted
  int filters;
  int past = kDefaultPastGenerations;  // at most
};

class Small : public testing::TestWithParam<SmallFilters> {};

TEST_P(Small, FiltersKeepTheTarget) {
  constexpr int kLooks = 8;
  const SmallFilters& given = GetParam();
  // With one or two past generations an interval lasts for the horizon or half of it, ends by age under its
  // cap, and one of the two or three pairs is that of the present interval alone: they are never near their
  // target.
  const bool by_age = given.past <= 2;
  const double fullest = by_age ? 0 : 0.5;
  const int64_t ids_per_look = by_age ? 5 : 31;
  const uint64_t seed = TestSeed();
  SlicedShape shape = SlicedShapeFor(given.target);
  shape.columns = given.past + 2;
  const double bits = SlicedBitsPerId(shape, given.target);
  const auto ids_per_horizon =
      static_cast<int64_t>(static_cast<double>(FewestSlicedLines(shape)) * 512 / bits / 1.07);
  // Looks from when the first horizon has passed.
  const int64_t ids = by_age ? ids_per_horizon * (given.past + 1) / given.past
                             : ids_per_horizon * 5 / 4 + kLooks * ids_per_look;
  std::array<double, kLooks> estimates{};
  double squares = 0;
  Truth truth;
  uint64_t next_stranger = seed | uint64_t{1} << 63;
  for (uint64_t i = 0; i < static_cast<uint64_t>(given.filters); ++i) {
    MemoryBudget memory(SmallestSlicedFbfBytes(given.past));
    const auto filter =
        NewSlicedFbf({.horizon = absl::Hours(1), .target_fpp = given.target, .memory = &memory}, given.past);
    ASSERT_TRUE(filter.ok()) << filter.status();
    for (int64_t j = 1; j <= ids; ++j) {
      const TimedId id = {MixedId((seed >> 16 << 16) + (i << 32) + static_cast<uint64_t>(j)),
                          j * kHour / ids_per_horizon};
      (*filter)->Insert({&id, 1});
      const int64_t look = (j + kLooks * ids_per_look - ids) / ids_per_look - 1;
      if ((ids - j) % ids_per_look != 0 || look < 0) continue;
      const FilterStatus status = (*filter)->Status();
      ASSERT_LT(status.lines, 2 * FewestSlicedLines(shape));
      EXPECT_EQ(status.fpp_estimated_deviation, 0);
      estimates[static_cast<size_t>(look)] += status.fpp_estimated / given.filters;
      squares += status.fpp_estimated * status.fpp_estimated / (kLooks * given.filters);
      const auto probes =
          static_cast<int64_t>(WantedHits(given.hits) / given.target / (kLooks * given.filters));
      truth.Add(CountHits(**filter, probes, &next_stranger), static_cast<double>(probes),
                status.fpp_estimated, 0);
    }
  }
  const double highest = *std::max_element(estimates.begin(), estimates.end());
  std::cout << "highest mean estimate / target " << highest / given.target << ", root mean square "
            << std::sqrt(squares) / given.target << std::endl;
  EXPECT_GT(highest, fullest * given.target) << "the filters were not full";
  EXPECT_LE(highest, given.target);
  if (given.hits > 0) {
    EXPECT_GT(truth.expected, 0.8 * fullest * WantedHits(given.hits));
    ExpectTruth(truth, absl::StrCat("smallest filters at ", given.target));
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, Small,
                         testing::Values(SmallFilters{1e-3, 500, 300}, SmallFilters{1e-6, 120, 400},
                                         SmallFilters{1e-9, 0, 600}, SmallFilters{1e-12, 0, 1000}));
INSTANTIATE_TEST_SUITE_P(Generations, Small,
                         testing::Values(SmallFilters{1e-3, 500, 100, 1}, SmallFilters{1e-3, 500, 100, 2},
                                         SmallFilters{1e-3, 500, 100, 6}, SmallFilters{1e-3, 500, 100, 30},
                                         SmallFilters{1e-3, 500, 100, 61}, SmallFilters{1e-6, 0, 100, 1},
                                         SmallFilters{1e-6, 0, 100, 2}, SmallFilters{1e-6, 0, 100, 6},
                                         SmallFilters{1e-6, 0, 100, 30}, SmallFilters{1e-6, 0, 100, 61}));

}  // namespace
}  // namespace lethe
