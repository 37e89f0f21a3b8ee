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
#include "src/adapt/step_log.h"
#include "src/fpp/audit.h"

namespace lethe {
namespace {
using prometheus::MetricFamily;
using Partitions = std::vector<const PartitionReport*>;

constexpr const char* kLabels = "group, topic, partition";

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

constexpr MetricDefinition kSteps = {
    "lethe_adaptation_steps_total",
    kCounter,
    "group, topic, partition, kind, reason",
    "steps",
    "Steps by which the filter adapted itself: refresh, unfold, fold, unfold_refused, shorten_window, "
    "scale_up, scale_down.",
    "`unfold_refused` or `shorten_window`: the memory limit is reached; raise `memory`, or "
    "state a shorter `horizon` or a higher `fpp`.",
    Fold::kSum};

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
    {{"lethe_filter_fpp_target_ratio", kGauge, kLabels, "probability",
      "The configured rate of false positives.", "Set by `fpp`.", Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.fpp.target; }},
    {{"lethe_filter_fpp_modelled_ratio", kGauge, kLabels, "probability",
      "Probability that a new id is called a duplicate, modelled from the loads.",
      "Over the target: raise `memory`, and report it.", Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.fpp.modelled; }},
    {{"lethe_filter_fpp_estimated_ratio", kGauge, kLabels, "probability",
      "Probability that a new id is called a duplicate, estimated from the set bits.",
      "Far from the modelled one: report it, with the log.", Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.fpp.estimated; }},
    {{"lethe_filter_fpp_estimated_deviation_ratio", kGauge, kLabels, "probability",
      "Standard deviation of the estimated probability.",
      "The value of all bits is within three deviations of the estimate. 0: all bits were read, or the "
      "engine takes no sample.",
      Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.fpp.deviation; }},
    {{"lethe_filter_fpp_interval_end_ratio", kGauge, kLabels, "probability",
      "The modelled probability at the end of the last interval, the worst.", "As for the modelled one.",
      Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.fpp.at_interval_end; }},
    {{"lethe_audit_share_ratio", kGauge, kLabels, "share",
      "Share of the ids that an exact set checks as well.",
      "It was halved: the memory limit has no room for the audit.", Fold::kOneAudit},
     [](const PartitionReport& p) { return p.filter.audit.share; }},
    {{"lethe_audit_fresh_events_total", kCounter, kLabels, "events",
      "Audited events with an id that cannot be in the filter.",
      "Few: the audit's interval is wide; it needs time.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.fresh); }},
    {{"lethe_audit_false_drops_total", kCounter, kLabels, "events",
      "Fresh audited events that did not pass: unique events lost.",
      "Divide by the audited share for the loss of all traffic; compare the measured FPP with the target.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.false_drops); }},
    {{"lethe_audit_copies_total", kCounter, kLabels, "events",
      "Audited events whose id passed within the horizon.", "These are true duplicates.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.copies); }},
    {{"lethe_audit_missed_copies_total", kCounter, kLabels, "events", "Audited copies that passed.",
      "Above 0: the window was short (see `lethe_filter_window_seconds`), or the first copy was itself a "
      "false positive.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.missed); }},
    {{"lethe_audit_payload_mismatches_total", kCounter, kLabels, "events",
      "Audited copies with another value than the first: the id does not identify the event.",
      "lethe drops different events as duplicates: choose an `id` that tells them apart.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.payload_mismatches); }},
    {{"lethe_audit_fpp_measured_ratio", kGauge, kLabels, "probability",
      "The rate of false positives that the audit found.", "Read it with its interval.", Fold::kOneAudit},
     [](const PartitionReport& p) { return p.filter.audit.fpp_measured; }},
    {{"lethe_audit_fpp_low_ratio", kGauge, kLabels, "probability",
      "Low end of the audit's 99 % confidence interval.",
      "Over the target or the estimate: lethe loses more events than promised; see the runbook.",
      Fold::kOneAudit},
     [](const PartitionReport& p) { return p.filter.audit.fpp_low; }},
    {{"lethe_audit_fpp_high_ratio", kGauge, kLabels, "probability",
      "High end of the audit's 99 % confidence interval.",
      "Far over the target: too few events were audited so far.", Fold::kOneAudit},
     [](const PartitionReport& p) { return p.filter.audit.fpp_high; }},
    {{"lethe_filter_past_generations", kGauge, kLabels, "generations", "N: past generations of the filter.",
      "It rises with the load and falls with it. Of `compact` and `exact` it is 16 while the load is steady; "
      "their table adapts, too (`lethe_filter_ids`, `lethe_filter_lines`, `lethe_filter_memory_bytes`).",
      Fold::kMax},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.shape.past_generations); }},
    {{"lethe_filter_refresh_period_seconds", kGauge, kLabels, "seconds",
      "t: stream time between the last two refreshes.",
      "It falls as the load rises. Of `published` it is the horizon / (N + 1). Of `compact` and `exact` it "
      "is a sixteenth of the horizon while the load is steady, and an eighth at most.",
      Fold::kMax},
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.filter.filter.shape.refresh_period); }},
    {{"lethe_filter_generation_bytes", kGauge, kLabels, "bytes",
      "m, in bytes: the size of one generation; of `compact` its share of the table.",
      "It follows the load in `compact`, and is fixed by the memory limit in `published`.", Fold::kMax},
     [](const PartitionReport& p) {
       return static_cast<double>(p.filter.filter.shape.bits_per_generation) / 8;
     }},
    {{"lethe_filter_hashes", kGauge, kLabels, "bits",
      "k: bits set for an id in one generation, or bits of its fingerprint.", "It is fixed by the layout.",
      Fold::kMax},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.shape.bits_per_id); }},
    {{"lethe_filter_lines", kGauge, kLabels, "lines",
      "Lines of 64 bytes that hold the ids; 0 in layouts without lines.",
      "It follows the load; nothing to do.", Fold::kMax},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.shape.lines); }},
    {{"lethe_filter_ids", kGauge, kLabels, "ids", "Ids in the filter.",
      "More than rate times horizon: expired ids are still being removed.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.ids); }},
    {{"lethe_filter_present_fill_ratio", kGauge, kLabels, "share of bits",
      "Share of bits that are set in the present generation.",
      "It rises through an interval and falls with a refresh. It stays high: the memory limit is reached.",
      Fold::kMax},
     [](const PartitionReport& p) { return p.filter.filter.present_fill; }},
    {{"lethe_filter_window_seconds", kGauge, kLabels, "seconds",
      "Stream time that the filter covers: at least the horizon, or all since the start.",
      "Under `lethe_filter_horizon_seconds` after the memory limit was reached: late copies may pass; raise "
      "`memory`.",
      Fold::kMin},
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.filter.filter.window); }},
    {{"lethe_filter_memory_bytes", kGauge, kLabels, "bytes", "Memory of the filter.",
      "The limit is one for all filters: `lethe_memory_limit_bytes`.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.memory_bytes); }},
    {{"lethe_filter_memory_above_need_bytes", kGauge, kLabels, "bytes",
      "Memory of the filter above a full table of its ids.",
      "High for more than a horizon after the load has fallen: report it. 0 for other engines than `compact` "
      "and `exact`.",
      Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.memory_above_need_bytes); }},
    {{"lethe_audit_memory_bytes", kGauge, kLabels, "bytes", "Memory of the audit's exact set.",
      "It counts against the limit, too.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.memory_bytes); }},
    {{"lethe_filter_refreshes_total", kCounter, kLabels, "refreshes",
      "Refreshes of the filter since it was created.",
      "None while ids come in: a quarter of the horizon has not passed yet.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.refreshes); }},
    {{"lethe_filter_memory_limit_hits_total", kCounter, kLabels, "times",
      "Times that the memory limit shortened the window.", "It rises: raise `memory`.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.limit_hits); }},
    {{"lethe_filter_lost_ids_total", kCounter, kLabels, "ids",
      "Ids that the filter had no room for, and does not remember.",
      "Above 0: somebody chooses ids by their hashes; see the runbook.", Fold::kSum},
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.lost_ids); }},
};

double Folded(const PartitionMetric& metric, const Partitions& partitions, const PartitionReport& one_audit) {
  if (metric.definition.fold == Fold::kOneAudit) return metric.value(one_audit);
  double folded = metric.value(*partitions.front());
  for (const PartitionReport* partition : absl::MakeSpan(partitions).subspan(1)) {
    const double value = metric.value(*partition);
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

void AddSteps(const PartitionReport& partition, const Labels& labels, MetricFamily* family) {
  for (const StepCount& steps : partition.filter.filter.step_counts) {
    Labels all = labels;
    all.push_back({"kind", StepKindName(steps.kind)});
    all.push_back({"reason", std::string(steps.reason)});
    AddSample(static_cast<double>(steps.count), std::move(all), family);
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
  if (!is_routing) AddSteps(partition, labels, &*family);
  return ++family;
}

void AddFolded(const Partitions& partitions, bool is_routing, const Labels& labels,
               std::vector<MetricFamily>* families) {
  const PartitionReport folded = FoldedReport(partitions);
  auto family = AddKinds(folded, is_routing, labels, families);
  for (const PartitionMetric& metric : kMetrics) {
    if (metric.definition.fold != Fold::kLeftOut && (!is_routing || metric.of_routing)) {
      AddSample(Folded(metric, partitions, folded), labels, &*family);
    }
    ++family;
  }
}

void AddEach(const Partitions& partitions, bool is_routing, const Labels& labels,
             std::vector<MetricFamily>* families) {
  for (const PartitionReport* partition : partitions) {
    Labels own = labels;
    own.push_back({"partition", absl::StrCat(partition->partition)});
    auto family = AddKinds(*partition, is_routing, own, families);
    for (const PartitionMetric& metric : kMetrics) {
      if (!is_routing || metric.of_routing) AddSample(metric.value(*partition), own, &*family);
      ++family;
    }
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

const char* StepKindName(AdaptationStep::Kind kind) {
  switch (kind) {
    case AdaptationStep::Kind::kRefresh:
      return "refresh";
    case AdaptationStep::Kind::kUnfold:
      return "unfold";
    case AdaptationStep::Kind::kFold:
      return "fold";
    case AdaptationStep::Kind::kUnfoldRefused:
      return "unfold_refused";
    case AdaptationStep::Kind::kShortenWindow:
      return "shorten_window";
    case AdaptationStep::Kind::kScaleUp:
      return "scale_up";
    case AdaptationStep::Kind::kScaleDown:
      return "scale_down";
  }
  return "unknown";
}

std::vector<MetricDefinition> PartitionDefinitions() {
  std::vector<MetricDefinition> definitions = {kRecords, kActions, kRouted, kSteps};
  for (const PartitionMetric& metric : kMetrics) definitions.push_back(metric.definition);
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
