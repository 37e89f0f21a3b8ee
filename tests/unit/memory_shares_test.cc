// One memory limit for several stages.
#include "src/memory/memory_shares.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

TEST(MemorySharesTest, WhoIsAloneHasAll) {
  MemoryBudget whole(1600);
  MemoryShares shares(&whole);
  MemoryBudget one(shares);
  const MemoryBudget idle(shares);  // holds nothing
  EXPECT_TRUE(one.Reserve(1600));
  EXPECT_FALSE(one.IsOverdrawn());
  EXPECT_FALSE(one.Reserve(1));
  EXPECT_EQ(one.TakeMissingBytes(), 1);
  one.Release(1600);
}

TEST(MemorySharesTest, TheLargestGivesBackUntilTheyAreEven) {
  MemoryBudget whole(1600);
  MemoryShares shares(&whole);
  MemoryBudget large(shares);
  MemoryBudget late(shares);
  ASSERT_TRUE(large.Reserve(1500));
  // A sixteenth is there at once.
  for (int64_t held = 0; held < 750; held += 50) {
    ASSERT_TRUE(late.Reserve(50)) << held;
    EXPECT_FALSE(late.IsOverdrawn());
    while (large.IsOverdrawn()) large.Release(10);
    EXPECT_LE(whole.used_bytes(), 1500);
    EXPECT_FALSE(large.Reserve(10)) << "what was given back is for the other";
  }
  EXPECT_NEAR(static_cast<double>(large.used_bytes()), 750, 10);
  // Both want more now, and none gets it.
  EXPECT_FALSE(late.Reserve(50));
  EXPECT_FALSE(large.Reserve(50));
  // Nothing is kept from the first once the other has gone.
  late.Release(750);
  EXPECT_TRUE(large.Reserve(850));
  EXPECT_EQ(whole.used_bytes(), 1600);
  large.Release(1600);
}

TEST(MemorySharesTest, WhoNeedsLittleKeepsItAndTheRestIsDividedEvenly) {
  MemoryBudget whole(1600);
  MemoryShares shares(&whole);
  MemoryBudget little(shares);
  MemoryBudget one(shares);
  MemoryBudget other(shares);
  ASSERT_TRUE(little.Reserve(100));
  ASSERT_TRUE(one.Reserve(600));
  ASSERT_TRUE(other.Reserve(800));
  EXPECT_TRUE(other.Reserve(100)) << "of what is kept for the small ones, before it was short";
  EXPECT_TRUE(other.IsOverdrawn());
  EXPECT_EQ(other.limit_bytes(), 800);
  EXPECT_FALSE(other.Reserve(1));
  EXPECT_FALSE(one.IsOverdrawn());
  EXPECT_FALSE(little.IsOverdrawn());
  little.Release(100);
  one.Release(600);
  other.Release(900);
}

// The smallest filter of another partition opens as long as there is memory at all.
TEST(MemorySharesTest, AFilterBeginsBeyondItsShare) {
  MemoryBudget whole(1600);
  MemoryShares shares(&whole);
  MemoryBudget one(shares);
  MemoryBudget other(shares);
  ASSERT_TRUE(one.Reserve(750));
  ASSERT_TRUE(other.Reserve(760));
  EXPECT_FALSE(other.Reserve(10));
  EXPECT_TRUE(other.ReserveFirst(50));
  EXPECT_TRUE(other.IsOverdrawn());
  EXPECT_FALSE(one.IsOverdrawn());
  EXPECT_FALSE(other.ReserveFirst(41));
  EXPECT_EQ(whole.used_bytes(), 1560);
  one.Release(750);
  other.Release(810);
}

constexpr absl::Duration kHorizon = absl::Hours(1);
constexpr int64_t kLimit = 12 << 20;

// A stream of ids that are all new.
struct Topic {
  Topic(const char* its_name, const DedupStage* memory_of)
      : name(its_name),
        stage(memory_of == nullptr ? *DedupStage::Create(Options())
                                   : *DedupStage::Create(Options(), *memory_of)) {
    for (int i = 0; i < 4; ++i) partitions.push_back(*stage->Open(absl::StrCat(name, "-", i)));
  }
  static StageOptions Options() {
    return {
        .horizon = kHorizon, .target_fpp = 1e-6, .memory_limit_bytes = kLimit, .shards = 1, .hash_seed = 1};
  }
  // A minute of stream time, of so many ids.
  void Minute(int minute, int ids) {
    const absl::Time start = absl::UnixEpoch() + absl::Hours(1'000'000) + absl::Minutes(minute);
    for (int i = 0; i < ids; ++i) {
      const std::string id = absl::StrCat(name, minute, "/", i);
      Partition& partition = *partitions[static_cast<size_t>(i) % partitions.size()];
      if (*partition.Judge(id, start + i * absl::Minutes(1) / ids) == Verdict::kDuplicate) ++false_positives;
    }
  }
  // Copies of that minute's ids: the share of them that is found.
  double Found(int minute, int ids, int now) {
    const absl::Time time = absl::UnixEpoch() + absl::Hours(1'000'000) + absl::Minutes(now);
    int found = 0;
    for (int i = 0; i < ids; ++i) {
      const std::string id = absl::StrCat(name, minute, "/", i);
      Partition& partition = *partitions[static_cast<size_t>(i) % partitions.size()];
      if (*partition.Judge(id, time) == Verdict::kDuplicate) ++found;
    }
    return static_cast<double>(found) / ids;
  }
  int64_t Bytes() const {
    int64_t bytes = 0;
    for (const auto& partition : partitions) bytes += partition->Status().filter.memory_bytes;
    return bytes;
  }
  int64_t LimitHits() const {
    int64_t hits = 0;
    for (const auto& partition : partitions) hits += partition->Status().filter.limit_hits;
    return hits;
  }
  absl::Duration Window() const {
    absl::Duration least = absl::InfiniteDuration();
    for (const auto& partition : partitions) least = std::min(least, partition->Status().filter.window);
    return least;
  }

  std::string name;
  std::unique_ptr<DedupStage> stage;
  std::vector<std::unique_ptr<Partition>> partitions;
  int false_positives = 0;
};

TEST(MemorySharesTest, ABurstOfOneTopicLeavesTheOthersTheirWindow) {
  Topic burst("burst", nullptr);
  auto quiet = std::make_unique<Topic>("quiet", burst.stage.get());
  int minute = 0;
  // More than all memory holds.
  for (; minute < 30; ++minute) burst.Minute(minute, 100'000);
  ASSERT_GT(burst.LimitHits(), 0);
  // The other's ids take a quarter of the memory.
  for (; minute < 90; ++minute) {
    burst.Minute(minute, 100'000);
    quiet->Minute(minute, 8'000);
    ASSERT_LE(burst.stage->memory().used_bytes(), kLimit);
  }
  EXPECT_EQ(quiet->LimitHits(), 0);
  EXPECT_GE(quiet->Window(), kHorizon - absl::Minutes(1));
  EXPECT_EQ(quiet->Found(31, 8'000, 90), 1);
  EXPECT_GT(quiet->Bytes(), 2 << 20);
  EXPECT_LE(quiet->false_positives, 3) << "of 480,000, at one in a million each";
  EXPECT_LT(burst.false_positives, 9'000'000 * 3e-6);
  EXPECT_LT(burst.Window(), absl::Minutes(20));
  EXPECT_GT(burst.Bytes(), kLimit / 2) << "what is left is used";
  // Back to one that has all.
  quiet.reset();
  for (; minute < 120; ++minute) burst.Minute(minute, 100'000);
  EXPECT_GT(burst.Bytes(), kLimit * 7 / 10);
}

TEST(MemorySharesTest, TopicsOfTheSameNeedComeToTheSameMemory) {
  Topic first("first", nullptr);
  Topic second("second", first.stage.get());
  int minute = 0;
  for (; minute < 20; ++minute) first.Minute(minute, 100'000);
  for (; minute < 50; ++minute) {
    first.Minute(minute, 60'000);
    second.Minute(minute, 60'000);
    ASSERT_LE(first.stage->memory().used_bytes(), kLimit);
  }
  const auto one = static_cast<double>(first.Bytes());
  const auto other = static_cast<double>(second.Bytes());
  EXPECT_NEAR(one / other, 1, 0.25) << one << " and " << other;
  EXPECT_GT(one + other, kLimit * 0.65);
}

// Time moves without events, and what is not needed goes.
TEST(MemorySharesTest, ASilentTopicGivesBackToo) {
  Topic silent("silent", nullptr);
  Topic busy("busy", silent.stage.get());
  int minute = 0;
  for (; minute < 20; ++minute) silent.Minute(minute, 100'000);
  const int64_t before = silent.Bytes();
  ASSERT_GT(before, kLimit * 3 / 4);
  for (; minute < 50; ++minute) {
    busy.Minute(minute, 60'000);
    for (const auto& partition : silent.partitions) {
      for (int step = 0; step < 600; ++step) {
        ASSERT_OK(partition->AdvanceTo(absl::UnixEpoch() + absl::Hours(1'000'000) + absl::Minutes(minute) +
                                       step * absl::Milliseconds(100)));
      }
    }
  }
  EXPECT_LT(silent.Bytes(), before * 2 / 3);
  EXPECT_NEAR(static_cast<double>(silent.Bytes()) / static_cast<double>(busy.Bytes()), 1, 0.25);
}

}  // namespace
}  // namespace lethe
