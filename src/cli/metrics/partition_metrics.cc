#include "src/cli/metrics/partition_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "connectors/prometheus/filter_metrics.h"
#include "src/adapt/step_log.h"
#include "src/fpp/audit.h"

namespace lethe {
namespace {
using prometheus::MetricFamily;
using Partitions = std::vector<const PartitionReport*>;

constexpr const char* kLabels = kPartitionLabels;

constexpr MetricDefinition kRecords = {
    "lethe_records_total",
    kCounter,
    "group, topic, partition, verdict",
    "records",
    "Records of the input by verdict: unique, duplicate, missing_id, malformed, undeliverable or "
    "unreadable.",
    "Many `missing_id` or `malformed`: `id` names another field than the events have. `undeliverable`: the "
    "output topic refuses records; the log says which and why. `unreadable`: the log names the offsets.",
    Fold::kSum};

constexpr MetricDefinition kActions = {
    "lethe_record_actions_total",
    kCounter,
    "group, topic, partition, action",
    "records",
    "Records of the input by action: passed, tagged, diverted or dropped.",
    "More `dropped` than duplicates: compare with `lethe_records_total`, and check the `on_*` policies.",
    Fold::kSum};

constexpr MetricDefinition kRouted = {
    "lethe_routed_records_total",
    kCounter,
    kLabels,
    "records",
    "With scope: topic, input records that the router wrote to the repartition topic.",
    "No growth while `lethe_lag_records` of the input grows: /readyz says what the router waits for.",
    Fold::kSum};

// A kind of record, and where it is counted.
struct Counted {
  const char* label;
  int64_t RecordCounts::*count;
};
constexpr Counted kVerdictKinds[] = {
    {"unique", &RecordCounts::unique},
    {"duplicate", &RecordCounts::duplicate},
    {"missing_id", &RecordCounts::missing_id},
    {"malformed", &RecordCounts::malformed},
    {"undeliverable", &RecordCounts::undeliverable},
    {"unreadable", &RecordCounts::unreadable},
};
constexpr Counted kActionKinds[] = {
    {"passed", &RecordCounts::passed},
    {"tagged", &RecordCounts::tagged},
    {"diverted", &RecordCounts::diverted},
    {"dropped", &RecordCounts::dropped},
};
// The counts of the router of scope: topic are of records that did not reach the deduplicator.
constexpr Counted kRoutingVerdictKinds[] = {{"undeliverable", &RecordCounts::undeliverable},
                                            {"unreadable", &RecordCounts::unreadable}};
constexpr Counted kRoutingActionKinds[] = {
    {"diverted", &RecordCounts::diverted},
    {"dropped", &RecordCounts::dropped},
};

struct PartitionMetric {
  MetricDefinition definition;
  double (*value)(const PartitionReport&);
  bool of_routing = false;  // also of the router of scope: topic
};
constexpr bool kOfRouting = true;

constexpr PartitionMetric kMetrics[] = {
    {{"lethe_suppressed_records_total", kCounter, kLabels, "records",
      "Records replayed to rebuild the filter.",
      "It should rise while `lethe_restoring` is 1: see the runbook on restores.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.suppressed); }},
    {{"lethe_deltas_total", kCounter, kLabels, "updates", "Deltas that were added to counters.",
      "It should rise with the unique records that counters are meant for.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.counters.updates); }},
    {{"lethe_malformed_deltas_total", kCounter, kLabels, "updates",
      "Deltas that were not counted: the key or delta could not be read.",
      "A counter's `key` or `delta` names another field than the events have; the log names records.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.counters.malformed); }},
    {{"lethe_overflowed_deltas_total", kCounter, kLabels, "updates",
      "Deltas that were not counted: the total would leave signed 64 bits, or `max_keys` is reached.",
      "It rises: a delta is wrong, a total reached 2^63, or there are too many keys. The log names records.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.counters.overflowed); }},
    {{"lethe_counted_keys", kGauge, kLabels, "keys", "Keys of counters with `mode: total`, kept in memory.",
      "It comes near `max_keys`: lethe never forgets keys; count by a field with fewer values, or raise it.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counted_keys); }},
    {{"lethe_unkeyed_records_total", kCounter, kLabels, "records",
      "Records of the input without a key; their copies may be in other partitions.",
      "Most records: set `scope: topic`, or let the producers key records by the id.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.unkeyed); }},
    {{"lethe_later_place_ids_total", kCounter, kLabels, "records",
      "Records whose id is from a later place of `id` than the first.",
      "All records: the first place names a field that the events do not have.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.later_place); }},
    {{"lethe_partial_ids_total", kCounter, kLabels, "records", "Records whose id lacks an optional part.",
      "All records: the optional part names a field that the events do not have.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.partial_id); }},
    {{"lethe_future_timestamps_total", kCounter, kLabels, "records",
      "Records dated more than `max_future` ahead of this machine's clock.",
      "A producer's clock or its unit of time is wrong; the log names records. All of them: this machine's "
      "clock is behind.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.future); },
     kOfRouting},
    {{"lethe_suspicious_duplicates_total", kCounter, kLabels, "records",
      "Duplicates that differ from others of their id, once a hundred of one id did (on_suspicious_id).",
      "It rises: `id` is a constant or a default in these records, and their events are lost; the log names "
      "two of them.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.suspicious); }},
    {{"lethe_expired_records_total", kCounter, kLabels, "records",
      "Written records that were older than the output keeps records (`retention.ms`).",
      "It rises with most records: Kafka deletes them soon. Raise the output's `retention.ms`.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.counts.expired); }},
    {{"lethe_duplicates_jumped", kGauge, kLabels, "1 or 0; folded: partitions",
      "1 while less than half as many events pass as usual, and the others are duplicates.",
      "/readyz says since when, and whether events are lost or only sent several times.", Fold::kSum},
     [](const PartitionReport& p) { return p.duplicates_jumped ? 1.0 : 0.0; }},
    {{"lethe_stream_time_seconds", kGauge, kLabels, "seconds since 1970",
      "Stream time: the running maximum of the median of the last 101 timestamps; -Inf until it starts.",
      "No growth while records are read: most of them have older timestamps.", Fold::kMax},
     [](const PartitionReport& p) {
       return absl::ToDoubleSeconds(p.filter.stream_time - absl::UnixEpoch());
     }},
    {{"lethe_stream_time_skew_seconds", kGauge, kLabels, "seconds",
      "How far stream time is ahead of this machine's clock; negative if behind.",
      "Above 0: clocks of producers are ahead, and lethe forgets ids earlier by as much. Far below 0 without "
      "a lag: records have old timestamps.",
      Fold::kMax},
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.filter.stream_time - absl::Now()); }},
    {{"lethe_committed_offset", kGauge, kLabels, "offset",
      "The next offset of the input to process, as committed.",
      "No growth while `lethe_lag_records` grows: /readyz says what lethe waits for.", Fold::kLeftOut},
     [](const PartitionReport& p) { return static_cast<double>(p.log.committed); },
     kOfRouting},
    {{"lethe_lag_records", kGauge, kLabels, "records",
      "Records of the input that are not committed yet; NaN while the brokers do not answer.",
      "It grows: the input is faster than the lanes; add lanes or instances, up to the number of partitions.",
      Fold::kSum},
     LagOf,
     kOfRouting},
    {{"lethe_restoring", kGauge, kLabels, "1 or 0; folded: partitions",
      "1 while the filter is rebuilt from the log.",
      "For long: a long horizon means a long replay; `lethe_suppressed_records_total` shows its speed.",
      Fold::kSum},
     [](const PartitionReport& p) {
       return p.phase == Phase::kRestoring || p.phase == Phase::kChecking ? 1.0 : 0.0;
     }},
    {{"lethe_restore_remaining_offsets", kGauge, kLabels, "offsets",
      "Offsets that the rebuild has still to replay.",
      "It does not fall: the log and /readyz say what lethe waits for.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.restore.left); }},
    {{"lethe_restore_remaining_seconds", kGauge, kLabels, "seconds",
      "Remaining time of the rebuild; +Inf without progress.",
      "Too long: set `snapshots` for short restores.", Fold::kMax},
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.restore.time_left); }},
    {{"lethe_snapshot_offset", kGauge, kLabels, "offset",
      "The offset from which a restore with the latest snapshot replays; -1: no snapshot.",
      "No growth: `lethe_snapshot_errors_total` and the log say why.", Fold::kLeftOut},
     [](const PartitionReport& p) { return static_cast<double>(p.restore.snapshot_offset); }},
    {{"lethe_unread_deleted_offsets_total", kCounter, kLabels, "offsets",
      "Offsets skipped because retention deleted their records unread (on_unread_deleted).",
      "Records were lost before lethe read them: raise the input's retention, or reduce the lag.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.unread_deleted); },
     kOfRouting},
    {{"lethe_partition_failed", kGauge, kLabels, "1 or 0; folded: partitions",
      "1 if the partition failed or is held; the log and /readyz say why.", "Do what /readyz says.",
      Fold::kSum},
     [](const PartitionReport& p) {
       return p.phase == Phase::kFailed || p.phase == Phase::kHeld ? 1.0 : 0.0;
     },
     kOfRouting},
    {{"lethe_short_history", kGauge, kLabels, "1 or 0; folded: partitions",
      "1 while the filter lacks ids of the horizon: the log did not reach back, the horizon was raised, or "
      "offsets were reset.",
      "The log says which. If the log did not reach back, the input's retention is shorter than the horizon "
      "plus the downtime; raise `retention.ms`.",
      Fold::kSum},
     [](const PartitionReport& p) { return p.short_history ? 1.0 : 0.0; }},
    {{"lethe_keys_moved", kGauge, kLabels, "1 or 0; folded: partitions",
      "1 for a horizon after the input got more partitions: copies of earlier records may pass.",
      "It ends by itself, in stream time. If no copy may pass when a topic grows, set `scope: topic`.",
      Fold::kSum},
     [](const PartitionReport& p) { return p.keys_moved ? 1.0 : 0.0; }},
};

double ValueOf(const PartitionMetric& metric, const PartitionReport& partition) {
  return metric.value(partition);
}
double ValueOf(const FilterMetric& metric, const PartitionReport& partition) {
  return metric.value(partition.filter);
}
bool IsOfRouting(const PartitionMetric& metric) { return metric.of_routing; }
bool IsOfRouting(const FilterMetric&) { return false; }

template <typename Metric>
double Folded(const Metric& metric, const Partitions& partitions, const PartitionReport& one_audit) {
  if (metric.definition.fold == Fold::kOneAudit) return ValueOf(metric, one_audit);
  double folded = ValueOf(metric, *partitions.front());
  for (const PartitionReport* partition : absl::MakeSpan(partitions).subspan(1)) {
    const double value = ValueOf(metric, *partition);
    switch (metric.definition.fold) {
      case Fold::kMax:
        folded = std::max(folded, value);
        break;
      case Fold::kMin:
        folded = std::min(folded, value);
        break;
      default:
        folded += value;
    }
  }
  return folded;
}

// Those of partitions, then those of their filters.
template <typename Use>
void ForEachMetric(const Use& use) {
  for (const PartitionMetric& metric : kMetrics) use(metric);
  for (const FilterMetric& metric : FilterMetrics()) use(metric);
}

// Folds the figures that are neither sums nor maxima of the partitions' values.
PartitionReport FoldedReport(const Partitions& partitions) {
  PartitionReport all;
  std::vector<AuditStatus> audits;
  for (const PartitionReport* partition : partitions) {
    all.counts += partition->counts;
    audits.push_back(partition->filter.audit);
    for (const StepCount& steps : partition->filter.filter.step_counts) {
      CountSteps(steps, &all.filter.filter.step_counts);
    }
  }
  all.filter.audit = MergeAudits(audits);
  return all;
}

// Counts of records, each kind a series of its own.
void AddCounts(const PartitionReport& partition, const char* label, absl::Span<const Counted> kinds,
               const Labels& labels, MetricFamily* family) {
  for (const Counted& kind : kinds) {
    Labels all = labels;
    all.push_back({label, kind.label});
    AddSample(static_cast<double>(partition.counts.*kind.count), std::move(all), family);
  }
}

// Adds the counts by kind of record and step, in the order of the definitions. Returns the next family.
std::vector<MetricFamily>::iterator AddKinds(const PartitionReport& partition, bool is_routing,
                                             const Labels& labels, std::vector<MetricFamily>* families) {
  auto family = families->begin();
  AddCounts(partition, "verdict",
            is_routing ? absl::MakeConstSpan(kRoutingVerdictKinds) : absl::MakeConstSpan(kVerdictKinds),
            labels, &*family++);
  AddCounts(partition, "action",
            is_routing ? absl::MakeConstSpan(kRoutingActionKinds) : absl::MakeConstSpan(kActionKinds), labels,
            &*family++);
  if (is_routing) AddSample(static_cast<double>(partition.counts.unique), labels, &*family);
  ++family;
  if (!is_routing) AddSteps(partition.filter, labels, &*family);
  return ++family;
}

void AddFolded(const Partitions& partitions, bool is_routing, const Labels& labels,
               std::vector<MetricFamily>* families) {
  const PartitionReport folded = FoldedReport(partitions);
  auto family = AddKinds(folded, is_routing, labels, families);
  ForEachMetric([&](const auto& metric) {
    if (metric.definition.fold != Fold::kLeftOut && (!is_routing || IsOfRouting(metric))) {
      AddSample(Folded(metric, partitions, folded), labels, &*family);
    }
    ++family;
  });
}

void AddEach(const Partitions& partitions, bool is_routing, const Labels& labels,
             std::vector<MetricFamily>* families) {
  for (const PartitionReport* partition : partitions) {
    Labels own = labels;
    own.push_back({"partition", absl::StrCat(partition->partition)});
    auto family = AddKinds(*partition, is_routing, own, families);
    ForEachMetric([&](const auto& metric) {
      if (!is_routing || IsOfRouting(metric)) AddSample(ValueOf(metric, *partition), own, &*family);
      ++family;
    });
  }
}

void AddStage(const std::vector<LaneReport>& lanes, bool is_routing, bool per_partition,
              const std::string& group, std::vector<MetricFamily>* families) {
  std::map<absl::string_view, Partitions> topics;
  size_t count = 0;
  for (const LaneReport& lane : lanes) {
    count += lane.partitions.size();
    for (const PartitionReport& partition : lane.partitions) topics[partition.topic].push_back(&partition);
  }
  if (per_partition) {
    // Samples are large: moving them as their vectors grow would be a good part of a scrape's time.
    for (MetricFamily& family : *families) family.metric.reserve(family.metric.size() + count);
  }
  for (const auto& [topic, partitions] : topics) {
    const Labels labels = {{"group", group}, {"topic", std::string(topic)}};
    if (per_partition) {
      AddEach(partitions, is_routing, labels, families);
    } else {
      AddFolded(partitions, is_routing, labels, families);
    }
  }
}

}  // namespace

double LagOf(const PartitionReport& partition) {
  return partition.log.is_answered ? static_cast<double>(partition.log.lag()) : std::nan("");
}

std::vector<MetricDefinition> PartitionDefinitions() {
  std::vector<MetricDefinition> definitions = {kRecords, kActions, kRouted, AdaptationSteps()};
  ForEachMetric([&](const auto& metric) { definitions.push_back(metric.definition); });
  return definitions;
}

std::vector<MetricFamily> PartitionMetrics(const DaemonReport& report, bool per_partition) {
  std::vector<MetricFamily> families;
  for (const MetricDefinition& definition : PartitionDefinitions()) families.push_back(NewFamily(definition));
  AddStage(report.lanes, /*is_routing=*/false, per_partition, report.group, &families);
  AddStage(report.routing_lanes, /*is_routing=*/true, per_partition, report.group, &families);
  return families;
}

}  // namespace lethe
