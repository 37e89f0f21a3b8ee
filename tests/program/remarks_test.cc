#include "src/pipeline/report/remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/report/readiness.h"

namespace lethe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

PartitionReport Hit(int32_t id, absl::Duration window, double fpp) {
  PartitionReport partition;
  partition.partition = id;
  partition.topic = "orders";
  partition.horizon = absl::Hours(24);
  partition.filter.filter.limit_hits = 1;
  partition.filter.filter.window = window;
  partition.filter.filter.fpp.modelled = fpp;
  partition.filter.filter.fpp.target = 1e-6;
  return partition;
}

TEST(RemarksTest, AMemoryLimitThatCostsWindowOrTargetIsReported) {
  DaemonReport report;
  report.first.input = "orders";
  report.first.horizon = absl::Hours(24);
  report.lanes.resize(1);
  report.lanes[0].partitions = {Hit(0, absl::Hours(24), 1e-6)};
  EXPECT_TRUE(Remarks(report).empty());  // it has recovered
  report.lanes[0].partitions.push_back(Hit(3, absl::Hours(2), 1e-7));
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("orders-3 covers 2h of the horizon of 24h")));
  report.lanes[0].partitions.push_back(Hit(4, absl::Hours(24), 2e-6));
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("and 1 more partitions")));
  report.lanes[0].partitions = {Hit(4, absl::Hours(24), 2e-6)};
  EXPECT_THAT(Remarks(report)[0], HasSubstr("2e-06"));
}

TEST(RemarksTest, LostIdsAreReportedAndNotTakenForTheMemoryLimit) {
  DaemonReport report;
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(2);
  report.lanes[0].partitions[1].topic = "orders";
  report.lanes[0].partitions[1].partition = 3;
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[0].partitions[1].filter.filter.lost_ids = 17;
  ASSERT_THAT(Remarks(report),
              ElementsAre(AllOf(HasSubstr("orders-3"), HasSubstr("17 ids"), Not(HasSubstr("limit")))));
}

TEST(RemarksTest, AnIdThatManyEventsShareIsReportedWithTwoOfThem) {
  DaemonReport report;
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(1);
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[0].partitions[0].shared_id = SharedIdWatch::Pair{701, 702};
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("701 and 702")));
}

TEST(RemarksTest, AJumpOfTheDuplicatesIsReportedWithItsBeginAndSomeOfThem) {
  DaemonReport report;
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(1);
  PartitionReport& partition = report.lanes[0].partitions[0];
  partition.topic = "orders";
  partition.duplicates_jumped = DuplicateWatch::Jump{.since = absl::FromUnixSeconds(1'700'000'000),
                                                     .since_offset = 5000,
                                                     .usual = 0.01,
                                                     .share = 0.8,
                                                     .offsets = {5001, 5003, 5007},
                                                     .compared = 40,
                                                     .differing = 0};
  ASSERT_EQ(Remarks(report).size(), 1u);
  for (const char* fact :
       {"orders-0", "80 %", "2023-11-14 22:13:20 UTC", "5000", "1.0 %", "5001, 5003, 5007"}) {
    EXPECT_THAT(Remarks(report)[0], HasSubstr(fact));
  }
  EXPECT_THAT(Remarks(report)[0], Not(HasSubstr("lost")));
  partition.duplicates_jumped->differing = 39;
  EXPECT_THAT(Remarks(report)[0], HasSubstr("lost"));
}

TEST(RemarksTest, AShortHistoryAndMovedKeysAreReported) {
  DaemonReport report;
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(3);
  EXPECT_TRUE(Remarks(report).empty());
  for (PartitionReport& partition : report.lanes[0].partitions) partition.short_history = true;
  EXPECT_EQ(Remarks(report).size(), 1u);
  report.lanes[0].partitions[2].keys_moved = true;
  EXPECT_EQ(Remarks(report).size(), 2u);
}

TEST(RemarksTest, MembersThatAreNotLethesAreNamed) {
  DaemonReport report;
  report.foreign_members = {"rdkafka on host /10.0.0.7", "shop on host /10.0.0.8"};
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("rdkafka on host /10.0.0.7 (and 1 more)")));
}

TEST(RemarksTest, PartitionsThatTheRouterDoesNotWaitForAreNamed) {
  DaemonReport report;
  report.routing_lanes.resize(1);
  EXPECT_TRUE(Remarks(report).empty());
  report.routing_lanes[0].passed_over = {"orders-3", "orders-5"};
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("orders-3")));
}

TEST(RemarksTest, RecordsWithoutAnIdAreReportedWithTheirNumbers) {
  DaemonReport report;
  report.lanes.resize(2);
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[1].lane = 1;
  report.lanes[1].without_id = {"orders", {12345, 12340}};
  ASSERT_THAT(Remarks(report),
              ElementsAre(HasSubstr("lane 1: orders: 12,340 of 12,345 records have no usable id")));
}

TEST(RemarksTest, TimesInAnotherUnitAreReported) {
  DaemonReport report;
  report.lanes.resize(1);
  TimeUnitCheck times;
  for (int i = 0; i < 100; ++i) times.Add(1'700'000'000 + i);
  report.lanes[0].wrong_times = {"orders", times};
  ASSERT_THAT(Remarks(report), ElementsAre(AllOf(HasSubstr("orders"), HasSubstr("likely seconds"))));
}

TEST(RemarksTest, RecordsThatTheOutputDeletesAreReportedWithOneOfThem) {
  DaemonReport report;
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(3);
  EXPECT_TRUE(Remarks(report).empty());
  for (int32_t id = 1; id < 3; ++id) {
    PartitionReport& partition = report.lanes[0].partitions[static_cast<size_t>(id)];
    partition.partition = id;
    partition.topic = "orders";
    partition.output = "orders-unique";
    partition.expiring = ExpiryWatch::Stretch{.written = 1000,
                                              .expired = 990,
                                              .offset = 17,
                                              .timestamp_ms = 1'700'000'000'000,
                                              .kept_for = absl::Hours(1)};
  }
  ASSERT_EQ(Remarks(report).size(), 1u);
  for (const char* fact : {"orders-1: 990 of the last 1,000", "offset 17 of 2023-11-14", "(1h)",
                           "retention.ms of orders-unique", "(and 1 more partitions)"}) {
    EXPECT_THAT(Remarks(report)[0], HasSubstr(fact));
  }
}

TEST(RemarksTest, AQuotaIsReportedForEachClientOfAllLanes) {
  DaemonReport report;
  report.lanes.resize(2);
  report.routing_lanes.resize(1);
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[1].producer_throttled = 0.5;
  EXPECT_EQ(Remarks(report).size(), 1u);
  report.lanes[1].consumer_throttled = 0.5;
  report.routing_lanes[0].consumer_throttled = 1;
  EXPECT_EQ(Remarks(report).size(), 3u);
}

TEST(RemarksTest, AnOpenTransactionOfTheInputIsReportedWithItsPlace) {
  DaemonReport report;
  report.first.input = "orders";
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(3);
  EXPECT_TRUE(Remarks(report).empty());
  PartitionReport& held = report.lanes[0].partitions[1];
  held.partition = 4;
  held.topic = "orders";
  held.log.position = 17;
  held.open_transaction_since = absl::FromUnixSeconds(0);
  ASSERT_THAT(Remarks(report),
              ElementsAre(HasSubstr("orders-4 waits at offset 17 since 1970-01-01 00:00:00")));
  report.lanes[0].partitions[2].open_transaction_since = absl::Now();
  ASSERT_THAT(Remarks(report), ElementsAre(HasSubstr("1 more")));
}

TEST(ProblemsTest, EachReasonIsToldOnceWithTheNumberOfItsPartitions) {
  std::vector<LaneReport> lanes(2);
  for (int32_t id = 0; id < 4; ++id) {
    PartitionReport& partition = lanes[static_cast<size_t>(id) / 2].partitions.emplace_back();
    partition.partition = id;
    partition.topic = "orders";
    if (id > 0) partition.problem = absl::StrCat("orders-", id, id == 2 ? " offset 5: bad" : ": no memory");
  }
  std::vector<std::string> texts;
  for (const TopicProblem& problem : Problems(lanes)) texts.push_back(problem.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"orders-1: no memory (and 1 more partitions)",
                                             "orders-2 offset 5: bad"}));
}

// With one topic, its trouble is the daemon's.
TEST(ReadinessTest, TheTroubleOfOneTopicIsItsOwnWhileAnotherIsFine) {
  const auto of = [](const std::vector<std::string>& topics, const std::vector<std::string>& reasons,
                     const std::vector<TopicProblem>& problems) {
    DaemonReport report;
    for (const std::string& topic : topics) report.topics.emplace_back().input = topic;
    SetReadiness(reasons, problems, report);
    return std::pair(report.not_ready, report.but_for);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(of({"a"}, {}, {}), std::pair(Texts(), Texts()));
  EXPECT_EQ(of({"a"}, {}, {{"a", "x"}}), std::pair(Texts{"x"}, Texts()));
  EXPECT_EQ(of({"a", "b"}, {}, {{"a", "x"}}), std::pair(Texts(), Texts{"x"}));
  EXPECT_EQ(of({"a", "b"}, {}, {{"a", "x"}, {"b", "y"}}), std::pair(Texts({"x", "y"}), Texts()));
  EXPECT_EQ(of({"a", "b"}, {"z"}, {{"a", "x"}}), std::pair(Texts({"x", "z"}), Texts()));
}

// Of merged inputs, which are topics by themselves as long as nothing routes them, one may be away.
TEST(ReadinessTest, AMergedTopicIsFineWhileOneInputIs) {
  const auto is_ready = [](const std::vector<TopicProblem>& problems) {
    DaemonReport report;
    TopicReport& merged = report.topics.emplace_back();
    merged.input = "merged";
    merged.routed_from = {"a", "b"};
    report.topics.emplace_back().input = "b";
    SetReadiness({}, problems, report);
    return report.not_ready.empty();
  };
  EXPECT_TRUE(is_ready({}));
  EXPECT_TRUE(is_ready({{"b", "x"}}));
  EXPECT_FALSE(is_ready({{"a", "x"}, {"b", "y"}}));
  EXPECT_FALSE(is_ready({{"merged", "x"}, {"b", "y"}}));
}

TEST(ReadinessTest, ALaneSaysWhatItWaitsFor) {
  LaneReport lane;
  lane.lane = 1;
  lane.member = {.unassigned_for = absl::Milliseconds(2500), .session_timeout = absl::Seconds(45)};
  lane.waiting = "a broker";
  lane.gone = {{"c", "c is gone"}};
  for (int32_t id = 0; id < 2; ++id) {
    PartitionReport& partition = lane.partitions.emplace_back();
    partition.partition = id;
    partition.topic = "a";
    partition.restore = {.to = 9, .left = 4, .time_left = absl::Milliseconds(1200)};
  }
  const auto of = [&](const LaneGroup& group) {
    std::vector<std::string> texts;
    std::vector<TopicProblem> problems;
    AddReasons(group, {lane}, texts, problems);
    for (const TopicProblem& problem : problems) texts.push_back(problem.text);
    return texts;
  };
  const std::string restoring = "a-0 is restoring: 4 offsets to go, up to 9, in some 2s";
  const std::string assigned =
      "lane 1 waits for the group to assign partitions, for 2s so far; after a crash up to 45s "
      "(session.timeout.ms)";
  using Texts = std::vector<std::string>;
  // The group assigns nothing of topics that are gone.
  EXPECT_EQ(of({.topics = 1, .brokers = "b"}),
            (Texts{"lane 1: a broker", restoring, "a-1 is restoring: 4 offsets to go, up to 9, in some 2s",
                   "c is gone"}));
  EXPECT_EQ(of({.topics = 2, .brokers = "b"}),
            (Texts{assigned, "lane 1: a broker", absl::StrCat(restoring, " (and 1 more partitions)"),
                   "c is gone"}));
  EXPECT_EQ(of({.is_routing = true,
                .brokers = "b",
                .unanswered = absl::UnavailableError("away"),
                .unanswered_for = absl::Seconds(7)}),
            (Texts{"the brokers at b have not told where logs end, for 7s: away", "routing lane 1: a broker",
                   absl::StrCat(restoring, " (and 1 more partitions)"), "c is gone"}));
}

}  // namespace
}  // namespace lethe
