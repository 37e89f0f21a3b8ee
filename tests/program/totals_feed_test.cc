// Totals on their way from a topic in memory into a store in memory.
#include "src/pipeline/totals/totals_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "lethe/counters.h"

namespace lethe {
namespace {

using testing::HasSubstr;

// What both sides have of one partition.
struct Both {
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> records;  // of the topic
  std::map<std::string, int64_t> totals;                     // in the store
  int64_t position = 0;                                      // in the store
  absl::Status store;                                        // of its calls

  void Append(const std::string& key, int64_t total) {
    const std::lock_guard<std::mutex> lock(mutex);
    const CounterTotal record = {"likes", "in", 0, key, total, 7};
    records.emplace_back(record.RecordKey(), record.RecordValue());
  }
};

class TopicInMemory final : public TotalsLog {
 public:
  explicit TopicInMemory(Both& both) : both_(both) {}

  absl::Status Open(const std::map<int32_t, int64_t>& offsets) override {
    next_ = offsets.at(0);
    return absl::OkStatus();
  }
  void Close() override {}
  std::optional<InputRecord> Poll(absl::Duration timeout) override {
    {
      const std::lock_guard<std::mutex> lock(both_.mutex);
      if (next_ < static_cast<int64_t>(both_.records.size())) {
        record_ = both_.records[static_cast<size_t>(next_)];
        return InputRecord{.partition = 0, .offset = next_++, .key = record_.first, .value = record_.second};
      }
    }
    absl::SleepFor(std::min(timeout, absl::Milliseconds(1)));
    return std::nullopt;
  }
  absl::StatusOr<std::map<int32_t, int64_t>> Ends(const std::vector<int32_t>&) override {
    const auto end = HighWatermark(0);
    return std::map<int32_t, int64_t>{{0, *end}};
  }
  absl::StatusOr<int64_t> HighWatermark(int32_t) override {
    const std::lock_guard<std::mutex> lock(both_.mutex);
    return static_cast<int64_t>(both_.records.size());
  }

 private:
  Both& both_;
  int64_t next_ = 0;
  std::pair<std::string, std::string> record_;
};

class StoreInMemory final : public CounterStore {
 public:
  explicit StoreInMemory(Both& both) : both_(both) {}

  const std::string& name() const override { return name_; }
  std::string ResetCommand() const override { return "reset it"; }
  void Interrupt() override {}
  absl::StatusOr<std::vector<int64_t>> Positions(const std::vector<int32_t>& partitions) override {
    const std::lock_guard<std::mutex> lock(both_.mutex);
    if (!both_.store.ok()) return both_.store;
    return std::vector<int64_t>(partitions.size(), both_.position);
  }
  absl::StatusOr<std::vector<int64_t>> Apply(const std::vector<StoreBatch>& batches) override {
    const std::lock_guard<std::mutex> lock(both_.mutex);
    if (!both_.store.ok()) return both_.store;
    std::vector<int64_t> positions;
    for (const StoreBatch& batch : batches) {
      if (batch.from == both_.position) {
        for (const StoredTotal& each : batch.totals) both_.totals[each.key] = each.total.value_or(0);
        both_.position = batch.to;
      }
      positions.push_back(both_.position);
    }
    return positions;
  }

 private:
  Both& both_;
  const std::string name_ = "memory";
};

class TotalsFeedTest : public testing::Test {
 protected:
  TotalsFeedTest() {
    options_.input = "in";
    counter_.name = "likes";
    counter_.output = "totals";
    feed_ = std::make_unique<TotalsFeed>(
        options_, counter_, std::make_unique<StoreInMemory>(both_), std::make_unique<TopicInMemory>(both_),
        [] { return std::vector<int32_t>{0}; }, stop_);
  }
  bool AwaitTotals(const std::map<std::string, int64_t>& totals) {
    for (int i = 0; i < 10000; ++i) {
      {
        const std::lock_guard<std::mutex> lock(both_.mutex);
        if (both_.totals == totals) return true;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return false;
  }

  DaemonOptions options_;
  CounterOptions counter_;
  Both both_;
  StopFlag stop_;
  std::unique_ptr<TotalsFeed> feed_;
};

TEST_F(TotalsFeedTest, TheLastTotalOfEachKeyIsStored) {
  both_.Append("a", 1);
  both_.Append("b", 5);
  both_.Append("a", 2);
  feed_->Start();
  EXPECT_TRUE(AwaitTotals({{"a", 2}, {"b", 5}}));
  both_.Append("a", 3);
  feed_->Finish(absl::InfiniteDuration(), [] { return true; });
  EXPECT_EQ(both_.totals, (std::map<std::string, int64_t>{{"a", 3}, {"b", 5}}));
  EXPECT_EQ(feed_->Report().failures, 0);
}

TEST_F(TotalsFeedTest, AStoreThatWasSetBackIsFilledAgain) {
  both_.Append("a", 1);
  feed_->Start();
  ASSERT_TRUE(AwaitTotals({{"a", 1}}));
  {
    const std::lock_guard<std::mutex> lock(both_.mutex);
    both_.totals.clear();
    both_.position = 0;
  }
  EXPECT_TRUE(AwaitTotals({{"a", 1}}));
}

TEST_F(TotalsFeedTest, AStoreAheadOfTheTopicIsAFailureThatNamesTheRemedy) {
  both_.position = 9;
  feed_->Start();
  for (int i = 0; i < 10000 && feed_->Report().failures == 0; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(feed_->Report().problem, HasSubstr("reset it"));
  feed_->Finish(absl::ZeroDuration(), [] { return false; });
  EXPECT_TRUE(both_.totals.empty());
}

TEST_F(TotalsFeedTest, AStoreThatIsAwayIsWaitedFor) {
  both_.store = absl::UnavailableError("away");
  both_.Append("a", 1);
  feed_->Start();
  for (int i = 0; i < 10000 && feed_->Report().failures == 0; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(feed_->Report().connected);
  {
    const std::lock_guard<std::mutex> lock(both_.mutex);
    both_.store = absl::OkStatus();
  }
  EXPECT_TRUE(AwaitTotals({{"a", 1}}));
}

}  // namespace
}  // namespace lethe
