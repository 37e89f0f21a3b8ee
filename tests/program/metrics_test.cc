#include "src/cli/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "connectors/http/responses.h"
#include "src/cli/metrics/metrics_page.h"
#include "src/pipeline/report/lane_figures.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

DaemonReport TwoPartitions() {
  DaemonReport report;
  report.topics = {{.input = "orders", .output = "orders-unique", .engine = "compact"}};
  report.first.input = "orders";
  report.first.output = "orders-unique";
  report.group = "shop";
  report.instance = "lethe-0";
  report.first.engine = "compact";
  report.first.horizon = absl::Hours(1);
  report.foreign_members = {"rdkafka on host /10.0.0.7", "rdkafka on host /10.0.0.8"};
  report.memory_used_bytes = 1000;
  report.memory_limit_bytes = 2000;
  report.schemas = {.known = 8,
                    .waiting = 1,
                    .memory_bytes = 5,
                    .folder_bytes = 6,
                    .answered = 9,
                    .unknown = 2,
                    .refused = 3,
                    .failed = 4};
  report.stores.push_back({.counter = "likes",
                           .connected = true,
                           .lag = 5,
                           .behind = absl::Seconds(3),
                           .totals = 9,
                           .failures = 2});
  report.lanes.resize(1);
  report.lanes[0].transactions.committed = 7;
  report.lanes[0].transactions.renewals = 2;
  report.lanes[0].histograms = LaneFigures().histograms();
  for (const double seconds : {0.004, 0.07, 0.07, 1e9}) {
    report.lanes[0].histograms.latency_seconds.Add(seconds);
  }
  report.lanes[0].consumer = {.known = true, .round_trip = absl::Milliseconds(3), .queued_bytes = 11};
  report.lanes[0].producer = {.known = true, .sent_bytes = 12, .throttled = absl::Milliseconds(250)};
  report.lanes[0].partitions.resize(2);
  for (PartitionReport& each : report.lanes[0].partitions) each.topic = "orders";
  report.lanes[0].partitions[1].partition = 1;
  report.lanes[0].partitions[0].filter.filter = {
      .shape = {.past_generations = 4},
      .fpp = {.modelled = 3e-7, .estimated = 5e-7, .deviation = 4e-9},
      .window = absl::Minutes(50)};
  report.lanes[0].partitions[0].filter.audit = {.share = 0.5, .fresh = 1000, .false_drops = 1};
  report.lanes[0].partitions[0].restore.left = 33;
  report.lanes[0].partitions[0].restore.time_left = absl::Milliseconds(1500);
  report.snapshots = {.taken = 8, .errors = 9, .last_seconds = 0.25};
  PartitionReport& partition = report.lanes[0].partitions[1];
  partition.phase = Phase::kActive;
  partition.counts = {.unique = 10,
                      .duplicate = 3,
                      .missing_id = 2,
                      .malformed = 1,
                      .undeliverable = 4,
                      .unreadable = 9,
                      .suppressed = 6,
                      .passed = 12,
                      .tagged = 3,
                      .diverted = 1,
                      .dropped = 7,
                      .counters = {.updates = 11, .malformed = 5, .overflowed = 7},
                      .unkeyed = 8,
                      .future = 9,
                      .suspicious = 10,
                      .expired = 11,
                      .later_place = 12,
                      .partial_id = 13};
  partition.log.committed = 90;
  partition.counted_keys = 14;
  partition.log.position = 95;
  partition.restore.snapshot_offset = 40;
  partition.unread_deleted = 12;
  partition.short_history = true;
  partition.keys_moved = true;
  partition.duplicates_jumped = DuplicateWatch::Jump();
  partition.log.high_watermark = 100;
  partition.filter.filter = {.shape = {.past_generations = 6, .lines = 512},
                             .fpp = {.modelled = 2e-7, .estimated = 1e-7, .deviation = 3e-9},
                             .window = absl::Minutes(70),
                             .lost_ids = 21,
                             .step_counts = {{AdaptationStep::Kind::kRefresh, "full", 8},
                                             {AdaptationStep::Kind::kUnfold, "\"short\"", 2}}};
  partition.filter.audit = {.share = 0.5, .fresh = 3000, .false_drops = 3};
  return report;
}

const MetricsOptions kFolded = {.per_partition = false, .configuration = "f00d"};
const MetricsOptions kEach = {.per_partition = true, .configuration = "f00d"};

// "name,label=value,..." to value, over all families.
std::map<std::string, double> Values(const DaemonReport& report, const MetricsOptions& options = kEach) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : Metrics(report, options)) {
    for (const prometheus::ClientMetric& metric : family.metric) {
      std::string name = family.name;
      for (const auto& label : metric.label) absl::StrAppend(&name, ",", label.name, "=", label.value);
      EXPECT_TRUE(values
                      .emplace(name, family.type == kCounter     ? metric.counter.value
                                     : family.type == kHistogram ? metric.histogram.sample_sum
                                                                 : metric.gauge.value)
                      .second)
          << name << " is there twice";
    }
  }
  return values;
}

TEST(MetricsTest, SayWhatTheReportSays) {
  auto values = Values(TwoPartitions());
  EXPECT_EQ(values["lethe_memory_used_bytes,group=shop"], 1000);
  EXPECT_EQ(values["lethe_memory_limit_bytes,group=shop"], 2000);
  EXPECT_EQ(values["lethe_filter_horizon_seconds,group=shop"], 3600);
  EXPECT_EQ(values["lethe_ready,group=shop"], 1);
  EXPECT_EQ(values["lethe_foreign_members,group=shop"], 2);
  EXPECT_EQ(values["lethe_schemas_known,group=shop"], 8);
  EXPECT_EQ(values["lethe_schemas_waiting,group=shop"], 1);
  EXPECT_EQ(values["lethe_schema_memory_bytes,group=shop"], 5);
  EXPECT_EQ(values["lethe_schema_folder_bytes,group=shop"], 6);
  EXPECT_EQ(values["lethe_schema_requests_total,group=shop,result=answered"], 9);
  EXPECT_EQ(values["lethe_schema_requests_total,group=shop,result=unknown"], 2);
  EXPECT_EQ(values["lethe_schema_requests_total,group=shop,result=refused"], 3);
  EXPECT_EQ(values["lethe_schema_requests_total,group=shop,result=failed"], 4);
  EXPECT_EQ(values["lethe_info,group=shop,input=orders,output=orders-unique,member=lethe-0,engine=compact,"
                   "configuration=f00d"],
            1);
  EXPECT_EQ(values["lethe_transactions_committed_total,group=shop,lane=0"], 7);
  EXPECT_EQ(values["lethe_producer_renewals_total,group=shop,lane=0"], 2);
  EXPECT_EQ(values["lethe_lane_lag_records,group=shop,lane=0"], 10);
  EXPECT_EQ(values["lethe_client_round_trip_seconds,group=shop,lane=0,client=consumer"], 0.003);
  EXPECT_EQ(values["lethe_client_sent_bytes_total,group=shop,lane=0,client=producer"], 12);
  EXPECT_EQ(values["lethe_client_throttled_seconds_total,group=shop,lane=0,client=producer"], 0.25);
  const std::string where = ",group=shop,topic=orders,partition=1";
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=unique")], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=duplicate")], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=missing_id")], 2);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=malformed")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=undeliverable")], 4);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=unreadable")], 9);
  EXPECT_EQ(values[absl::StrCat("lethe_adaptation_steps_total", where, ",kind=refresh,reason=full")], 8);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=passed")], 12);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=tagged")], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=diverted")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=dropped")], 7);
  EXPECT_EQ(values[absl::StrCat("lethe_suppressed_records_total", where)], 6);
  EXPECT_EQ(values[absl::StrCat("lethe_deltas_total", where)], 11);
  EXPECT_EQ(values[absl::StrCat("lethe_malformed_deltas_total", where)], 5);
  EXPECT_EQ(values[absl::StrCat("lethe_overflowed_deltas_total", where)], 7);
  EXPECT_EQ(values[absl::StrCat("lethe_counted_keys", where)], 14);
  EXPECT_EQ(values[absl::StrCat("lethe_unkeyed_records_total", where)], 8);
  EXPECT_EQ(values[absl::StrCat("lethe_future_timestamps_total", where)], 9);
  EXPECT_EQ(values[absl::StrCat("lethe_suspicious_duplicates_total", where)], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_expired_records_total", where)], 11);
  EXPECT_EQ(values[absl::StrCat("lethe_duplicates_jumped", where)], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_later_place_ids_total", where)], 12);
  EXPECT_EQ(values[absl::StrCat("lethe_partial_ids_total", where)], 13);
  EXPECT_EQ(values[absl::StrCat("lethe_lag_records", where)], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_lines", where)], 512);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_fpp_estimated_ratio", where)], 1e-7);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_fpp_estimated_deviation_ratio", where)], 3e-9);
  EXPECT_EQ(values[absl::StrCat("lethe_restoring", where)], 0);
  const std::string restoring = ",group=shop,topic=orders,partition=0";
  EXPECT_EQ(values[absl::StrCat("lethe_restore_remaining_offsets", restoring)], 33);
  EXPECT_EQ(values[absl::StrCat("lethe_restore_remaining_seconds", restoring)], 1.5);
  EXPECT_EQ(values[absl::StrCat("lethe_restore_remaining_seconds", where)], 0);
  EXPECT_EQ(values[absl::StrCat("lethe_snapshot_offset", where)], 40);
  EXPECT_EQ(values[absl::StrCat("lethe_snapshot_offset", restoring)], -1);
  EXPECT_EQ(values[absl::StrCat("lethe_unread_deleted_offsets_total", where)], 12);
  EXPECT_EQ(values[absl::StrCat("lethe_short_history", where)], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_short_history", restoring)], 0);
  EXPECT_EQ(values[absl::StrCat("lethe_keys_moved", where)], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_lost_ids_total", where)], 21);
  EXPECT_EQ(values[absl::StrCat("lethe_keys_moved", restoring)], 0);
  EXPECT_EQ(values["lethe_snapshots_total,group=shop"], 8);
  EXPECT_EQ(values["lethe_snapshot_errors_total,group=shop"], 9);
  EXPECT_EQ(values["lethe_snapshot_last_seconds,group=shop"], 0.25);
  EXPECT_EQ(values["lethe_restoring,group=shop,topic=orders,partition=0"], 1);
}

TEST(MetricsTest, FoldPartitionsIntoTheirTopic) {
  auto values = Values(TwoPartitions(), kFolded);
  const std::string where = ",group=shop,topic=orders";
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=unique")], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_adaptation_steps_total", where, ",kind=unfold,reason=\"short\"")], 2);
  EXPECT_EQ(values[absl::StrCat("lethe_lag_records", where)], 10);
  EXPECT_EQ(values[absl::StrCat("lethe_restoring", where)], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_fpp_modelled_ratio", where)], 3e-7);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_fpp_estimated_deviation_ratio", where)], 4e-9);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_past_generations", where)], 6);
  EXPECT_EQ(values[absl::StrCat("lethe_filter_window_seconds", where)], 3000);
  // One audit of 4,000 events with 4 false drops, and not the mean of two.
  EXPECT_EQ(values[absl::StrCat("lethe_audit_fpp_measured_ratio", where)], 1e-3);
  EXPECT_GT(values[absl::StrCat("lethe_audit_fpp_low_ratio", where)], 1e-4);
  EXPECT_LT(values[absl::StrCat("lethe_audit_fpp_high_ratio", where)], 1e-2);
  for (const auto& [name, value] : values) {
    EXPECT_THAT(name, Not(HasSubstr("partition=")));
    EXPECT_THAT(name, Not(StartsWith("lethe_committed_offset")));
  }
}

TEST(MetricsTest, ThePartitionsOfATopicMayBeNone) {
  DaemonReport report = TwoPartitions();
  report.lanes[0].partitions.clear();
  EXPECT_TRUE(Values(report, kFolded).contains("lethe_lane_lag_records,group=shop,lane=0"));
  EXPECT_FALSE(Values(report, kFolded).contains("lethe_lag_records,group=shop,topic=orders"));
}

DaemonReport TwoStages() {
  DaemonReport report = TwoPartitions();
  report.topics[0].routed_from = {"web-orders"};
  report.routing_lanes.resize(1);
  report.routing_lanes[0].transactions.committed = 3;
  report.routing_lanes[0].partitions.resize(1);
  report.routing_lanes[0].partitions[0].topic = "web-orders";
  report.routing_lanes[0].partitions[0].counts = {
      .unique = 16, .undeliverable = 1, .passed = 16, .dropped = 1};
  report.routing_lanes[0].partitions[0].log.committed = 17;
  return report;
}

// What is routed is judged in the second stage, and counted there; what is not, in the first.
TEST(MetricsTest, ThoseOfTheFirstStageAreApart) {
  EXPECT_EQ(Values(TwoStages(), kFolded)["lethe_routed_records_total,group=shop,topic=web-orders"], 16);
  const DaemonReport report = TwoStages();
  auto values = Values(report);
  const std::string where = ",group=shop,topic=web-orders,partition=0";
  EXPECT_EQ(values["lethe_transactions_committed_total,group=shop,lane=routing-0"], 3);
  EXPECT_EQ(values[absl::StrCat("lethe_routed_records_total", where)], 16);
  EXPECT_EQ(values[absl::StrCat("lethe_committed_offset", where)], 17);
  EXPECT_EQ(values[absl::StrCat("lethe_records_total", where, ",verdict=undeliverable")], 1);
  EXPECT_EQ(values[absl::StrCat("lethe_record_actions_total", where, ",action=dropped")], 1);
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_records_total", where, ",verdict=unique")));
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_record_actions_total", where, ",action=passed")));
  EXPECT_FALSE(values.contains(absl::StrCat("lethe_filter_ids", where)));
}

TEST(MetricsTest, PartitionsOfSeveralTopicsAreThoseOfTheirTopic) {
  DaemonReport report = TwoPartitions();
  report.lanes[0].partitions.push_back(report.lanes[0].partitions[1]);
  report.lanes[0].partitions[2].topic = "clicks";
  report.lanes[0].partitions[2].counts.unique = 5;
  report.stores.push_back({.counter = "likes", .connected = false, .lag = 2});
  auto values = Values(report);
  EXPECT_EQ(values["lethe_records_total,group=shop,topic=orders,partition=1,verdict=unique"], 10);
  EXPECT_EQ(values["lethe_records_total,group=shop,topic=clicks,partition=1,verdict=unique"], 5);
  EXPECT_EQ(Values(report, kFolded)["lethe_records_total,group=shop,topic=clicks,verdict=unique"], 5);
  // Counters of one name are one.
  EXPECT_EQ(values["lethe_store_lag_records,group=shop,counter=likes"], 7);
  EXPECT_EQ(values["lethe_store_connected,group=shop,counter=likes"], 0);
}

// lethe is ready if another topic is read, and no partition tells of this one.
TEST(MetricsTest, TopicsThatAreNotReadAreCounted) {
  DaemonReport report = TwoPartitions();
  const std::string named = "lethe_topics_unread,group=shop,listed=name";
  const std::string matched = "lethe_topics_unread,group=shop,listed=pattern";
  auto values = Values(report);
  EXPECT_EQ(values.at(named), 0);
  EXPECT_EQ(values.at(matched), 0);
  report.topics.push_back({.input = "clicks", .output = "", .problem = "the output is missing"});
  for (const char* stranger : {"a", "b"}) {
    report.topics.push_back({.input = stranger, .output = "", .problem = "is missing", .is_named = false});
  }
  values = Values(report);
  EXPECT_EQ(values.at("lethe_ready,group=shop"), 1);
  EXPECT_EQ(values.at(named), 1);
  EXPECT_EQ(values.at(matched), 2);
  // Each lane says which topics are gone.
  report.lanes.resize(2);
  for (LaneReport& lane : report.lanes) lane.gone = {{"orders", "it was deleted"}};
  report.lanes[1].lane = 1;
  EXPECT_EQ(Values(report).at(named), 2);
  report.topics[0].input = "repartition";
  report.topics[0].routed_from = {"web-orders", "orders"};
  EXPECT_EQ(Values(report).at(named), 2);
}

TEST(MetricsTest, LagIsNoneAtTheEndOfALogOfControlRecords) {
  DaemonReport report = TwoPartitions();
  report.lanes[0].partitions[1].log.position = 100;
  EXPECT_EQ(Values(report)["lethe_lag_records,group=shop,topic=orders,partition=1"], 0);
}

TEST(MetricsTest, HistogramsAreCumulative) {
  for (const prometheus::MetricFamily& family : Metrics(TwoPartitions(), kEach)) {
    if (family.name != "lethe_end_to_end_latency_seconds") continue;
    ASSERT_EQ(family.metric.size(), 1u);
    const auto& histogram = family.metric[0].histogram;
    EXPECT_EQ(histogram.sample_count, 4u);
    EXPECT_EQ(histogram.bucket.front().cumulative_count, 1u);
    EXPECT_EQ(histogram.bucket.back().cumulative_count, 4u);
    EXPECT_EQ((histogram.bucket.end() - 2)->cumulative_count, 3u);
    for (const auto& bucket : histogram.bucket) {
      if (bucket.upper_bound == 0.1) {
        EXPECT_EQ(bucket.cumulative_count, 3u);
      }
    }
    return;
  }
  FAIL() << "there is no such family";
}

TEST(MetricsTest, TellOfTheProcess) {
  auto values = Values(TwoPartitions());
  EXPECT_GT(values["process_resident_memory_bytes"], 1 << 20);
  EXPECT_GE(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"]);
  EXPECT_GE(values["process_cpu_seconds_total"], 0);
  EXPECT_NEAR(values["process_start_time_seconds"], static_cast<double>(time(nullptr)), 600);
  EXPECT_GE(values["process_open_fds"], 3);
  EXPECT_GT(values["process_max_fds"], values["process_open_fds"]);
}

TEST(MetricsTest, AreDefinedInTheOrderInWhichTheyCome) {
  const std::vector<MetricDefinition> definitions = MetricDefinitions();
  const std::vector<prometheus::MetricFamily> families = Metrics(TwoStages(), kEach);
  ASSERT_EQ(definitions.size(), families.size());
  for (size_t i = 0; i < families.size(); ++i) {
    SCOPED_TRACE(families[i].name);
    EXPECT_EQ(definitions[i].name, families[i].name);
    EXPECT_FALSE(families[i].metric.empty());
    for (const prometheus::ClientMetric& metric : families[i].metric) {
      std::string labels;
      for (const auto& label : metric.label) absl::StrAppend(&labels, labels.empty() ? "" : ", ", label.name);
      EXPECT_EQ(labels, definitions[i].labels);
    }
  }
}

// What Prometheus' own tool says of names, units, types and help.
TEST(MetricsTest, PromtoolHasNoComplaint) {
  const std::string file = testing::TempDir() + "metrics_test.prom";
  for (const MetricsOptions& options : {kEach, kFolded}) {
    std::ofstream(file) << http::MetricsText(Metrics(TwoPartitions(), options)).body;
    const std::string command = absl::StrCat("promtool check metrics < ", file, " 2>&1");
    FILE* promtool = popen(command.c_str(), "r");
    ASSERT_NE(promtool, nullptr);
    std::string said;
    for (int c = 0; (c = fgetc(promtool)) != EOF;) said += static_cast<char>(c);
    EXPECT_EQ(pclose(promtool), 0) << "promtool comes with Debian's package prometheus";
    EXPECT_EQ(said, "");
  }
  std::filesystem::remove(file);
}

TEST(MetricsTest, TheHelpSaysAllOfEachMetric) {
  const std::string page = MetricsPage();
  for (const MetricDefinition& metric : MetricDefinitions()) {
    const size_t at = page.find(absl::StrCat("\n\n", metric.name, "\n"));
    ASSERT_NE(at, std::string::npos) << metric.name;
    const std::string entry = page.substr(at, page.find("\n\n", at + 2) - at);
    for (const char* part : {metric.labels, metric.unit, metric.meaning, metric.remedy}) {
      EXPECT_THAT(entry, HasSubstr(part)) << metric.name << ": " << part;
    }
  }
}

// What is looked up most; `lethe help metrics` has the rest.
std::string List() {
  std::string list;
  for (const MetricDefinition& metric : MetricDefinitions()) {
    absl::StrAppend(&list, "- `", metric.name, "`: ", metric.meaning, "\n");
  }
  return list;
}

// The list is made of the definitions: with LETHE_WRITE=1 in the environment it is written again.
TEST(MetricsTest, TheReadmeHasTheList) {
  const std::string path = absl::StrCat(LETHE_SOURCE_DIR, "/dashboards/README.md");
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  const std::string text = page.str();
  const std::string begin = "<!-- metrics -->\n";
  const size_t from = text.find(begin) + begin.size();
  const size_t to = text.find("<!-- end of metrics -->");
  ASSERT_LE(from, to);
  ASSERT_NE(to, std::string::npos);
  if (std::getenv("LETHE_WRITE") != nullptr) {
    std::ofstream(path) << text.substr(0, from) << List() << text.substr(to);
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), List())
      << "write it again: LETHE_WRITE=1 build/tests/program/metrics_test";
}

}  // namespace
}  // namespace lethe
