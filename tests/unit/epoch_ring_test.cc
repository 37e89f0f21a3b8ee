#include "src/filter/epoch_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

// Whatever comes when: while nothing is dropped early, an id's tag is live for the horizon and not longer
// than a slice more (in whole slices); a tag is given again only after it died before the epoch that
// precedes; the counts and the window agree with the ids.
TEST(EpochRingTest, AnIdLivesForTheHorizonAndASliceAtMost) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const auto horizon_ms = static_cast<int64_t>(1 + random() % (round % 2 == 0 ? 50 : 5000));
    const int slices = static_cast<int>(1 + random() % EpochRing::kMostSlices);
    EpochRing ring(absl::Milliseconds(horizon_ms), slices);
    const int64_t slice_ms = absl::ToInt64Milliseconds(ring.slice());
    ASSERT_GE(slice_ms * slices, horizon_ms);
    struct Id {
      int64_t time;
      int tag;
    };
    std::deque<Id> ids;
    int64_t now = static_cast<int64_t>(random() % 100'000) - 50'000;
    ring.AdvanceTo(kNoStreamTime);
    for (int step = 0; step < 400; ++step) {
      now += static_cast<int64_t>(random() % (random() % 30 == 0 ? 3 * static_cast<uint64_t>(horizon_ms)
                                                                 : static_cast<uint64_t>(slice_ms) + 1));
      const uint64_t live_before = ring.live();
      if (ring.AdvanceTo(now)) {
        ring.Begin();
        ASSERT_EQ(live_before >> ring.current() & 1, 0u);
      }
      ASSERT_NE(ring.live() >> ring.current() & 1, 0u);
      ASSERT_LE(ring.live_count(), slices + 1);
      ids.push_back({now, ring.current()});
      ring.Count(ring.current(), 1);
      while (!ids.empty() && (ring.live() >> ids.front().tag & 1) == 0) {
        ASSERT_GT(now - ids.front().time, horizon_ms);
        ids.pop_front();
      }
      ASSERT_EQ(ring.ids(), static_cast<int64_t>(ids.size()));
      for (const Id& id : ids) ASSERT_NE(ring.live() >> id.tag & 1, 0u);
      // Refreshes come with time only when an id comes; what is then past horizon and slice is gone.
      ASSERT_LT(now - ids.front().time, (horizon_ms + slice_ms - 1) / slice_ms * slice_ms + slice_ms);
      ASSERT_GE(ring.Window(), absl::Milliseconds(now - ids.front().time));
    }
  }
}

TEST(EpochRingTest, AnEpochThatEndsEarlyLivesAsLong) {
  EpochRing ring(absl::Milliseconds(100), 10);
  ring.Count(ring.current(), 3);  // before there is a time
  ring.Begin();
  ring.AdvanceTo(1000);
  ring.Count(ring.current(), 1);
  ring.Begin();  // in the middle of the slice; an id may come in the same millisecond
  const int second = ring.current();
  ring.Count(second, 1);
  for (int64_t now = 1020; now <= 1100; now += 20) {
    ASSERT_TRUE(ring.AdvanceTo(now));
    ring.Begin();
    EXPECT_EQ(ring.ids(), 5) << now;
  }
  ring.AdvanceTo(1101);
  EXPECT_EQ(ring.Window(), absl::Milliseconds(101));
  ASSERT_TRUE(ring.AdvanceTo(1110));
  ring.Begin();
  EXPECT_EQ(ring.ids(), 0);
  EXPECT_EQ(ring.Window(), absl::Milliseconds(100));
}

TEST(EpochRingTest, TheOldestCanBeDroppedButNotTheCurrentOne) {
  EpochRing ring(absl::Milliseconds(100), 10);
  EXPECT_FALSE(ring.DropOldest());
  ring.AdvanceTo(0);
  ring.Count(ring.current(), 5);
  ring.AdvanceTo(10);
  ring.Begin();
  ring.Count(ring.current(), 7);
  ring.AdvanceTo(15);
  EXPECT_EQ(ring.Window(), absl::Milliseconds(15));
  EXPECT_TRUE(ring.DropOldest());
  EXPECT_EQ(ring.Window(), absl::Milliseconds(5));
  EXPECT_EQ(ring.ids(), 7);
  EXPECT_FALSE(ring.DropOldest());
}

TEST(EpochRingTest, NeverHasMoreLiveEpochsThanTags) {
  EpochRing ring(absl::Hours(1), 13);
  ring.AdvanceTo(0);
  std::set<int> tags;
  for (int i = 0; i < 100; ++i) {
    ring.Count(ring.current(), 1);
    tags.insert(ring.current());
    EXPECT_EQ(ring.ids(), std::min(i + 1, 14));
    ring.Begin();
  }
  EXPECT_EQ(*tags.begin(), 1);
  EXPECT_EQ(*tags.rbegin(), 15);
}

}  // namespace
}  // namespace lethe
