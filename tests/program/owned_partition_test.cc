// The partitions of a lane: whose filter is asked for its figures, and when.
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/task/task.h"
#include "tests/support/status_matchers.h"

namespace lethe::kafka {
namespace {

class RenewStatusTest : public testing::Test {
 protected:
  void Add(int32_t id) {
    auto partition = std::make_unique<Task>(TopicPartition{0, id});
    partition->SetFilter(*stage_->Open(absl::StrCat("p", id)));
    owned_[{0, id}] = std::move(partition);
  }

  // Every filter has seen one event more; the partitions whose status knows that after a call.
  std::vector<int32_t> Renewed(absl::Duration budget) {
    ++events_;
    for (auto& [id, partition] : owned_) {
      EXPECT_OK(partition->filter()->Judge(absl::StrCat(events_), absl::Now()));
      partition->SkipTo(partition->next() + 1);
    }
    RenewStatus(owned_, budget, SystemClock(), &next_);
    std::vector<int32_t> renewed;
    for (auto& [id, partition] : owned_) {
      if (partition->status().unique == partition->filter()->Status().unique) renewed.push_back(id.partition);
    }
    return renewed;
  }

  std::unique_ptr<DedupStage> stage_ = *DedupStage::Create({.memory_limit_bytes = int64_t{64} << 20});
  Tasks owned_;
  TopicPartition next_;
  int events_ = 0;
};

using Ids = std::vector<int32_t>;

TEST_F(RenewStatusTest, AllWhereThereIsTime) {
  for (const int32_t id : {3, 5, 9}) Add(id);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Renewed(absl::InfiniteDuration()), (Ids{3, 5, 9}));
}

TEST_F(RenewStatusTest, OneAfterTheOtherWhereThereIsNone) {
  for (const int32_t id : {3, 5, 9}) Add(id);
  EXPECT_EQ(Renewed(absl::ZeroDuration()), (Ids{3, 5, 9})) << "new ones do not wait";
  EXPECT_EQ(Renewed(absl::ZeroDuration()), Ids{5});
  EXPECT_EQ(Renewed(absl::ZeroDuration()), Ids{9});
  EXPECT_EQ(Renewed(absl::ZeroDuration()), Ids{3});
  Add(4);
  EXPECT_EQ(Renewed(absl::ZeroDuration()), (Ids{4}));
  EXPECT_EQ(Renewed(absl::ZeroDuration()), (Ids{5}));
  owned_.erase({0, 9});
  EXPECT_EQ(Renewed(absl::ZeroDuration()), (Ids{3}));
}

TEST_F(RenewStatusTest, NotWhereNothingWasRead) {
  for (const int32_t id : {3, 5}) Add(id);
  EXPECT_EQ(Renewed(absl::InfiniteDuration()), (Ids{3, 5}));
  for (auto& [id, partition] : owned_) EXPECT_OK(partition->filter()->Judge("unread", absl::Now()));
  owned_.at({0, 5})->SetCommitted(1);
  RenewStatus(owned_, absl::InfiniteDuration(), SystemClock(), &next_);
  EXPECT_EQ(owned_.at({0, 3})->status().unique, 1);
  EXPECT_EQ(owned_.at({0, 5})->status().unique, 2);
}

TEST_F(RenewStatusTest, NoPartitionOrNoFilterIsNoMatter) {
  EXPECT_EQ(Renewed(absl::ZeroDuration()), Ids{});
  Add(1);
  auto failed = std::make_unique<Task>();
  RenewStatus(owned_, absl::ZeroDuration(), SystemClock(), &next_);
  owned_[{0, 2}] = std::move(failed);
  RenewStatus(owned_, absl::ZeroDuration(), SystemClock(), &next_);
  EXPECT_TRUE(owned_.at({0, 2})->status().name.empty());
  EXPECT_EQ(owned_.at({0, 1})->status().name, "p1");
}

TEST(KeptPartitionsTest, AttemptsOfItsFormerOwnerToReadABatchDoNotCount) {
  auto partition = std::make_unique<Task>(TopicPartition{0, 3});
  partition->MeetUnreadable(5);
  EXPECT_EQ(partition->MeetUnreadable(5), 2);
  KeptPartitions kept;
  kept.Put(std::move(partition), absl::Now());
  EXPECT_EQ(kept.Take({0, 3})->MeetUnreadable(5), 1);
}

TEST(KeptPartitionsTest, TheOneThatHasBeenThereLongestIsDroppedFirst) {
  KeptPartitions kept;
  const absl::Time begin = absl::UnixEpoch();
  absl::Time put = begin;
  for (const int32_t id : {5, 9, 3}) {
    auto partition = std::make_unique<Task>(TopicPartition{0, id});
    kept.Put(std::move(partition), put += absl::Seconds(1));
  }
  const absl::Time middle = begin + absl::Seconds(2);
  EXPECT_EQ(kept.TakeOldest(begin), nullptr);
  EXPECT_EQ(kept.TakeOldest(middle)->id(), (TopicPartition{0, 5}));
  EXPECT_EQ(kept.TakeOldest(middle)->id(), (TopicPartition{0, 9}));
  EXPECT_EQ(kept.TakeOldest(middle), nullptr);
  EXPECT_NE(kept.Take({0, 3}), nullptr);
  EXPECT_EQ(kept.TakeOldest(), nullptr);
}

}  // namespace
}  // namespace lethe::kafka
