#include "src/pipeline/report/shared_id_watch.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "lethe/event.h"

namespace lethe {
namespace {

constexpr int64_t kEnough = SharedIdWatch::kEnough;

IdHash Id(uint64_t number) {
  return HashId({reinterpret_cast<const char*>(&number), sizeof number}, HashKey{7, 7});
}

TEST(SharedIdWatchTest, AConstantIdIsFoundAfterAHundredEventsThatDiffer) {
  SharedIdWatch watch;
  for (int64_t i = 0; i < kEnough; ++i) EXPECT_FALSE(watch.Add(Id(1), static_cast<uint64_t>(i), 10 * i));
  const auto found = watch.Add(Id(1), kEnough, 10 * kEnough);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first_offset, 10 * kEnough - 10);
  EXPECT_EQ(found->second_offset, 10 * kEnough);
}

TEST(SharedIdWatchTest, ARetryLoopOfEqualCopiesIsNoSharedId) {
  SharedIdWatch watch;
  for (int64_t i = 0; i < 1'000'000; ++i) EXPECT_FALSE(watch.Add(Id(1), 5, i));
}

TEST(SharedIdWatchTest, CopiesOfWhichFewDifferAreNoSharedId) {
  SharedIdWatch watch;
  for (int64_t i = 0; i < 100'000; ++i) {
    EXPECT_FALSE(watch.Add(Id(1), i % 10 == 0 ? static_cast<uint64_t>(i) : 5, i));
  }
}

TEST(SharedIdWatchTest, ItIsFoundAmongManyOtherDuplicates) {
  SharedIdWatch watch;
  int64_t offset = 0;
  int found = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    found += watch.Add(Id(0), i, offset++) ? 1 : 0;
    // Forty ids for each of its own: two or three in its set, so it has more than a quarter of that.
    for (uint64_t other = 1; other <= 40; ++other) watch.Add(Id(1000 + i * 40 + other), 1, offset++);
  }
  EXPECT_GT(found, 50);
}

TEST(SharedIdWatchTest, DuplicatesThatAreEachOfAnotherIdAreNone) {
  SharedIdWatch watch;
  for (uint64_t i = 0; i < 200'000; ++i) EXPECT_FALSE(watch.Add(Id(i), i, static_cast<int64_t>(i)));
}

TEST(SharedIdWatchTest, RecordsThatAreJudgedAgainCountOnce) {
  SharedIdWatch watch;
  for (int round = 0; round < 1000; ++round) {
    for (int64_t i = 0; i < kEnough; ++i) EXPECT_FALSE(watch.Add(Id(1), static_cast<uint64_t>(i), i));
  }
}

// An abort has the last records judged again, and what passes by policy must pass again.
TEST(SharedIdWatchTest, EventsOfASharedIdThatAreJudgedAgainAreFoundAgain) {
  SharedIdWatch watch;
  for (int64_t i = 0; i < 2 * kEnough; ++i) watch.Add(Id(1), static_cast<uint64_t>(i), i);
  for (int64_t i = kEnough; i < 2 * kEnough; ++i) {
    EXPECT_TRUE(watch.Add(Id(1), static_cast<uint64_t>(i), i)) << i;
  }
}

TEST(SharedIdWatchTest, ACopyOfTheLastEventOfASharedIdIsStillACopy) {
  SharedIdWatch watch;
  for (int64_t i = 0; i <= kEnough; ++i) watch.Add(Id(1), static_cast<uint64_t>(i), i);
  EXPECT_FALSE(watch.Add(Id(1), kEnough, kEnough + 1));
  EXPECT_TRUE(watch.Add(Id(1), kEnough + 1, kEnough + 2));
}

}  // namespace
}  // namespace lethe
