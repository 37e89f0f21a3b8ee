#include "src/filter/exact.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

class ExactTest : public testing::Test {
 protected:
  std::unique_ptr<Exact> Make(absl::Duration horizon) {
    auto filter = Exact::Create({.horizon = horizon, .memory = &memory_});
    EXPECT_TRUE(filter.ok()) << filter.status();
    return *std::move(filter);
  }

  MemoryBudget memory_{int64_t{64} << 20};
};

TEST_F(ExactTest, HasNoFalsePositives) {
  const uint64_t seed = TestSeed();
  auto filter = Make(absl::Hours(1));
  for (uint64_t i = 0; i < 500'000; ++i) {
    ASSERT_EQ(TestAndInsertOne(*filter, NumberedId(i, seed), 0), Verdict::kUnique);
  }
  EXPECT_EQ(MeasuredFpp(*filter, 1'000'000, 500'000, seed), 0);
  const FilterStatus status = filter->Status();
  EXPECT_EQ(status.ids, 500'000);
  EXPECT_LT(status.fpp_estimated, 1e-12);
  EXPECT_LE(status.memory_bytes, 18 * 500'000);
  EXPECT_GE(status.memory_bytes, 12 * 500'000);
}

TEST_F(ExactTest, IsASixtyFirstOfTheHorizonLateAtMost) {
  const uint64_t seed = TestSeed();
  for (int64_t phase = 0; phase < 100; ++phase) {
    auto filter = Make(absl::Milliseconds(6100));
    InsertOne(*filter, NumberedId(1, seed), phase);
    filter->AdvanceTo(phase + 6100);
    EXPECT_TRUE(IsContained(*filter, NumberedId(1, seed)));
    filter->AdvanceTo(6200);
    EXPECT_FALSE(IsContained(*filter, NumberedId(1, seed)));
  }
}

// Beside a list of what came when: under a load that changes by a hundred, with stops, none is forgotten
// within the horizon, and none is known past it and a slice of time. What is forgotten is not kept in memory
// either.
TEST_F(ExactTest, ForgetsAllInTimeAndNothingBefore) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  constexpr int64_t kHorizonMs = 61'000;
  auto filter = Make(absl::Milliseconds(kHorizonMs));
  std::deque<std::pair<uint64_t, int64_t>> known;
  int64_t now = 1'000'000;
  uint64_t next = 0;
  for (int phase = 0; phase < 60; ++phase) {
    const int64_t ids_per_ms = phase % 3 == 0 ? 20 : 0;
    if (phase % 7 == 6) now += static_cast<int64_t>(random() % (2 * kHorizonMs));
    for (int step = 0; step < 3000; ++step, ++now) {
      const int64_t ids = ids_per_ms > 0 ? ids_per_ms : (step % 5 == 0 ? 1 : 0);
      for (int64_t i = 0; i < ids; ++i, ++next) {
        ASSERT_EQ(TestAndInsertOne(*filter, NumberedId(next, seed), now), Verdict::kUnique);
        known.push_back({next, now});
      }
    }
    filter->AdvanceTo(now);
    size_t past = 0;
    for (size_t i = 0; i < known.size(); i += 1 + random() % 64) {
      const int64_t age = now - known[i].second;
      const bool contained = IsContained(*filter, NumberedId(known[i].first, seed));
      if (age <= kHorizonMs) {
        ASSERT_TRUE(contained) << age;
      } else if (age > kHorizonMs + kHorizonMs / 61) {
        ASSERT_FALSE(contained) << age;
        past = i;
      }
    }
    known.erase(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(past));
    const FilterStatus status = filter->Status();
    // At the end of a burst it is 10 MB. After a leap in time tables are swept one by one, with the calls.
    EXPECT_LE(status.memory_bytes, 36 * status.ids + 1'500'000) << phase;
    EXPECT_EQ(status.memory_bytes, memory_.used_bytes());
  }
}

// However seldom calls come: epochs by the hundred, each with a few calls, over tables full of forgotten ids,
// whose stamps come again.
TEST_F(ExactTest, ForgetsAlsoWhereTimeRuns) {
  const uint64_t seed = TestSeed();
  auto filter = Make(absl::Milliseconds(6100));
  for (uint64_t i = 0; i < 300'000; ++i) InsertOne(*filter, NumberedId(i, seed), 0);
  int64_t now = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    now += 100;
    ASSERT_EQ(TestAndInsertOne(*filter, NumberedId(1'000'000 + i, seed), now), Verdict::kUnique);
    if (now <= 6200) continue;
    for (uint64_t old = i; old < 300'000; old += 9973) {
      ASSERT_FALSE(IsContained(*filter, NumberedId(old, seed))) << now;
    }
    ASSERT_FALSE(IsContained(*filter, NumberedId(1'000'000 + i - 62, seed)));
    ASSERT_TRUE(IsContained(*filter, NumberedId(1'000'000 + i - 61, seed)));
  }
  EXPECT_LE(filter->Status().memory_bytes, 100'000);
}

TEST_F(ExactTest, NeedsMemoryForTheFirstIds) {
  MemoryBudget memory(10'000);
  EXPECT_EQ(Exact::Create({.memory = &memory}).status().code(), absl::StatusCode::kResourceExhausted);
}

// Where other filters have used up the limit, an id cannot be kept; nothing else goes wrong.
TEST_F(ExactTest, GoesOnWhenOthersHaveAllTheMemory) {
  auto filter = Make(absl::Hours(1));
  ASSERT_TRUE(memory_.Reserve(memory_.limit_bytes()));
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(filter->Status().limit_hits, 2);
  memory_.Release(memory_.limit_bytes());
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kDuplicate);
}

}  // namespace
}  // namespace lethe
