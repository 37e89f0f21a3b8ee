// What every engine that keeps Filter's promise must do, whatever its layout.
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "lethe/filter.h"
#include "src/engines/new_filter.h"
#include "src/reference/any_engine.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

std::string NameOf(const testing::TestParamInfo<AnyEngine>& of) { return std::string(EngineName(of.param)); }

class FilterContractTest : public testing::TestWithParam<AnyEngine> {
 protected:
  std::unique_ptr<Filter> Make(int64_t horizon_ms, MemoryBudget* memory) {
    // Stream time is in whole milliseconds, to which a horizon is rounded up.
    const absl::Duration horizon =
        std::max(absl::Milliseconds(1), absl::Milliseconds(horizon_ms) - absl::Microseconds(300));
    auto filter = NewFilter(GetParam(), {.horizon = horizon, .memory = memory});
    EXPECT_OK(filter);
    return *std::move(filter);
  }
  std::unique_ptr<Filter> Make(int64_t horizon_ms) { return Make(horizon_ms, &memory_); }

  MemoryBudget memory_{int64_t{8} << 20};
};

// Steady times, bursts and gaps of all lengths, batches of all sizes, insertions and tests mixed; an id that
// was inserted or judged unique is contained at every stream time up to a horizon later.
TEST_P(FilterContractTest, NoFalseNegativeWithinTheHorizon) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 12; ++round) {
    const int64_t horizon = 1 + below(round % 3 == 0 ? 30 : 100'000);
    auto filter = Make(horizon);
    std::unordered_map<uint64_t, int64_t> inserted;  // by number: when last
    std::deque<std::pair<uint64_t, int64_t>> log;
    int64_t now = below(1'000'000) - 500'000;
    uint64_t next = 0;
    for (int batch = 0; batch < 300; ++batch) {
      if (random() % 25 == 0) now += below(2 * horizon);
      std::vector<TimedId> ids(random() % 150);
      std::vector<uint64_t> numbers;
      for (TimedId& timed : ids) {
        now += below(horizon / 2000 + 2);
        numbers.push_back(next > 0 && random() % 4 == 0
                              ? static_cast<uint64_t>(below(static_cast<int64_t>(next)))
                              : next++);
        timed = {.id = NumberedId(numbers.back(), seed), .stream_time_ms = now};
      }
      const bool insert = random() % 2 == 0;
      std::vector<Verdict> verdicts(ids.size(), Verdict::kUnique);
      if (insert) {
        filter->Insert(ids);
      } else {
        filter->TestAndInsert(ids, absl::MakeSpan(verdicts));
      }
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto found = inserted.find(numbers[i]);
        if (!insert && found != inserted.end() && ids[i].stream_time_ms - found->second <= horizon) {
          ASSERT_EQ(verdicts[i], Verdict::kDuplicate)
              << "horizon " << horizon << ", inserted " << ids[i].stream_time_ms - found->second << " ago";
        }
        if (verdicts[i] == Verdict::kUnique) {
          inserted[numbers[i]] = ids[i].stream_time_ms;
          log.emplace_back(numbers[i], ids[i].stream_time_ms);
        }
      }
      while (!log.empty() && now - log.front().second > horizon) log.pop_front();
      if (batch % 10 != 0) continue;
      filter->AdvanceTo(now);
      EXPECT_GE(filter->Status().window, absl::Milliseconds(log.empty() ? 0 : now - log.front().second));
      for (const auto& [number, time] : log) {
        ASSERT_TRUE(IsContained(*filter, NumberedId(number, seed)))
            << "horizon " << horizon << ", inserted " << now - time << " ago";
      }
    }
    EXPECT_EQ(filter->Status().limit_hits, 0);
  }
}

// Old ids go: an hour of 100 ids a second keeps a filter of ten seconds at not much over 1,000. At the target
// of 1e-6 less than one of the 718,000 ids that are asked for here is a false positive on average; thirteen
// come about less than once in 10^10 runs.
TEST_P(FilterContractTest, ForgetsWhatIsOlder) {
  const uint64_t seed = TestSeed();
  auto filter = Make(10'000);
  int false_positives = 0;
  for (uint64_t i = 0; i < 360'000; ++i) {
    const auto now = static_cast<int64_t>(i) * 10;
    if (TestAndInsertOne(*filter, NumberedId(i, seed), now) == Verdict::kDuplicate) ++false_positives;
  }
  const FilterStatus status = filter->Status();
  EXPECT_GE(status.ids, 1000);
  EXPECT_LE(status.ids, 2000);
  EXPECT_GE(status.window, absl::Seconds(10));
  EXPECT_LE(status.window, absl::Seconds(20));
  EXPECT_LE(status.fpp.estimated, status.fpp.target);
  EXPECT_GT(status.refreshes, 340);
  for (uint64_t i = 0; i < 358'000; ++i) false_positives += IsContained(*filter, NumberedId(i, seed)) ? 1 : 0;
  EXPECT_LE(false_positives, 12);
}

// What is said of times to come is what a filter there says: an id of up to a horizon before is contained,
// and one that the filter there has forgotten is not, as long as that filter need not end an interval for it.
TEST_P(FilterContractTest, AsksForTimesToComeWithoutGoingThere) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  constexpr int64_t kHorizon = 10'000;
  auto filter = Make(kHorizon);
  std::vector<TimedId> log;
  int64_t now = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    now += static_cast<int64_t>(random() % 20);
    log.push_back({.id = NumberedId(i, seed), .stream_time_ms = now});
    InsertOne(*filter, log.back().id, now);
    if (i % 100 != 0) continue;
    const bool newest_before = IsContained(*filter, log.back().id);
    for (const int64_t step : {int64_t{0}, kHorizon / 3, kHorizon, 3 * kHorizon, 100 * kHorizon}) {
      std::vector<TimedId> asked;
      for (const TimedId& timed : log) asked.push_back({.id = timed.id, .stream_time_ms = now + step});
      std::vector<Verdict> verdicts(asked.size());
      filter->ContainsAt(asked, absl::MakeSpan(verdicts));
      for (size_t k = 0; k < log.size(); ++k) {
        const int64_t age = now + step - log[k].stream_time_ms;
        if (age <= kHorizon) {
          ASSERT_EQ(verdicts[k], Verdict::kDuplicate) << age;
        }
        if (step >= 3 * kHorizon) {
          ASSERT_EQ(verdicts[k], Verdict::kUnique) << age;
        }
      }
    }
    ASSERT_EQ(IsContained(*filter, log.back().id), newest_before);
  }
}

TEST_P(FilterContractTest, GapsOfAnyLengthEmptyTheFilterAtOnce) {
  auto filter = Make(1000);
  uint64_t number = 0;
  for (const int64_t now : {INT64_MIN + 1, int64_t{-1'000'000'000'000'000}, int64_t{0}, int64_t{2000},
                            int64_t{1'700'000'000'000}, INT64_MAX - 1, INT64_MAX}) {
    filter->AdvanceTo(now);
    for (int i = 0; i < 3; ++i) InsertOne(*filter, NumberedId(number++, 5), kNoStreamTime);
    EXPECT_EQ(filter->Status().ids, now == INT64_MAX ? 6 : 3) << now;
    for (uint64_t i = number - 3; i < number; ++i) EXPECT_TRUE(IsContained(*filter, NumberedId(i, 5)));
  }
}

TEST_P(FilterContractTest, AnInsertionRenewsAndADuplicateDoesNot) {
  auto filter = Make(10'000);
  const IdHash renewed = NumberedId(1, 6);
  const IdHash tested = NumberedId(2, 6);
  InsertOne(*filter, renewed, 0);
  InsertOne(*filter, tested, 0);
  InsertOne(*filter, renewed, 9000);
  EXPECT_EQ(TestAndInsertOne(*filter, tested, 9000), Verdict::kDuplicate);
  filter->AdvanceTo(10'000);
  EXPECT_TRUE(IsContained(*filter, tested));
  filter->AdvanceTo(19'000);
  EXPECT_TRUE(IsContained(*filter, renewed));
  filter->AdvanceTo(20'000);
  EXPECT_FALSE(IsContained(*filter, tested));
  filter->AdvanceTo(29'000);
  EXPECT_FALSE(IsContained(*filter, renewed));
}

// A single id, and a step of time: nothing else comes that would move the filter on.
TEST_P(FilterContractTest, AStreamOfOneIdIsJudgedByTimeAlone) {
  const uint64_t seed = TestSeed();
  for (const int64_t start : {kNoStreamTime, int64_t{0}, int64_t{1'700'000'000'000}}) {
    for (const int64_t horizon : {1, 1000, 86'400'000}) {
      // Beyond the horizon an engine may remember for some steps of time more.
      for (const int64_t step : {int64_t{0}, horizon / 2, horizon, 20 * horizon, 1000 * horizon}) {
        auto filter = Make(horizon);
        const IdHash id = NumberedId(1, seed);
        ASSERT_EQ(TestAndInsertOne(*filter, id, start), Verdict::kUnique);
        const int64_t now = start == kNoStreamTime ? step : start + step;
        const bool known = step <= horizon || start == kNoStreamTime;
        EXPECT_EQ(TestAndInsertOne(*filter, id, now), known ? Verdict::kDuplicate : Verdict::kUnique)
            << "horizon " << horizon << ", from " << start << " by " << step;
      }
    }
  }
}

TEST_P(FilterContractTest, BatchesAreTheSameAsSingleCalls) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  auto single = Make(500);
  auto batched = Make(500);
  int64_t now = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<TimedId> ids(random() % 200);
    std::vector<IdHash> hashes;
    for (TimedId& timed : ids) {
      now += static_cast<int64_t>(random() % 3);
      timed = {.id = NumberedId(random() % 1000, seed), .stream_time_ms = now};
      hashes.push_back(timed.id);
    }
    std::vector<Verdict> verdicts(ids.size());
    batched->TestAndInsert(ids, absl::MakeSpan(verdicts));
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(TestAndInsertOne(*single, ids[i].id, ids[i].stream_time_ms), verdicts[i]);
    }
    batched->Contains(hashes, absl::MakeSpan(verdicts));
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(IsContained(*single, hashes[i]), verdicts[i] == Verdict::kDuplicate);
    }
  }
}

TEST_P(FilterContractTest, MemoryComesFromTheBudgetAndGoesBack) {
  {
    auto filter = Make(1000);
    for (uint64_t i = 0; i < 100'000; ++i) InsertOne(*filter, NumberedId(i, 7), 0);
    EXPECT_EQ(filter->Status().memory_bytes, memory_.used_bytes());
    EXPECT_GT(memory_.used_bytes(), 0);
    filter->AdvanceTo(1'000'000);
  }
  EXPECT_EQ(memory_.used_bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, FilterContractTest,
                         testing::Values<AnyEngine>(Engine::kCompact, Engine::kExact, Engine::kPublished),
                         NameOf);

// Those of them that grow with their load.
class BudgetedFilterTest : public FilterContractTest {};
class GrowingFilterTest : public FilterContractTest {};

// Ids come far faster than there is memory for: the budget holds, the filter goes on, and what was inserted
// last is there.
TEST_P(BudgetedFilterTest, NeverTakesMoreThanTheBudget) {
  const uint64_t seed = TestSeed();
  for (const int64_t limit :
       {LimitsOf(GetParam()).smallest_filter_bytes, int64_t{100'000}, int64_t{1} << 20}) {
    for (const int64_t ids_a_ms : {10, 1'000'000}) {
      MemoryBudget memory(limit);
      auto filter = Make(1'000'000, &memory);
      for (uint64_t i = 0; i < 300'000; ++i) {
        InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i) / ids_a_ms);
        ASSERT_TRUE(IsContained(*filter, NumberedId(i, seed)));
        ASSERT_LE(memory.used_bytes(), limit);
      }
      const FilterStatus status = filter->Status();
      EXPECT_GT(status.limit_hits, 0);
      EXPECT_LT(status.window, absl::Milliseconds(300'000 / ids_a_ms + 1));
      EXPECT_EQ(status.memory_bytes, memory.used_bytes());
      // At the limit the window shortens by small steps: there are many ids still.
      EXPECT_GT(status.ids, limit / 100) << "limit " << limit;
      for (uint64_t i = 0; i < static_cast<uint64_t>(status.ids); ++i) {
        ASSERT_TRUE(IsContained(*filter, NumberedId(300'000 - 1 - i, seed))) << i << " of " << status.ids;
      }
    }
  }
}

// Memory follows the load, both ways, and is there for others then.
TEST_P(GrowingFilterTest, GivesMemoryBackWhenItsLoadFalls) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(1000, &memory);
  uint64_t number = 0;
  const auto run = [&](int64_t from, int64_t to, int ids_a_ms) {
    for (int64_t now = from; now < to; ++now) {
      for (int i = 0; i < ids_a_ms; ++i) InsertOne(*filter, NumberedId(number++, seed), now);
    }
    return filter->Status();
  };
  const FilterStatus small = run(0, 4000, 20);
  const FilterStatus large = run(4000, 8000, 600);
  const FilterStatus small_again = run(8000, 20'000, 20);
  EXPECT_GT(large.memory_bytes, 3 * small.memory_bytes);
  EXPECT_EQ(large.limit_hits, 0);
  EXPECT_GT(large.memory_bytes, 3 * small_again.memory_bytes);
  EXPECT_LE(small_again.memory_bytes, small.memory_bytes * 3);
}

INSTANTIATE_TEST_SUITE_P(Engines, BudgetedFilterTest,
                         testing::Values<AnyEngine>(Engine::kCompact, Engine::kExact), NameOf);
INSTANTIATE_TEST_SUITE_P(Engines, GrowingFilterTest,
                         testing::Values<AnyEngine>(Engine::kCompact, Engine::kExact), NameOf);

}  // namespace
}  // namespace lethe
