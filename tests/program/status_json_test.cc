// What /status says of partitions and topics.
#include "src/cli/service/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/pipeline/report/readiness.h"
#include "src/pipeline/report/report.h"

namespace lethe {
namespace {

nlohmann::json StatusOf(const DaemonReport& report) {
  return nlohmann::json::parse(StatusJson(report, std::nullopt, std::nullopt));
}

DaemonReport OneActivePartition() {
  DaemonReport report;
  report.topics.emplace_back().input = "orders";
  report.lanes.resize(1);
  report.lanes[0].partitions.resize(1);
  report.lanes[0].partitions[0].topic = "orders";
  report.lanes[0].partitions[0].phase = Phase::kActive;
  return report;
}

TEST(StatusJsonTest, LagAndStateAreUnknownWhileTheBrokersDoNotAnswer) {
  DaemonReport report = OneActivePartition();
  EXPECT_EQ(StatusOf(report)["partitions"][0]["phase"], "active");
  EXPECT_EQ(StatusOf(report)["topics"][0]["lag_records"], 0);
  SetUnanswered(report);
  const nlohmann::json status = StatusOf(report);
  EXPECT_EQ(status["partitions"][0]["phase"], "unknown");
  EXPECT_TRUE(status["partitions"][0]["lag_records"].is_null());
  EXPECT_EQ(status["topics"][0]["phase"], "unknown");
  EXPECT_TRUE(status["topics"][0]["lag_records"].is_null());
}

// Whether partitions of the topic have lag is not known either.
TEST(StatusJsonTest, LagOfATopicWithoutPartitionsIsUnknownWithoutAnAnswer) {
  DaemonReport report = OneActivePartition();
  report.lanes[0].partitions.clear();
  EXPECT_EQ(StatusOf(report)["topics"][0]["lag_records"], 0);
  SetUnanswered(report);
  EXPECT_TRUE(StatusOf(report)["topics"][0]["lag_records"].is_null());
}

TEST(StatusJsonTest, AFailureStaysAFailureWithoutAnAnswer) {
  DaemonReport report = OneActivePartition();
  report.lanes[0].partitions[0].phase = Phase::kFailed;
  SetUnanswered(report);
  EXPECT_EQ(StatusOf(report)["partitions"][0]["phase"], "failed");
}

// While an id drops everything a partition is active, and the page must not show it as it shows all others.
TEST(StatusJsonTest, APartitionAndItsTopicSayWhatIsNotAsItShouldBe) {
  using Notices = std::vector<std::string>;
  DaemonReport report = OneActivePartition();
  report.topics.emplace_back().input = "clicks";
  report.lanes.resize(2);
  report.lanes[1].partitions.resize(2, report.lanes[0].partitions[0]);
  EXPECT_EQ(StatusOf(report)["partitions"][0]["notices"], Notices());
  EXPECT_EQ(StatusOf(report)["topics"][0]["notices"], Notices());
  PartitionReport& moved = report.lanes[0].partitions[0];
  moved.keys_moved = moved.short_history = true;
  PartitionReport& shared = report.lanes[1].partitions[0];
  shared.partition = 1;
  shared.shared_id = SharedIdWatch::Pair{701, 702};
  PartitionReport& jumped = report.lanes[1].partitions[1];
  jumped.partition = 2;
  jumped.duplicates_jumped = DuplicateWatch::Jump();
  jumped.filter.filter.lost_ids = 1;
  jumped.expiring = ExpiryWatch::Stretch();
  const nlohmann::json status = StatusOf(report);
  EXPECT_EQ(status["partitions"][0]["notices"], (Notices{"short_history", "keys_moved"}));
  EXPECT_EQ(status["partitions"][1]["notices"], Notices{"shared_id"});
  EXPECT_EQ(status["partitions"][2]["notices"],
            (Notices{"expired_records", "lost_ids", "duplicates_jumped"}));
  EXPECT_EQ(status["topics"][0]["notices"], (Notices{"shared_id", "expired_records", "lost_ids",
                                                     "duplicates_jumped", "short_history", "keys_moved"}));
  EXPECT_EQ(status["topics"][1]["notices"], Notices());
}

}  // namespace
}  // namespace lethe
