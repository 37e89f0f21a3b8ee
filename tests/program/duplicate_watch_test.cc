// The share of duplicates jumps, and what looks like it and is none: of made-up streams and of real events.
#include "src/pipeline/report/duplicate_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/report/shared_id_watch.h"
#include "tests/support/real_events_file.h"

namespace lethe {
namespace {

// One partition: exact verdicts, an audit of one id in 16, and the watches of its duplicates.
class Partition {
 public:
  explicit Partition(double per_second) : pause_(absl::Seconds(1 / per_second)) {}

  void Send(const std::string& id, const std::string& payload) {
    const IdHash hash = HashId(id, HashKey{7, 7});
    const size_t content = std::hash<std::string>()(payload);
    const auto [first, is_new] = seen_.try_emplace(id, content);
    if (!is_new) {
      if (hash.b % 16 == 0) {
        ++audit_.compared;
        audit_.payload_mismatches += first->second == content ? 0 : 1;
      }
      shared_ += shared_ids_.Add(hash, content, offset_) ? 1 : 0;
      duplicates_.insert(offset_);
    }
    watch_.Add(hash, is_new ? Verdict::kUnique : Verdict::kDuplicate, offset_++);
    now_ += pause_;
    if (offset_ % 100 == 0) watch_.Update(audit_, now_);
    ever_jumped_ = ever_jumped_ || watch_.jump();
  }
  // Nothing comes meanwhile.
  void Wait(absl::Duration duration) { now_ += duration; }
  void SetRate(double per_second) { pause_ = absl::Seconds(1 / per_second); }

  const std::optional<DuplicateWatch::Jump>& jump() const { return watch_.jump(); }
  bool ever_jumped() const { return ever_jumped_; }
  int shared() const { return shared_; }  // records of an id that is none
  absl::Time now() const { return now_; }
  int64_t offset() const { return offset_; }
  const std::set<int64_t>& duplicates() const { return duplicates_; }

 private:
  absl::Duration pause_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t offset_ = 0;
  std::unordered_map<std::string, size_t> seen_;
  std::set<int64_t> duplicates_;
  AuditStatus audit_;
  DuplicateWatch watch_;
  SharedIdWatch shared_ids_;
  int shared_ = 0;
  bool ever_jumped_ = false;
};

// Events with ids of their own, of which one in a hundred is sent twice.
class Producer {
 public:
  explicit Producer(Partition& to) : to_(to) {}

  void Send(int64_t events, int copies = 1) {
    for (int64_t i = 0; i < events; ++i) {
      const std::string id = absl::StrCat(next_++);
      const int times = copies > 1 ? copies : random_() % 100 == 0 ? 2 : 1;
      for (int copy = 0; copy < times; ++copy) to_.Send(id, absl::StrCat("event ", id));
    }
  }

 private:
  Partition& to_;
  int64_t next_ = 0;
  std::mt19937_64 random_{1};
};

TEST(DuplicateWatchTest, AProducerThatSendsEachEventSeveralTimesIsFound) {
  Partition partition(/*per_second=*/100);
  Producer producer(partition);
  producer.Send(20'000);
  EXPECT_FALSE(partition.jump());
  const absl::Time deployed = partition.now();
  const int64_t first = partition.offset();
  producer.Send(10'000, /*copies=*/5);
  ASSERT_TRUE(partition.jump());
  const DuplicateWatch::Jump& jump = *partition.jump();
  EXPECT_NEAR(jump.usual, 0.01, 0.005);
  EXPECT_NEAR(jump.share, 0.8, 0.05);
  EXPECT_LT(absl::AbsDuration(jump.since - deployed), absl::Seconds(20));
  EXPECT_LT(std::abs(jump.since_offset - first), 2000);
  EXPECT_FALSE(jump.MostDiffer());
  EXPECT_FALSE(jump.offsets.empty());
  for (const int64_t offset : jump.offsets) EXPECT_TRUE(partition.duplicates().contains(offset)) << offset;
}

// The ids begin at 0 again: they came long ago, with other events.
TEST(DuplicateWatchTest, IdsThatAreUsedAgainForOtherEventsAreFoundAtOnce) {
  Partition partition(/*per_second=*/100);
  Producer(partition).Send(50'000);
  const absl::Time deployed = partition.now();
  for (int i = 0; i < 3000; ++i) partition.Send(absl::StrCat(i), absl::StrCat("other event ", i));
  ASSERT_TRUE(partition.jump());
  EXPECT_TRUE(partition.jump()->MostDiffer());
  EXPECT_LT(partition.now() - deployed, absl::Minutes(1));
}

// One in five events has an id of its own: the id is the order's now, not the event's.
TEST(DuplicateWatchTest, AnIdThatSeveralEventsShareIsFound) {
  Partition partition(/*per_second=*/1000);
  Producer(partition).Send(50'000);
  for (int i = 0; i < 5000; ++i) partition.Send(absl::StrCat("order ", i / 5), absl::StrCat("event ", i));
  ASSERT_TRUE(partition.jump());
  EXPECT_TRUE(partition.jump()->MostDiffer());
  EXPECT_EQ(partition.shared(), 0);  // no id is shared by a hundred
}

TEST(DuplicateWatchTest, AJumpEndsWhenThreeQuartersOfTheUsualEventsPass) {
  Partition partition(/*per_second=*/100);
  Producer producer(partition);
  producer.Send(20'000);
  producer.Send(10'000, /*copies=*/5);
  ASSERT_TRUE(partition.jump());
  producer.Send(20'000, /*copies=*/2);  // more than half pass, less than three quarters
  EXPECT_TRUE(partition.jump());
  producer.Send(3000);
  EXPECT_FALSE(partition.jump());
}

TEST(DuplicateWatchTest, WhatLastsForADayIsUsual) {
  Partition partition(/*per_second=*/10);
  Producer producer(partition);
  producer.Send(20'000);
  producer.Send(10 * 3600 * 23 / 5, /*copies=*/5);
  EXPECT_TRUE(partition.jump());
  producer.Send(10 * 3600 * 2 / 5, /*copies=*/5);
  EXPECT_FALSE(partition.jump());
  producer.Send(10 * 3600 * 2 / 5, /*copies=*/5);
  EXPECT_FALSE(partition.jump());
}

TEST(DuplicateWatchTest, AQuietPartitionIsWatched) {
  Partition partition(/*per_second=*/0.5);
  Producer producer(partition);
  producer.Send(5000);
  EXPECT_FALSE(partition.ever_jumped());
  producer.Send(500, /*copies=*/5);
  EXPECT_TRUE(partition.jump());
}

// The night before a deployment nothing came.
TEST(DuplicateWatchTest, AJumpAfterAPauseBeginsBehindIt) {
  Partition partition(/*per_second=*/100);
  Producer producer(partition);
  producer.Send(20'050);
  partition.Wait(absl::Hours(10));
  const absl::Time deployed = partition.now();
  producer.Send(10'000, /*copies=*/5);
  ASSERT_TRUE(partition.jump());
  EXPECT_GE(partition.jump()->since, deployed - absl::Seconds(20));
}

TEST(DuplicateWatchTest, AnUnusualShareFromTheBeginningIsNoJump) {
  Partition partition(/*per_second=*/100);
  Producer(partition).Send(50'000, /*copies=*/5);
  EXPECT_FALSE(partition.ever_jumped());
}

// The stream of retrying clients, of real events where they are, and of a sample else.
class RealStreamTest : public testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> Stream() {
    const test::RealEventsFile file = test::FindRealEvents(LETHE_SOURCE_DIR);
    const std::string command =
        absl::StrCat("python3 '", file.with_retries.string(), "' '", file.events.string(), "' ", GetParam(),
                     file.days > 1 ? " --repeat 17" : "");
    std::vector<std::string> lines;
    FILE* const pipe = popen(command.c_str(), "r");
    std::string line;
    for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) {
      if (byte != '\n') {
        line.push_back(static_cast<char>(byte));
        continue;
      }
      lines.push_back(line);
      line.clear();
    }
    EXPECT_EQ(pclose(pipe), 0);
    EXPECT_GT(lines.size(), 30'000u);
    return lines;
  }
  static void Send(Partition& to, const std::string& line) {
    to.Send(line.substr(0, line.find(',')), line);  // {"id":"...",
  }

  static void ExpectQuiet(const Partition& partition) {
    EXPECT_FALSE(partition.ever_jumped());
    EXPECT_EQ(partition.shared(), 0);
  }
};

// As it came, over a day, and as a backlog, a hundred thousand records a second.
TEST_P(RealStreamTest, NothingIsNoticedAtAnyPace) {
  const std::vector<std::string> stream = Stream();
  for (const double per_second : {0.5, 100.0, 100'000.0}) {
    Partition partition(per_second);
    for (const std::string& line : stream) Send(partition, line);
    ExpectQuiet(partition);
  }
}

TEST_P(RealStreamTest, ABacklogIsNotNoticed) {
  const std::vector<std::string> stream = Stream();
  Partition partition(/*per_second=*/10);
  for (size_t i = 0; i < stream.size() / 4; ++i) Send(partition, stream[i]);
  partition.Wait(absl::Hours(3));
  partition.SetRate(100'000);
  for (size_t i = stream.size() / 4; i < stream.size() * 3 / 4; ++i) Send(partition, stream[i]);
  partition.SetRate(10);
  for (size_t i = stream.size() * 3 / 4; i < stream.size(); ++i) Send(partition, stream[i]);
  ExpectQuiet(partition);
}

// A producer sends all again, as fast as at first, which takes hours, and then goes on.
TEST_P(RealStreamTest, AReplayOfTheTopicFromItsStartIsNotNoticed) {
  const std::vector<std::string> stream = Stream();
  Partition partition(/*per_second=*/5);
  for (size_t i = 0; i < stream.size() / 2; ++i) Send(partition, stream[i]);
  for (size_t i = 0; i < stream.size(); ++i) Send(partition, stream[i]);
  ExpectQuiet(partition);
}

// Beside the live stream.
TEST_P(RealStreamTest, AReplayBesideNewEventsIsNotNoticed) {
  const std::vector<std::string> stream = Stream();
  Partition partition(/*per_second=*/10);
  const size_t half = stream.size() / 2;
  for (size_t i = 0; i < half; ++i) Send(partition, stream[i]);
  for (size_t i = 0; i < half / 4; ++i) {
    for (size_t again = 0; again < 4; ++again) Send(partition, stream[4 * i + again]);
    Send(partition, stream[half + i]);
  }
  ExpectQuiet(partition);
}

// For four minutes, every event of the last minute comes again and again.
TEST_P(RealStreamTest, ABurstOfRetriesIsNotNoticed) {
  const std::vector<std::string> stream = Stream();
  Partition partition(/*per_second=*/100);
  const size_t half = stream.size() / 2;
  for (size_t i = 0; i < half; ++i) Send(partition, stream[i]);
  const absl::Time end = partition.now() + absl::Minutes(4);
  for (size_t i = half; partition.now() < end; ++i) {
    Send(partition, stream[i]);
    for (size_t again = 0; again < 4; ++again) Send(partition, stream[i - again * 300]);
  }
  for (size_t i = half; i < stream.size(); ++i) Send(partition, stream[i]);
  ExpectQuiet(partition);
}

INSTANTIATE_TEST_SUITE_P(Retries, RealStreamTest,
                         testing::Values("--rate 0.01", "--rate 0.08", "--rate 0.3 --again 0.5",
                                         "--rate 0.08 --within 20", "--rate 0.08 --within 20000"));

}  // namespace
}  // namespace lethe
