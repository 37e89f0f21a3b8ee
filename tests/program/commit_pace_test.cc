// When transactions end: long ones in a backlog, the commit interval for what is current, and at once where
// the source is drained. On the loop itself, with a cluster in memory and a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/life.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(100);
// A batch of 512 records takes so long: a transaction of the interval holds some 5,000.
constexpr absl::Duration kBatchTakes = absl::Milliseconds(10);

class CommitPaceTest : public testing::Test {
 protected:
  // From the first record of a transaction to its commit.
  struct Ended {
    absl::Duration lasted;
    int64_t records = 0;
  };

  CommitPaceTest() {
    options_.input = "orders";
    options_.output = "unique";
    options_.process.group = "lethe";
    options_.process.commit_interval = kInterval;
    options_.record.id = *IdSpec::Parse("json:/id");
    cluster_.output_partitions = 2;
  }

  void Send(int records, int32_t partition = 0) {
    for (int i = 0; i < records; ++i) {
      const std::string id = absl::StrCat(partition, "-", ++sent_);
      cluster_.Append(partition,
                      {id, absl::StrCat(R"({"id":")", id, R"("})"), absl::ToUnixMillis(clock_.Wall())});
    }
  }

  // Reads both partitions to their ends. `on_poll` comes before each poll, which takes `poll_takes`.
  std::vector<Ended> Run(absl::Duration poll_takes, const std::function<void()>& on_poll = nullptr,
                         absl::Duration timeout = absl::InfiniteDuration()) {
    std::vector<Ended> ended;
    test::Life life(cluster_, options_, /*partitions=*/2, nullptr, clock_);
    life.sink.transaction_timeout = timeout;
    life.worker.ownership().Assign({{0, 0}, {0, 1}});
    absl::Time begun = absl::InfiniteFuture();
    life.source.on_poll = [&] {
      clock_.Pass(poll_takes);
      if (on_poll) on_poll();
      if (!life.worker.transactions().is_open()) begun = clock_.Steady();
    };
    life.sink.on_commit = [&] {
      const auto written = static_cast<int64_t>(cluster_.output.size());
      if (!ended.empty()) ended.back().records = written - committed_;
      committed_ = written;
      ended.push_back({clock_.Steady() - begun});
      clock_.Pass(commit_takes_);
    };
    EXPECT_OK(life.Run());
    if (!ended.empty()) ended.back().records = static_cast<int64_t>(cluster_.output.size()) - committed_;
    EXPECT_EQ(cluster_.output.size(), static_cast<size_t>(sent_)) << "all are unique";
    return ended;
  }
  static absl::Duration Longest(const std::vector<Ended>& ended) {
    absl::Duration longest;
    for (const Ended& each : ended) longest = std::max(longest, each.lasted);
    return longest;
  }

  test::FakeCluster cluster_;
  DaemonOptions options_;
  test::ManualClock clock_;
  absl::Duration commit_takes_ = absl::Milliseconds(2);
  int64_t committed_ = 0;
  int sent_ = 0;
};

TEST_F(CommitPaceTest, ABacklogIsReadInTransactionsOfTenIntervals) {
  Send(200'000);
  const std::vector<Ended> ended = Run(kBatchTakes);
  const auto longest = std::count_if(ended.begin(), ended.end(), [](const Ended& each) {
    return each.lasted >= 10 * kInterval && each.lasted <= 10 * kInterval + kBatchTakes;
  });
  EXPECT_GE(longest, 2);
  EXPECT_LE(Longest(ended), 10 * kInterval + kBatchTakes);
  EXPECT_LE(ended.size(), 12u) << "in intervals it would be 40";
  EXPECT_LE(ended.back().lasted, kInterval + kBatchTakes) << "near the end they are short again";
}

// A longer transaction at most doubles the delay that there is.
TEST_F(CommitPaceTest, ATransactionHoldsNoMoreThanIsLeftToRead) {
  Send(60'000);
  int64_t left = 60'000;
  for (const Ended& each : Run(kBatchTakes)) {
    left -= each.records;
    if (each.lasted > kInterval + kBatchTakes) {
      EXPECT_LE(each.records, left + 2 * 512 * 11);
    }
  }
}

TEST_F(CommitPaceTest, AnotherPartitionThatIsCurrentKeepsTheInterval) {
  Send(200'000, 1);
  const std::vector<Ended> ended = Run(kBatchTakes, [&] {
    if (sent_ < 200'400) Send(1, 0);
  });
  EXPECT_LE(Longest(ended), kInterval + kBatchTakes);
}

TEST_F(CommitPaceTest, TransactionsEndLongBeforeTheBrokersAbortThem) {
  Send(200'000);
  const absl::Duration timeout = absl::Milliseconds(1500);
  EXPECT_LE(Longest(Run(kBatchTakes, nullptr, timeout)), timeout / 3 + kBatchTakes);
}

TEST_F(CommitPaceTest, ARouterCommitsAtTheInterval) {
  options_.half.routing.emplace();
  cluster_.output_partitions = 2;
  Send(100'000);
  EXPECT_LE(Longest(Run(kBatchTakes)), kInterval + kBatchTakes);
}

TEST_F(CommitPaceTest, WhatIsDrainedIsCommittedAtOnce) {
  Send(3);
  const std::vector<Ended> ended = Run(absl::Milliseconds(1));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].lasted, absl::ZeroDuration());
  EXPECT_EQ(ended[0].records, 3);
}

TEST_F(CommitPaceTest, CommitsOfAStreamTakeATenthOfTheTime) {
  for (const absl::Duration takes : {absl::Milliseconds(1), absl::Milliseconds(2), absl::Milliseconds(5)}) {
    commit_takes_ = takes;
    const int before = sent_;
    const absl::Time begin = clock_.Steady();
    const std::vector<Ended> ended = Run(absl::Milliseconds(1), [&] {
      if (sent_ - before < 5000) Send(5);
    });
    const absl::Duration all = clock_.Steady() - begin;
    EXPECT_GE(takes * static_cast<int>(ended.size()), all * 0.08) << takes;
    EXPECT_LE(takes * static_cast<int>(ended.size()), all * 0.105) << takes;
    EXPECT_LE(Longest(ended), takes * 9 + absl::Milliseconds(1)) << takes;
  }
}

TEST_F(CommitPaceTest, SlowCommitsDoNotDelayAStreamBeyondTheInterval) {
  commit_takes_ = absl::Milliseconds(50);
  const std::vector<Ended> ended = Run(absl::Milliseconds(1), [&] {
    if (sent_ < 5000) Send(5);
  });
  EXPECT_LE(Longest(ended), kInterval + absl::Milliseconds(1));
}

}  // namespace
}  // namespace lethe
