#include "connectors/prometheus/filter_metrics.h"

#include <string>
#include <utility>

#include "absl/time/time.h"

namespace lethe {
namespace {

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

constexpr FilterMetric kFilterMetrics[] = {
    {{"lethe_filter_fpp_target_ratio", kGauge, kPartitionLabels, "probability",
      "The configured rate of false positives.", "Set by `fpp`.", Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.fpp.target; }},
    {{"lethe_filter_fpp_modelled_ratio", kGauge, kPartitionLabels, "probability",
      "Probability that a new id is called a duplicate, modelled from the loads.",
      "Over the target: raise `memory`, and report it.", Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.fpp.modelled; }},
    {{"lethe_filter_fpp_estimated_ratio", kGauge, kPartitionLabels, "probability",
      "Probability that a new id is called a duplicate, estimated from a sample.",
      "Far from the modelled one: report it, with the log.", Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.fpp.estimated; }},
    {{"lethe_filter_fpp_estimated_deviation_ratio", kGauge, kPartitionLabels, "probability",
      "Standard deviation of the estimated probability.",
      "The value of all bits is within three deviations of the estimate. 0: all bits were read, or the "
      "engine takes no sample.",
      Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.fpp.deviation; }},
    {{"lethe_filter_fpp_interval_end_ratio", kGauge, kPartitionLabels, "probability",
      "The modelled probability at the end of the last interval, the worst.", "As for the modelled one.",
      Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.fpp.at_interval_end; }},
    {{"lethe_audit_share_ratio", kGauge, kPartitionLabels, "share",
      "Share of the ids that an exact set checks as well.",
      "It was halved: the memory limit has no room for the audit.", Fold::kOneAudit},
     [](const PartitionStatus& p) { return p.audit.share; }},
    {{"lethe_audit_fresh_events_total", kCounter, kPartitionLabels, "events",
      "Audited events with an id that cannot be in the filter.",
      "Few: the audit's interval is wide; it needs time.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.fresh); }},
    {{"lethe_audit_false_drops_total", kCounter, kPartitionLabels, "events",
      "Fresh audited events that did not pass: unique events lost.",
      "Divide by the audited share for the loss of all traffic; compare the measured FPP with the target.",
      Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.false_drops); }},
    {{"lethe_audit_copies_total", kCounter, kPartitionLabels, "events",
      "Audited events whose id passed within the horizon.", "These are true duplicates.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.copies); }},
    {{"lethe_audit_missed_copies_total", kCounter, kPartitionLabels, "events", "Audited copies that passed.",
      "Above 0: the window was short (see `lethe_filter_window_seconds`), or the first copy was itself a "
      "false positive.",
      Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.missed); }},
    {{"lethe_audit_payload_mismatches_total", kCounter, kPartitionLabels, "events",
      "Audited copies with another value than the first: the id does not identify the event.",
      "lethe drops different events as duplicates: choose an `id` that tells them apart.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.payload_mismatches); }},
    {{"lethe_audit_fpp_measured_ratio", kGauge, kPartitionLabels, "probability",
      "The rate of false positives that the audit found.", "Read it with its interval.", Fold::kOneAudit},
     [](const PartitionStatus& p) { return p.audit.fpp_measured; }},
    {{"lethe_audit_fpp_low_ratio", kGauge, kPartitionLabels, "probability",
      "Low end of the audit's 99 % confidence interval.",
      "Over the target or the estimate: lethe loses more events than promised; see the runbook.",
      Fold::kOneAudit},
     [](const PartitionStatus& p) { return p.audit.fpp_low; }},
    {{"lethe_audit_fpp_high_ratio", kGauge, kPartitionLabels, "probability",
      "High end of the audit's 99 % confidence interval.",
      "Far over the target: too few events were audited so far.", Fold::kOneAudit},
     [](const PartitionStatus& p) { return p.audit.fpp_high; }},
    {{"lethe_filter_past_generations", kGauge, kPartitionLabels, "generations",
      "N: past generations of the filter.",
      "It rises with the load and falls with it. Of `compact` and `exact` it is 16 while the load is steady; "
      "their table adapts, too (`lethe_filter_ids`, `lethe_filter_lines`, `lethe_filter_memory_bytes`).",
      Fold::kMax},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.shape.past_generations); }},
    {{"lethe_filter_refresh_period_seconds", kGauge, kPartitionLabels, "seconds",
      "t: stream time between the last two refreshes.",
      "It falls as the load rises. Of `published` it is the horizon / (N + 1). Of `compact` and `exact` it "
      "is a sixteenth of the horizon while the load is steady, and an eighth at most.",
      Fold::kMax},
     [](const PartitionStatus& p) { return absl::ToDoubleSeconds(p.filter.shape.refresh_period); }},
    {{"lethe_filter_generation_bytes", kGauge, kPartitionLabels, "bytes",
      "m, in bytes: the size of one generation; of `compact` its share of the table.",
      "It follows the load in `compact`, and is fixed by the memory limit in `published`.", Fold::kMax},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.shape.bits_per_generation) / 8; }},
    {{"lethe_filter_hashes", kGauge, kPartitionLabels, "bits",
      "k: bits set for an id in one generation, or bits of its fingerprint.", "It is fixed by the layout.",
      Fold::kMax},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.shape.bits_per_id); }},
    {{"lethe_filter_lines", kGauge, kPartitionLabels, "lines",
      "Lines of 64 bytes that hold the ids; 0 in layouts without lines.",
      "It follows the load; nothing to do.", Fold::kMax},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.shape.lines); }},
    {{"lethe_filter_ids", kGauge, kPartitionLabels, "ids", "Ids in the filter.",
      "More than rate times horizon: expired ids are still being removed.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.ids); }},
    {{"lethe_filter_present_fill_ratio", kGauge, kPartitionLabels, "share of bits",
      "Share of bits that are set in the present generation.",
      "It rises through an interval and falls with a refresh. It stays high: the memory limit is reached.",
      Fold::kMax},
     [](const PartitionStatus& p) { return p.filter.present_fill; }},
    {{"lethe_filter_window_seconds", kGauge, kPartitionLabels, "seconds",
      "Stream time that the filter covers: at least the horizon, or all since the start.",
      "Under `lethe_filter_horizon_seconds` after the memory limit was reached: late copies may pass; raise "
      "`memory`.",
      Fold::kMin},
     [](const PartitionStatus& p) { return absl::ToDoubleSeconds(p.filter.window); }},
    {{"lethe_filter_memory_bytes", kGauge, kPartitionLabels, "bytes", "Memory of the filter.",
      "The limit is one for all filters: `lethe_memory_limit_bytes`.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.memory_bytes); }},
    {{"lethe_filter_memory_above_need_bytes", kGauge, kPartitionLabels, "bytes",
      "Memory of the filter above a full table of its ids.",
      "High for more than a horizon after the load has fallen: report it. 0 for other engines than `compact` "
      "and `exact`.",
      Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.memory_above_need_bytes); }},
    {{"lethe_audit_memory_bytes", kGauge, kPartitionLabels, "bytes", "Memory of the audit's exact set.",
      "It counts against the limit, too.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.audit.memory_bytes); }},
    {{"lethe_filter_refreshes_total", kCounter, kPartitionLabels, "refreshes",
      "Refreshes of the filter since it was created.",
      "None while ids come in: a quarter of the horizon has not passed yet.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.refreshes); }},
    {{"lethe_filter_memory_limit_hits_total", kCounter, kPartitionLabels, "times",
      "Times that the memory limit shortened the window.", "It rises: raise `memory`.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.limit_hits); }},
    {{"lethe_filter_lost_ids_total", kCounter, kPartitionLabels, "ids",
      "Ids that the filter had no room for, and does not remember.",
      "Above 0: somebody chooses ids by their hashes; see the runbook.", Fold::kSum},
     [](const PartitionStatus& p) { return static_cast<double>(p.filter.lost_ids); }},
};

}  // namespace

absl::Span<const FilterMetric> FilterMetrics() { return kFilterMetrics; }

MetricDefinition AdaptationSteps() { return kSteps; }

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

void AddSteps(const PartitionStatus& partition, const Labels& labels, prometheus::MetricFamily* family) {
  for (const StepCount& steps : partition.filter.step_counts) {
    Labels all = labels;
    all.push_back({"kind", StepKindName(steps.kind)});
    all.push_back({"reason", std::string(steps.reason)});
    AddSample(static_cast<double>(steps.count), std::move(all), family);
  }
}

}  // namespace lethe
