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
  EXPECT_FALSE(watch.found());
  EXPECT_TRUE(watch.Add(Id(1), kEnough, 10 * kEnough));
  ASSERT_TRUE(watch.found());
  EXPECT_EQ(watch.found()->first_offset, 10 * kEnough - 10);
  EXPECT_EQ(watch.found()->second_offset, 10 * kEnough);
}

TEST(SharedIdWatchTest, ARetryLoopOfEqualCopiesIsNoSharedId) {
  SharedIdWatch watch;
  for (int64_t i = 0; i < 1'000'000; ++i) EXPECT_FALSE(watch.Add(Id(1), 5, i));
  EXPECT_FALSE(watch.found());
}

TEST(SharedIdWatchTest, ItIsFoundAmongManyOtherDuplicates) {
  SharedIdWatch watch;
  int64_t offset = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    watch.Add(Id(0), i, offset++);
    // Fifty ids for each of its own, so it has more than a quarter of its set.
    for (uint64_t other = 1; other <= 40; ++other) watch.Add(Id(1000 + i * 40 + other), 1, offset++);
  }
  EXPECT_TRUE(watch.found());
}

TEST(SharedIdWatchTest, DuplicatesThatAreEachOfAnotherIdAreNone) {
  SharedIdWatch watch;
  for (uint64_t i = 0; i < 200'000; ++i) EXPECT_FALSE(watch.Add(Id(i), i, static_cast<int64_t>(i)));
  EXPECT_FALSE(watch.found());
}

TEST(SharedIdWatchTest, RecordsThatAreJudgedAgainCountOnce) {
  SharedIdWatch watch;
  for (int round = 0; round < 1000; ++round) {
    for (int64_t i = 0; i < kEnough; ++i) watch.Add(Id(1), static_cast<uint64_t>(i), i);
  }
  EXPECT_FALSE(watch.found());
}

TEST(SharedIdWatchTest, ACopyOfTheLastEventOfASharedIdIsStillACopy) {
  SharedIdWatch watch;
  for (int64_t i = 0; i <= kEnough; ++i) watch.Add(Id(1), static_cast<uint64_t>(i), i);
  EXPECT_FALSE(watch.Add(Id(1), kEnough, kEnough + 1));
  EXPECT_TRUE(watch.Add(Id(1), kEnough + 1, kEnough + 2));
}

}  // namespace
}  // namespace lethe
