#include "src/cli/service/status_json.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "connectors/prometheus/filter_metrics.h"
#include "lethe/filter.h"
#include "src/pipeline/report/remarks.h"

namespace lethe {
namespace {

using Json = nlohmann::ordered_json;

// Without an answer of the brokers an active partition may have another owner by now.
const char* PhaseName(Phase phase, bool is_answered) {
  switch (phase) {
    case Phase::kChecking:
      return "checking";
    case Phase::kRestoring:
      return "restoring";
    case Phase::kActive:
      return is_answered ? "active" : "unknown";
    case Phase::kHeld:
      return "held";
    case Phase::kFailed:
      return "failed";
  }
  return "";
}

// JSON knows no infinity: null is "without end", or "all since the start".
Json Seconds(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(duration);
}

Json UnixSeconds(absl::Time time) {
  if (time == absl::InfinitePast()) return nullptr;
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

Json Generations(const FilterStatus& filter) {
  Json generations = Json::array();
  for (const GenerationStatus& generation : filter.generations) {
    generations.push_back({{"ids", generation.ids},
                           {"oldest_seconds", Seconds(generation.oldest)},
                           {"newest_seconds", Seconds(generation.newest)},
                           {"fill", generation.fill}});
  }
  return generations;
}

Json Steps(const FilterStatus& filter) {
  Json steps = Json::array();
  for (const AdaptationStep& step : filter.steps) {
    const bool timed = step.stream_time_ms != kNoStreamTime;
    steps.push_back({{"kind", StepKindName(step.kind)},
                     {"reason", std::string(step.reason)},
                     {"stream_time", timed ? Json(static_cast<double>(step.stream_time_ms) / 1000) : Json()},
                     {"generation_bits", step.bits_per_generation}});
  }
  return steps;
}

// What keeps an active partition from being as it should be, the worst first.
struct Notice {
  const char* name;
  bool (*applies)(const PartitionReport&);
};
constexpr Notice kNotices[] = {
    {"shared_id", [](const PartitionReport& p) { return p.shared_id.has_value(); }},
    {"expired_records", [](const PartitionReport& p) { return p.expiring.has_value(); }},
    {"lost_ids", [](const PartitionReport& p) { return p.filter.filter.lost_ids > 0; }},
    {"duplicates_jumped", [](const PartitionReport& p) { return p.duplicates_jumped.has_value(); }},
    {"short_history", [](const PartitionReport& p) { return p.short_history; }},
    {"keys_moved", [](const PartitionReport& p) { return p.keys_moved; }}};
using Notices = std::bitset<std::size(kNotices)>;

Notices NoticesOf(const PartitionReport& partition) {
  Notices notices;
  for (size_t i = 0; i < notices.size(); ++i) notices[i] = kNotices[i].applies(partition);
  return notices;
}

Json NoticesJson(const Notices& notices) {
  Json names = Json::array();
  for (size_t i = 0; i < notices.size(); ++i) {
    if (notices[i]) names.push_back(kNotices[i].name);
  }
  return names;
}

Json FilterJson(const FilterStatus& filter, bool detailed) {
  Json json = {{"past_generations", filter.shape.past_generations},
               {"refresh_period_seconds", Seconds(filter.shape.refresh_period)},
               {"generation_bits", filter.shape.bits_per_generation},
               {"id_bits", filter.shape.bits_per_id},
               {"ids", filter.ids},
               {"window_seconds", Seconds(filter.window)},
               {"fpp_target", filter.fpp.target},
               {"fpp_modelled", filter.fpp.modelled},
               {"fpp_estimated", filter.fpp.estimated},
               {"fpp_estimated_deviation", filter.fpp.deviation},
               {"memory_bytes", filter.memory_bytes},
               {"memory_above_need_bytes", filter.memory_above_need_bytes},
               {"refreshes", filter.refreshes},
               {"memory_limit_hits", filter.limit_hits},
               {"lost_ids", filter.lost_ids}};
  if (detailed) {
    json["generations"] = Generations(filter);
    json["steps"] = Steps(filter);
  }
  return json;
}

Json AuditJson(const AuditStatus& audit) {
  return {{"share", audit.share},
          {"fresh", audit.fresh},
          {"false_drops", audit.false_drops},
          {"copies", audit.copies},
          {"missed", audit.missed},
          {"compared", audit.compared},
          {"payload_mismatches", audit.payload_mismatches},
          {"fpp_measured", audit.fpp_measured},
          {"fpp_low", audit.fpp_low},
          {"fpp_high", audit.fpp_high}};
}

// Columns, since the names would be most of it.
Json HistoryJson(const std::vector<StatusSample>& history, absl::Time now) {
  Json ages = Json::array(), unique = Json::array(), duplicate = Json::array(), fpp = Json::array(),
       ids = Json::array(), memory = Json::array(), past_generations = Json::array(),
       refresh_periods = Json::array();
  for (const StatusSample& sample : history) {
    ages.push_back(absl::ToDoubleSeconds(now - sample.time));
    unique.push_back(sample.unique);
    duplicate.push_back(sample.duplicate);
    fpp.push_back(sample.fpp_estimated);
    ids.push_back(sample.ids);
    memory.push_back(sample.memory_bytes);
    past_generations.push_back(sample.past_generations);
    refresh_periods.push_back(Seconds(sample.refresh_period));
  }
  return {{"seconds_ago", std::move(ages)},
          {"unique", std::move(unique)},
          {"duplicate", std::move(duplicate)},
          {"fpp_estimated", std::move(fpp)},
          {"ids", std::move(ids)},
          {"memory_bytes", std::move(memory)},
          {"past_generations", std::move(past_generations)},
          {"refresh_period_seconds", std::move(refresh_periods)}};
}

Json RecordsJson(const RecordCounts& counts) {
  return {{"unique", counts.unique},
          {"duplicate", counts.duplicate},
          {"missing_id", counts.missing_id},
          {"malformed", counts.malformed},
          {"undeliverable", counts.undeliverable},
          {"unreadable", counts.unreadable}};
}

Json ActionsJson(const RecordCounts& counts) {
  return {{"passed", counts.passed},
          {"tagged", counts.tagged},
          {"diverted", counts.diverted},
          {"dropped", counts.dropped}};
}

// Since the start of the process, also of revoked partitions. With scope: topic a routed record counts where
// it is judged.
Json TotalsJson(const DaemonReport& report) {
  RecordCounts totals;
  for (const LaneReport& lane : report.lanes) totals += lane.totals;
  for (const LaneReport& lane : report.routing_lanes) {
    totals.undeliverable += lane.totals.undeliverable;
    totals.unreadable += lane.totals.unreadable;
    totals.diverted += lane.totals.diverted;
    totals.dropped += lane.totals.dropped;
  }
  return {{"records", RecordsJson(totals)}, {"actions", ActionsJson(totals)}};
}

// Null while the brokers do not answer.
Json LagJson(const LogReport& log) { return log.is_answered ? Json(log.lag()) : Json(); }

Json PartitionJson(const PartitionReport& partition, int lane, bool detailed) {
  return {{"topic", partition.topic},
          {"horizon_seconds", Seconds(partition.horizon)},
          {"partition", partition.partition},
          {"lane", lane},
          {"phase", PhaseName(partition.phase, partition.log.is_answered)},
          {"problem", partition.problem},
          {"notices", NoticesJson(NoticesOf(partition))},
          {"short_history", partition.short_history},
          {"keys_moved", partition.keys_moved},
          {"committed_offset", partition.log.committed},
          {"lag_records", LagJson(partition.log)},
          {"restore",
           {{"from_offset", partition.restore.from},
            {"to_offset", partition.restore.to},
            {"at_offset", partition.log.position}}},
          {"stream_time", UnixSeconds(partition.filter.stream_time)},
          {"records", RecordsJson(partition.counts)},
          {"actions", ActionsJson(partition.counts)},
          {"unkeyed_records", partition.counts.unkeyed},
          {"suppressed_records", partition.counts.suppressed},
          {"future_timestamps", partition.counts.future},
          {"suspicious_duplicates", partition.counts.suspicious},
          {"expired_records", partition.counts.expired},
          {"later_place_ids", partition.counts.later_place},
          {"partial_ids", partition.counts.partial_id},
          {"malformed_deltas", partition.counts.counters.malformed},
          {"filter", FilterJson(partition.filter.filter, detailed)},
          {"audit", AuditJson(partition.filter.audit)}};
}

Json LaneJson(const LaneReport& lane) {
  return {{"lane", lane.lane},
          {"joined", lane.member.joined},
          {"waiting", lane.waiting},
          {"transactions_committed", lane.transactions.committed},
          {"transactions_aborted", lane.transactions.aborted},
          {"fences", lane.transactions.fences},
          {"renewals", lane.transactions.renewals}};
}

// Of the router of scope: topic. Its counts are of records that did not reach the deduplicator, except the
// routed ones.
Json RoutingPartitionJson(const PartitionReport& partition, int lane) {
  return {{"topic", partition.topic},
          {"partition", partition.partition},
          {"lane", lane},
          {"phase", PhaseName(partition.phase, partition.log.is_answered)},
          {"problem", partition.problem},
          {"committed_offset", partition.log.committed},
          {"lag_records", LagJson(partition.log)},
          {"routed_records", partition.counts.unique},
          {"undeliverable_records", partition.counts.undeliverable}};
}

using ByPartition = std::vector<std::pair<std::pair<absl::string_view, int32_t>, Json>>;  // topic and number

Json Sorted(ByPartition partitions) {
  std::sort(partitions.begin(), partitions.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Json sorted = Json::array();
  for (auto& [id, json] : partitions) sorted.push_back(std::move(json));
  return sorted;
}

void AddRouting(const DaemonReport& report, Json* json) {
  if (report.routing_lanes.empty()) return;
  Json lanes = Json::array();
  ByPartition partitions;
  for (const LaneReport& lane : report.routing_lanes) {
    lanes.push_back(LaneJson(lane));
    for (const PartitionReport& partition : lane.partitions) {
      partitions.push_back(
          {{partition.topic, partition.partition}, RoutingPartitionJson(partition, lane.lane)});
    }
  }
  (*json)["routing_lanes"] = std::move(lanes);
  (*json)["routing_partitions"] = Sorted(std::move(partitions));
}

// Of a topic's partitions in this process.
struct TopicSum {
  int64_t partitions = 0;
  std::optional<Phase> phase;  // the one that needs attention most
  std::string problem;
  Notices notices;  // of any
  int64_t lag = 0;
  RecordCounts counts;
  double fpp_estimated = 0;
  int64_t ids = 0;
  int64_t memory_bytes = 0;
};

int Urgency(Phase phase) {
  switch (phase) {
    case Phase::kActive:
      return 0;
    case Phase::kChecking:
      return 1;
    case Phase::kRestoring:
      return 2;
    case Phase::kHeld:
      return 3;
    case Phase::kFailed:
      return 4;
  }
  return 0;
}

std::map<absl::string_view, TopicSum> SumsOf(const DaemonReport& report) {
  std::map<absl::string_view, TopicSum> sums;
  for (const LaneReport& lane : report.lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      TopicSum& sum = sums[partition.topic];
      const FilterStatus& filter = partition.filter.filter;
      ++sum.partitions;
      if (!sum.phase || Urgency(partition.phase) > Urgency(*sum.phase)) {
        sum.phase = partition.phase;
        sum.problem = partition.problem;
      }
      sum.notices |= NoticesOf(partition);
      sum.lag += partition.log.lag();
      sum.counts += partition.counts;
      sum.fpp_estimated = std::max(sum.fpp_estimated, filter.fpp.estimated);
      sum.ids += static_cast<int64_t>(filter.ids);
      sum.memory_bytes += static_cast<int64_t>(filter.memory_bytes);
    }
    for (const auto& [topic, why] : lane.gone) sums[topic].problem = why;
  }
  // What is not routed yet is not judged, either.
  for (const TopicReport& topic : report.topics) {
    for (const LaneReport& lane : report.routing_lanes) {
      for (const PartitionReport& partition : lane.partitions) {
        if (absl::c_linear_search(topic.routed_from, partition.topic))
          sums[topic.input].lag += partition.log.lag();
      }
    }
  }
  return sums;
}

Json TopicsJson(const DaemonReport& report) {
  std::map<absl::string_view, TopicSum> sums = SumsOf(report);
  Json topics = Json::array();
  for (const TopicReport& topic : report.topics) {
    const TopicSum& sum = sums[topic.input];
    topics.push_back({{"input", topic.input},
                      {"origin", topic.origin()},
                      {"output", topic.output},
                      {"engine", topic.engine},
                      {"horizon_seconds", Seconds(topic.horizon)},
                      {"fpp_target", topic.fpp_target},
                      {"problem", topic.problem.empty() ? sum.problem : topic.problem},
                      {"phase", sum.phase ? PhaseName(*sum.phase, report.is_answered) : ""},
                      {"notices", NoticesJson(sum.notices)},
                      {"partitions", sum.partitions},
                      {"lag_records", report.is_answered ? Json(sum.lag) : Json()},
                      {"records", RecordsJson(sum.counts)},
                      {"actions", ActionsJson(sum.counts)},
                      {"fpp_estimated", sum.fpp_estimated},
                      {"ids", sum.ids},
                      {"memory_bytes", sum.memory_bytes}});
  }
  return topics;
}

}  // namespace

std::string StatusJson(const DaemonReport& report, const std::optional<StatusDetail>& detail,
                       const std::optional<std::string>& topic) {
  Json lanes = Json::array();
  ByPartition partitions;
  for (const LaneReport& lane : report.lanes) {
    lanes.push_back(LaneJson(lane));
    for (const PartitionReport& partition : lane.partitions) {
      if (topic && partition.topic != *topic) continue;
      const bool is_detailed =
          detail && detail->partition == partition.partition && detail->topic == partition.topic;
      Json json = PartitionJson(partition, lane.lane, is_detailed);
      if (is_detailed && detail->history) json["history"] = HistoryJson(*detail->history, detail->now);
      partitions.emplace_back(std::pair(absl::string_view(partition.topic), partition.partition),
                              std::move(json));
    }
  }
  Json json = {{"version", LETHE_VERSION},
               {"brokers", report.brokers},
               {"input", report.first.input},
               {"output", report.first.output},
               {"group", report.group},
               {"instance", report.instance},
               {"engine", report.first.engine},
               {"horizon_seconds", Seconds(report.first.horizon)},
               {"fpp_target", report.first.fpp_target},
               {"memory_used_bytes", report.memory_used_bytes},
               {"memory_limit_bytes", report.memory_limit_bytes},
               {"topics", TopicsJson(report)},
               {"not_ready", report.not_ready},
               {"but_for", report.but_for},
               {"remarks", Remarks(report)},
               {"totals", TotalsJson(report)},
               {"lanes", std::move(lanes)},
               {"partitions", Sorted(std::move(partitions))}};
  AddRouting(report, &json);
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lethe
