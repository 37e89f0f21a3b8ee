#include "src/cli/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lethe {
namespace {

kafka::DaemonReport TwoPartitions() {
  kafka::DaemonReport report;
  report.input = "orders";
  report.memory_used_bytes = 1000;
  report.memory_limit_bytes = 2000;
  report.lanes.resize(1);
  report.lanes[0].commits = 7;
  report.lanes[0].partitions.resize(2);
  report.lanes[0].partitions[1].partition = 1;
  kafka::PartitionReport& partition = report.lanes[0].partitions[1];
  partition.phase = kafka::Phase::kActive;
  partition.counts = {.unique = 10,
                      .duplicate = 3,
                      .missing_id = 2,
                      .malformed = 1,
                      .undeliverable = 4,
                      .suppressed = 6,
                      .passed = 12,
                      .tagged = 3,
                      .diverted = 1,
                      .dropped = 7,
                      .malformed_delta = 5,
                      .unkeyed = 8};
  partition.committed = 90;
  partition.position = 95;
  partition.high_watermark = 100;
  return report;
}

// "name{label=value,...}" to value, over all families.
std::map<std::string, double> Values(const kafka::DaemonReport& report) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : Metrics(report)) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string name = family.name;
      for (const auto& label : metric.label) absl::StrAppend(&name, ",", label.name, "=", label.value);
      EXPECT_TRUE(values
                      .emplace(name, family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                                                    : metric.gauge.value)
                      .second)
          << name << " is there twice";
    }
  }
  return values;
}

TEST(MetricsTest, SayWhatTheReportSays) {
  auto values = Values(TwoPartitions());
  EXPECT_EQ(values["lethe_memory_used_bytes"], 1000);
  EXPECT_EQ(values["lethe_memory_limit_bytes"], 2000);
  EXPECT_EQ(values["lethe_transactions_committed_total,lane=0"], 7);
  const std::string where = ",topic=orders,partition=1";
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=unique")], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=duplicate")], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=missing_id")], 2);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=malformed")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=undeliverable")], 4);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=passed")], 12);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=tagged")], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=diverted")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=dropped")], 7);
  EXPECT_EQ(values[absl::StrCat("lethe_suppressed_records_total", where)], 6);
  EXPECT_EQ(values[absl::StrCat("lethe_malformed_deltas_total", where)], 5);
  EXPECT_EQ(values[absl::StrCat("lethe_unkeyed_records_total", where)], 8);
  EXPECT_EQ(values[absl::StrCat("lethe_lag_records", where)], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_restoring", where)], 0);
  EXPECT_EQ(values["lethe_restoring,topic=orders,partition=0"], 1);
}

// What is routed is judged in the second stage, and counted there; what is not, in the first.
TEST(MetricsTest, ThoseOfTheFirstStageAreApart) {
  kafka::DaemonReport report = TwoPartitions();
  report.routing_input = "web-orders";
  report.routing_lanes.resize(1);
  report.routing_lanes[0].commits = 3;
  report.routing_lanes[0].partitions.resize(1);
  report.routing_lanes[0].partitions[0].counts = {
      .unique = 16, .undeliverable = 1, .passed = 16, .dropped = 1};
  report.routing_lanes[0].partitions[0].committed = 17;
  auto values = Values(report);
  const std::string where = ",topic=web-orders,partition=0";
  EXPECT_EQ(values["lethe_transactions_committed_total,lane=routing-0"], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_routed_records_total", where)], 16);
  EXPECT_EQ(values[absl::StrCat("lethe_committed_offset", where)], 17);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=undeliverable")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=dropped")], 1);
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_records_total", where, ",verdict=unique")));
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_record_actions_total", where, ",action=passed")));
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_filter_ids", where)));
}

TEST(MetricsTest, LagIsNoneAtTheEndOfALogOfControlRecords) {
  kafka::DaemonReport report = TwoPartitions();
  report.lanes[0].partitions[1].position = 100;
  EXPECT_EQ(Values(report)["lethe_lag_records,topic=orders,partition=1"], 0);
}

// The table of dashboards/README.md has each metric once, with its type and help, and no other.
TEST(MetricsTest, TheReadmeHasThemAll) {
  std::set<std::string> documented;
  std::ifstream file(absl::StrCat(LETHE_SOURCE_DIR, "/dashboards/README.md"));
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `lethe_")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    ASSERT_EQ(cells.size(), 4u) << line;
    documented.insert(absl::StrCat(cells[0].substr(3, cells[0].size() - 4), " ", cells[1], " ",
                                   cells[3].substr(0, cells[3].size() - 2)));
  }
  std::set<std::string> exported;
  for (const prometheus::MetricFamily& family : Metrics(TwoPartitions())) {
    exported.insert(absl::StrCat(family.name, " ",
                                 family.type == prometheus::MetricType::Counter ? "counter" : "gauge", " ",
                                 family.help));
  }
  EXPECT_EQ(documented, exported);
}

}  // namespace
}  // namespace lethe
