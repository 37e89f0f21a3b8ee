#include "src/pipeline/output/transaction_backoff.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lethe::kafka {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);  // transaction.timeout.ms

TransactionSize Quick(size_t records, int64_t bytes) {
  return {records, bytes, bytes, absl::Milliseconds(20)};
}

// An output that takes so many bytes a second, after a first burst that is free, as Kafka's quotas allow it.
struct SlowOutput {
  double bytes_per_second = 0;
  double burst = 0;
  double committed = 0;
  absl::Duration spent = absl::ZeroDuration();
  int aborted = 0;

  // Transactions as large as they may be, for this long.
  void Run(TransactionBackoff& backoff, absl::Duration duration) {
    for (const absl::Duration end = spent + duration; spent < end;) {
      const int64_t bytes = backoff.max_bytes();
      const double due = std::max(0.0, static_cast<double>(bytes) - burst);
      burst = std::max(0.0, burst - static_cast<double>(bytes));
      const absl::Duration takes = absl::Seconds(due / bytes_per_second);
      if (takes < kTimeout) {
        spent += takes;
        committed += static_cast<double>(bytes);
        backoff.Committed({1000, bytes, bytes, takes});
      } else {
        const auto done = static_cast<int64_t>(bytes_per_second * absl::ToDoubleSeconds(kTimeout));
        spent += kTimeout + backoff.Failed({1000, bytes, done, kTimeout});
        ++aborted;
      }
    }
  }
};

TEST(TransactionBackoffTest, GrowsToItsLimitsWhileTheOutputIsQuick) {
  TransactionBackoff backoff;
  EXPECT_EQ(backoff.max_records(), TransactionBackoff::kMaxRecords);
  EXPECT_EQ(backoff.max_bytes(), TransactionBackoff::kFirstBytes);
  for (int i = 0; i < 10; ++i) backoff.Committed(Quick(100, 1000));
  EXPECT_EQ(backoff.max_records(), TransactionBackoff::kMaxRecords);
  EXPECT_EQ(backoff.max_bytes(), TransactionBackoff::kMaxBytes);
}

TEST(TransactionBackoffTest, AFailureHalvesWhatWasHeldAndCommitsDoubleIt) {
  TransactionBackoff backoff;
  backoff.Failed(Quick(1000, 1 << 20));
  EXPECT_EQ(backoff.max_records(), 500u);
  EXPECT_EQ(backoff.max_bytes(), 1 << 19);
  backoff.Refused(Quick(500, 1 << 19));
  EXPECT_EQ(backoff.max_records(), 250u);
  EXPECT_EQ(backoff.max_bytes(), 1 << 18);
  backoff.Committed(Quick(250, 1 << 18));
  EXPECT_EQ(backoff.max_records(), 500u);
  EXPECT_EQ(backoff.max_bytes(), 1 << 19);
}

// The search for a refused record ends at one record; a transaction always may hold something.
TEST(TransactionBackoffTest, HalvesDownToOneRecord) {
  TransactionBackoff backoff;
  for (int i = 0; i < 30; ++i) backoff.Refused(Quick(backoff.max_records(), backoff.max_bytes()));
  EXPECT_EQ(backoff.max_records(), 1u);
  EXPECT_EQ(backoff.max_bytes(), TransactionBackoff::kMinBytes);
  backoff.Refused({});
  EXPECT_EQ(backoff.max_records(), 1u);
}

TEST(TransactionBackoffTest, PausesGrowWithFailuresInARowAndAreBounded) {
  TransactionBackoff backoff;
  EXPECT_EQ(backoff.Failed({}), absl::Milliseconds(10));
  EXPECT_EQ(backoff.Failed({}), absl::Milliseconds(20));
  EXPECT_EQ(backoff.failures(), 2);
  for (int i = 0; i < 40; ++i) EXPECT_LE(backoff.Failed({}), TransactionBackoff::kMaxPause);
  EXPECT_EQ(backoff.Failed({}), TransactionBackoff::kMaxPause);
  backoff.Committed(Quick(1, 100));
  EXPECT_EQ(backoff.failures(), 0);
  EXPECT_EQ(backoff.Failed({}), absl::Milliseconds(10));
}

TEST(TransactionBackoffTest, ASlowOutputGetsWhatItTakesInTwoSeconds) {
  for (const double rate : {50e3, 200e3, 500e3, 5e6}) {
    TransactionBackoff backoff;
    SlowOutput output{.bytes_per_second = rate, .burst = 10 * rate};
    output.Run(backoff, absl::Minutes(5));
    EXPECT_LE(backoff.max_bytes(), std::max(4 * rate, 64.0 * 1024)) << rate;
    EXPECT_LE(output.aborted, rate < 100e3 ? 1 : 0) << rate;
    EXPECT_GE(output.committed, 0.8 * rate * 300) << rate;
  }
}

TEST(TransactionBackoffTest, FollowsAnOutputWhoseRateChanges) {
  TransactionBackoff backoff;
  SlowOutput output{.bytes_per_second = 500e3};
  output.Run(backoff, absl::Minutes(1));
  for (const double rate : {200e3, 500e3, 100e6, 10e6, 1e6, 200e3}) {
    output.bytes_per_second = rate;
    const double before = output.committed;
    const absl::Duration begin = output.spent;
    output.Run(backoff, absl::Minutes(1));
    EXPECT_GE(output.committed - before, 0.8 * rate * absl::ToDoubleSeconds(output.spent - begin)) << rate;
  }
  EXPECT_EQ(output.aborted, 0);
}

TEST(TopicRoomTest, IsWhatTheOutputTakesInHalfASecondAndGrowsAgain) {
  TopicRoom room;
  EXPECT_FALSE(room.is_bounded());
  room.Done({.bytes = 1'000'000, .acknowledged = 1'000'000, .waited = absl::Seconds(5)});
  EXPECT_EQ(room.max_bytes(), 100'000);
  room.Done({.bytes = 100'000, .acknowledged = 100'000, .waited = absl::Milliseconds(400)});
  EXPECT_EQ(room.max_bytes(), 100'000);
  room.Done({.bytes = 100'000, .acknowledged = 0, .waited = absl::Seconds(10)});
  EXPECT_EQ(room.max_bytes(), TopicRoom::kMinBytes);
  for (int i = 0; i < 20; ++i) room.Done({.bytes = 1, .acknowledged = 1, .waited = absl::ZeroDuration()});
  EXPECT_FALSE(room.is_bounded());
}

}  // namespace
}  // namespace lethe::kafka
