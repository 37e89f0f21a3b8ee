#include "src/cli/metrics/metrics.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/cli/metrics/partition_metrics.h"
#include "src/cli/metrics/process_metrics.h"
#include "src/pipeline/report/readiness.h"

namespace lethe {
namespace {
using prometheus::MetricFamily;

constexpr MetricDefinition kBuildInfo = {"lethe_build_info",
                                         kGauge,
                                         "version",
                                         "1",
                                         "Always 1; the version is a label.",
                                         "Two versions for long: a rollout is incomplete."};
constexpr MetricDefinition kInfo = {
    "lethe_info",
    kGauge,
    "group, input, output, member, engine, configuration",
    "1",
    "Always 1; labels describe the process, with a fingerprint of its configuration.",
    "Two fingerprints in a group: its instances have different configurations."};

struct DaemonMetric {
  MetricDefinition definition;
  double (*value)(const DaemonReport&);
};
constexpr DaemonMetric kDaemonMetrics[] = {
    {{"lethe_ready", kGauge, "group", "1 or 0",
      "1 if every lane is in the group and makes progress, and its partitions are active.",
      "/readyz says what lethe waits for."},
     [](const DaemonReport& r) { return r.not_ready.empty() ? 1.0 : 0.0; }},
    {{"lethe_foreign_members", kGauge, "group", "members", "Members of lethe's groups that are not lethe's.",
      "Above 0: they get partitions, whose records lethe does not see. The log names them: stop them, or "
      "give them another group."},
     [](const DaemonReport& r) { return static_cast<double>(r.foreign_members.size()); }},
    {{"lethe_memory_used_bytes", kGauge, "group", "bytes", "Memory of all filters of the process.",
      "Near the limit: raise `memory` before it is reached. Filters of partitions that moved away count, "
      "too, until others need their memory."},
     [](const DaemonReport& r) { return static_cast<double>(r.memory_used_bytes); }},
    {{"lethe_memory_limit_bytes", kGauge, "group", "bytes", "Memory limit of all filters of the process.",
      "Set by `memory`."},
     [](const DaemonReport& r) { return static_cast<double>(r.memory_limit_bytes); }},
    {{"lethe_snapshots_total", kCounter, "group", "snapshots", "Snapshots taken by the process.",
      "None for longer than `snapshots.every`: the log says why."},
     [](const DaemonReport& r) { return static_cast<double>(r.snapshots.taken); }},
    {{"lethe_snapshot_errors_total", kCounter, "group", "snapshots",
      "Snapshots that could not be written; processing continued.",
      "The log says why, for example a full disk. Restores get longer until one is written."},
     [](const DaemonReport& r) { return static_cast<double>(r.snapshots.errors); }},
    {{"lethe_snapshot_last_seconds", kGauge, "group", "seconds", "Time to write the last snapshot.",
      "Near `snapshots.every`: take them less often, or on a faster disk."},
     [](const DaemonReport& r) { return r.snapshots.last_seconds; }},
    {{"lethe_filter_horizon_seconds", kGauge, "group", "seconds", "H: how late a copy may come.",
      "Set by `horizon`."},
     [](const DaemonReport& r) { return absl::ToDoubleSeconds(r.first.horizon); }},
};

constexpr MetricDefinition kUnreadTopics = {
    "lethe_topics_unread",
    kGauge,
    "group, listed",
    "topics",
    "Topics that lethe does not read, listed by `name`, or matched by a `pattern` alone.",
    "Above 0: /readyz says why, for example that an output is missing. lethe_ready stays 1 while another "
    "topic is read."};

struct SchemaMetric {
  MetricDefinition definition;
  double (*value)(const SchemaFigures&);
};
constexpr SchemaMetric kSchemaMetrics[] = {
    {{"lethe_schemas_known", kGauge, "group", "schemas", "Schemas that lethe has from the schema registry.",
      "Thousands: producers register a new schema again and again."},
     [](const SchemaFigures& s) { return static_cast<double>(s.known); }},
    {{"lethe_schemas_waiting", kGauge, "group", "schemas",
      "Schemas that lethe asks the registry for (the most of the last 5 s); partitions with such records "
      "wait.",
      "Not 0 for more than some seconds: /readyz and the log say what the registry answers."},
     [](const SchemaFigures& s) { return static_cast<double>(s.waiting); }},
    {{"lethe_schema_memory_bytes", kGauge, "group", "bytes", "What lethe has made of the schemas, in memory.",
      "Near 16 MiB: those that were not used for the longest time are forgotten, and fetched again if "
      "needed."},
     [](const SchemaFigures& s) { return static_cast<double>(s.memory_bytes); }},
    {{"lethe_schema_folder_bytes", kGauge, "group", "bytes", "Schemas in the folder of `snapshots`.",
      "Near 64 MiB: those that were not used for the longest time are deleted."},
     [](const SchemaFigures& s) { return static_cast<double>(s.folder_bytes); }},
};
constexpr MetricDefinition kSchemaRequests = {
    "lethe_schema_requests_total",
    kCounter,
    "group, result",
    "requests",
    "Requests to the schema registry: answered, unknown (no such schema), refused (401, 403), failed.",
    "Refused or failed rise: the log says why. Unknown rises: records name schemas that the registry lacks."};

struct StoreMetric {
  MetricDefinition definition;
  double (*value)(const StoreReport&);
};
constexpr const char* kStoreLabels = "group, counter";
constexpr StoreMetric kStoreMetrics[] = {
    {{"lethe_store_connected", kGauge, kStoreLabels, "1 or 0",
      "1 if the last call of the counter's store succeeded.",
      "0: the log and /readyz say why. Totals stay in their topic until the store answers."},
     [](const StoreReport& s) { return s.connected ? 1.0 : 0.0; }},
    {{"lethe_store_lag_records", kGauge, kStoreLabels, "records",
      "Committed totals that are not in the store, with transaction markers.",
      "It grows: the store is unreachable or too slow; see `lethe_store_connected`."},
     [](const StoreReport& s) { return static_cast<double>(s.lag); }},
    {{"lethe_store_lag_seconds", kGauge, kStoreLabels, "seconds",
      "Age of the oldest committed total that is not in the store.",
      "More than some seconds: applications read totals that are this old."},
     [](const StoreReport& s) { return absl::ToDoubleSeconds(s.behind); }},
    {{"lethe_store_totals_total", kCounter, kStoreLabels, "totals",
      "Totals written to the store; of a key in one call, only the last.",
      "No growth while deltas are counted: see `lethe_store_connected`."},
     [](const StoreReport& s) { return static_cast<double>(s.totals); }},
    {{"lethe_store_errors_total", kCounter, kStoreLabels, "calls",
      "Calls of the store that failed; lethe retries them.",
      "It rises: the log says why, once per kind of error."},
     [](const StoreReport& s) { return static_cast<double>(s.failures); }},
};

struct LaneMetric {
  MetricDefinition definition;
  double (*value)(const LaneReport&);
};
constexpr LaneMetric kLaneMetrics[] = {
    {{"lethe_transactions_committed_total", kCounter, "group, lane", "transactions",
      "Transactions committed.", "None while there is lag: /readyz says what lethe waits for."},
     [](const LaneReport& l) { return static_cast<double>(l.transactions.committed); }},
    {{"lethe_transactions_aborted_total", kCounter, "group, lane", "transactions",
      "Transactions aborted; lethe judged their records again.",
      "Repeatedly: the log names the error. No record is lost or repeated."},
     [](const LaneReport& l) { return static_cast<double>(l.transactions.aborted); }},
    {{"lethe_fences_total", kCounter, "group, lane", "times",
      "Producers that were lost, for example fenced, and recreated.",
      "Repeatedly: two processes use the same `instance` name."},
     [](const LaneReport& l) { return static_cast<double>(l.transactions.fences); }},
    {{"lethe_producer_renewals_total", kCounter, "group, lane", "times",
      "Producers that were recreated after a request without an answer, which brokers might apply late.",
      "Repeatedly: brokers or the network close connections, or answer later than `socket.timeout.ms`."},
     [](const LaneReport& l) { return static_cast<double>(l.transactions.renewals); }},
    {{"lethe_lane_waiting", kGauge, "group, lane", "1 or 0",
      "1 while the lane waits for the broker, aborts transactions repeatedly, or makes no progress.",
      "/readyz says what the lane waits for."},
     [](const LaneReport& l) { return l.waiting.empty() ? 0.0 : 1.0; }},
    {{"lethe_sources_passed_over", kGauge, "group, lane", "partitions",
      "With scope: topic, input partitions that stand still; the router no longer waits for them.",
      "Not 0: /readyz names them. Find out why they stand still; copies of records that they still have may "
      "pass."},
     [](const LaneReport& l) { return static_cast<double>(l.passed_over.size()); }},
    {{"lethe_lane_partitions", kGauge, "group, lane", "partitions", "Partitions that the lane owns.",
      "None for long: there are more lanes in the group than partitions."},
     [](const LaneReport& l) { return static_cast<double>(l.partitions.size()); }},
    {{"lethe_lane_lag_records", kGauge, "group, lane", "records",
      "Records that are not committed yet, of all partitions of the lane.",
      "One lane behind the others: its partitions have more traffic."},
     [](const LaneReport& l) {
       double lag = 0;
       for (const PartitionReport& partition : l.partitions) lag += LagOf(partition);
       return lag;
     }},
};

struct LaneHistogram {
  MetricDefinition definition;
  Histogram LaneHistograms::*value;
};
constexpr LaneHistogram kLaneHistograms[] = {
    {{"lethe_batch_records", kHistogram, "group, lane", "records",
      "Records that were polled and judged together.",
      "512 is the most: the lane is busy all the time. A few: it waits for records."},
     &LaneHistograms::batch_records},
    {{"lethe_transaction_duration_seconds", kHistogram, "group, lane", "seconds",
      "From the first record of a transaction to the end of its commit.",
      "In a backlog ten times `commit_interval`. Far over that: commits, or the output, are slow."},
     &LaneHistograms::transaction_seconds},
    {{"lethe_commit_duration_seconds", kHistogram, "group, lane", "seconds",
      "The commit alone: queued records, offsets, and the end of the transaction.",
      "Slow: look at the brokers' disks and network; a longer `commit_interval` makes commits rarer."},
     &LaneHistograms::commit_seconds},
    {{"lethe_end_to_end_latency_seconds", kHistogram, "group, lane", "seconds",
      "From a record's timestamp to its commit. Records polled together count as their oldest.",
      "Normally below `commit_interval`. More: check the lag, then the commit's duration. Senders' wrong "
      "timestamps also show here."},
     &LaneHistograms::latency_seconds},
};

struct ClientMetric {
  MetricDefinition definition;
  double (*value)(const ClientReport&);
};
constexpr const char* kClientLabels = "group, lane, client";
constexpr ClientMetric kClientMetrics[] = {
    {{"lethe_client_round_trip_seconds", kGauge, kClientLabels, "seconds",
      "Mean time of a request to the slowest broker; a consumer's includes up to 0.5 s of waiting for "
      "records.",
      "A producer's of more than some milliseconds: the network or the brokers are slow."},
     [](const ClientReport& c) { return absl::ToDoubleSeconds(c.round_trip); }},
    {{"lethe_client_queued_records", kGauge, kClientLabels, "records",
      "Records queued in librdkafka: fetched ahead, or to be sent.",
      "Consumer at 0 while there is lag: fetching is slow. Producer growing: the output is slow."},
     [](const ClientReport& c) { return static_cast<double>(c.queued_messages); }},
    {{"lethe_client_queued_bytes", kGauge, kClientLabels, "bytes", "The same in bytes.",
      "A consumer's is bounded by `queued.max.messages.kbytes`, a producer's by 4 MiB and one record."},
     [](const ClientReport& c) { return static_cast<double>(c.queued_bytes); }},
    {{"lethe_client_received_bytes_total", kCounter, kClientLabels, "bytes",
      "Bytes received from brokers, on the wire.", "None while there is lag: no broker answers."},
     [](const ClientReport& c) { return static_cast<double>(c.received_bytes); }},
    {{"lethe_client_sent_bytes_total", kCounter, kClientLabels, "bytes",
      "Bytes sent to brokers, on the wire.", "Compare with the received bytes: the share that passed."},
     [](const ClientReport& c) { return static_cast<double>(c.sent_bytes); }},
    {{"lethe_client_request_timeouts_total", kCounter, kClientLabels, "requests",
      "Requests that a broker did not answer in time.", "It rises: a broker is overloaded or was away."},
     [](const ClientReport& c) { return static_cast<double>(c.request_timeouts); }},
    {{"lethe_client_throttled_seconds_total", kCounter, kClientLabels, "seconds",
      "Time for which brokers held this client back by a quota.",
      "It rises: raise the quota of lethe's user or client.id, or accept the lag."},
     [](const ClientReport& c) { return absl::ToDoubleSeconds(c.throttled); }},
};

// All lanes with their names: those that judge, and those that route.
std::vector<std::pair<std::string, const LaneReport*>> AllLanes(const DaemonReport& report) {
  std::vector<std::pair<std::string, const LaneReport*>> lanes;
  for (const LaneReport& lane : report.lanes) lanes.emplace_back(absl::StrCat(lane.lane), &lane);
  for (const LaneReport& lane : report.routing_lanes) {
    lanes.emplace_back(absl::StrCat("routing-", lane.lane), &lane);
  }
  return lanes;
}

Labels LaneLabels(const DaemonReport& report, const std::string& lane) {
  return {{"group", report.group}, {"lane", lane}};
}

MetricFamily ClientFamily(const DaemonReport& report, const ClientMetric& metric) {
  MetricFamily family = NewFamily(metric.definition);
  for (const auto& [lane_name, lane] : AllLanes(report)) {
    for (const auto& [name, client] :
         {std::pair("consumer", &lane->consumer), {"producer", &lane->producer}}) {
      if (!client->known) continue;
      Labels labels = LaneLabels(report, lane_name);
      labels.push_back({"client", name});
      AddSample(metric.value(*client), std::move(labels), &family);
    }
  }
  return family;
}

void AddProcess(const DaemonReport& report, const MetricsOptions& options,
                std::vector<MetricFamily>* families) {
  families->push_back(NewFamily(kBuildInfo));
  AddSample(1, {{"version", LETHE_VERSION}}, &families->back());
  families->push_back(NewFamily(kInfo));
  for (const TopicReport& topic : report.topics) {
    AddSample(1,
              {{"group", report.group},
               {"input", topic.origin()},
               {"output", topic.output},
               {"member", report.instance},
               {"engine", std::string(topic.engine)},
               {"configuration", options.configuration}},
              &families->back());
  }
  for (const DaemonMetric& metric : kDaemonMetrics) {
    families->push_back(NewFamily(metric.definition));
    AddSample(metric.value(report), {{"group", report.group}}, &families->back());
  }
  families->push_back(NewFamily(kUnreadTopics));
  for (const bool named : {true, false}) {
    AddSample(CountUnread(report, named), {{"group", report.group}, {"listed", named ? "name" : "pattern"}},
              &families->back());
  }
}

void AddSchemas(const DaemonReport& report, std::vector<MetricFamily>* families) {
  for (const SchemaMetric& metric : kSchemaMetrics) {
    families->push_back(NewFamily(metric.definition));
    if (report.schemas) {
      AddSample(metric.value(*report.schemas), {{"group", report.group}}, &families->back());
    }
  }
  families->push_back(NewFamily(kSchemaRequests));
  if (!report.schemas) return;
  for (const auto& [result, count] : {std::pair("answered", report.schemas->answered),
                                      {"unknown", report.schemas->unknown},
                                      {"refused", report.schemas->refused},
                                      {"failed", report.schemas->failed}}) {
    AddSample(static_cast<double>(count), {{"group", report.group}, {"result", result}}, &families->back());
  }
}

// Counters of several topics may have one name.
std::map<std::string, StoreReport> StoresByCounter(const DaemonReport& report) {
  std::map<std::string, StoreReport> stores;
  for (const StoreReport& store : report.stores) {
    const auto [found, is_new] = stores.try_emplace(store.counter, store);
    if (is_new) continue;
    StoreReport& all = found->second;
    all.connected = all.connected && store.connected;
    all.lag += store.lag;
    all.behind = std::max(all.behind, store.behind);
    all.totals += store.totals;
    all.failures += store.failures;
  }
  return stores;
}

void AddStores(const DaemonReport& report, std::vector<MetricFamily>* families) {
  const std::map<std::string, StoreReport> stores = StoresByCounter(report);
  for (const StoreMetric& metric : kStoreMetrics) {
    families->push_back(NewFamily(metric.definition));
    for (const auto& [counter, store] : stores) {
      AddSample(metric.value(store), {{"group", report.group}, {"counter", counter}}, &families->back());
    }
  }
}

void AddLanes(const DaemonReport& report, std::vector<MetricFamily>* families) {
  for (const LaneMetric& metric : kLaneMetrics) {
    families->push_back(NewFamily(metric.definition));
    for (const auto& [name, lane] : AllLanes(report)) {
      AddSample(metric.value(*lane), LaneLabels(report, name), &families->back());
    }
  }
  for (const LaneHistogram& metric : kLaneHistograms) {
    families->push_back(NewFamily(metric.definition));
    for (const auto& [name, lane] : AllLanes(report)) {
      AddSample(lane->histograms.*metric.value, LaneLabels(report, name), &families->back());
    }
  }
  for (const ClientMetric& metric : kClientMetrics) families->push_back(ClientFamily(report, metric));
}

template <typename Families>
void Move(Families from, Families* to) {
  to->insert(to->end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::vector<MetricFamily> Metrics(const DaemonReport& report, const MetricsOptions& options) {
  std::vector<MetricFamily> families;
  AddProcess(report, options, &families);
  Move(PartitionMetrics(report, options.per_partition), &families);
  AddSchemas(report, &families);
  AddStores(report, &families);
  AddLanes(report, &families);
  Move(ProcessMetrics(), &families);
  return families;
}

std::vector<MetricDefinition> MetricDefinitions() {
  std::vector<MetricDefinition> all = {kBuildInfo, kInfo};
  for (const DaemonMetric& metric : kDaemonMetrics) all.push_back(metric.definition);
  all.push_back(kUnreadTopics);
  Move(PartitionDefinitions(), &all);
  for (const SchemaMetric& metric : kSchemaMetrics) all.push_back(metric.definition);
  all.push_back(kSchemaRequests);
  for (const StoreMetric& metric : kStoreMetrics) all.push_back(metric.definition);
  for (const LaneMetric& metric : kLaneMetrics) all.push_back(metric.definition);
  for (const LaneHistogram& metric : kLaneHistograms) all.push_back(metric.definition);
  for (const ClientMetric& metric : kClientMetrics) all.push_back(metric.definition);
  all.insert(all.end(), ProcessDefinitions().begin(), ProcessDefinitions().end());
  return all;
}

}  // namespace lethe
