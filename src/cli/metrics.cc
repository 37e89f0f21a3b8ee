#include "src/cli/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace lethe {
namespace {

using kafka::LaneReport;
using kafka::PartitionReport;
using kafka::Phase;
using kafka::RecordCounts;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

MetricFamily Family(std::string name, std::string help, MetricType type) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void Add(MetricFamily& family, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

struct PartitionMetric {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const PartitionReport&);
  bool of_routing = false;  // also of the first stage, which routes
};

constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;

constexpr bool kOfRouting = true;

constexpr PartitionMetric kPartitionMetrics[] = {
    {"lethe_suppressed_records_total",
     "Records read again to rebuild the filter; their results were out already.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.counts.suppressed); }},
    {"lethe_malformed_deltas_total", "Passed records whose counter key or delta could not be read.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.counts.malformed_delta); }},
    {"lethe_unkeyed_records_total",
     "Records of the input without a key: their copies may be in other partitions.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.counts.unkeyed); }},
    {"lethe_committed_offset", "The next offset of the input to process, as committed.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.committed); }, kOfRouting},
    {"lethe_lag_records", "Records of the input that are not committed yet.", kGauge,
     [](const PartitionReport& p) {
       // A position at the end of the log counts as all: the last offsets may be control records.
       const bool at_end = p.position >= p.high_watermark;
       return at_end ? 0.0 : static_cast<double>(std::max<int64_t>(p.high_watermark - p.committed, 0));
     },
     kOfRouting},
    {"lethe_restoring", "1 while the filter is rebuilt from the log.", kGauge,
     [](const PartitionReport& p) {
       return p.phase == Phase::kRestoring || p.phase == Phase::kChecking ? 1.0 : 0.0;
     }},
    {"lethe_partition_failed", "1 if the partition is not read; the log and /readyz say why.", kGauge,
     [](const PartitionReport& p) { return p.phase == Phase::kFailed ? 1.0 : 0.0; }, kOfRouting},
    {"lethe_short_history",
     "1 while the filter does not know all ids of the horizon, since the log did not reach back.", kGauge,
     [](const PartitionReport& p) { return p.short_history ? 1.0 : 0.0; }},
    {"lethe_filter_fpp_target_ratio", "The false-positive probability that the user allows.", kGauge,
     [](const PartitionReport& p) { return p.filter.filter.fpp_target; }},
    {"lethe_filter_fpp_modelled_ratio",
     "The probability that an id never seen is called a duplicate, by the layout's model from the loads.",
     kGauge, [](const PartitionReport& p) { return p.filter.filter.fpp_modelled; }},
    {"lethe_filter_fpp_estimated_ratio",
     "The probability that an id never seen is called a duplicate, from the bits that are set.", kGauge,
     [](const PartitionReport& p) { return p.filter.filter.fpp_estimated; }},
    {"lethe_audit_share_ratio", "The share of the ids that is audited: judged by an exact set, too.", kGauge,
     [](const PartitionReport& p) { return p.filter.audit.share; }},
    {"lethe_audit_fresh_events_total", "Audited events whose id cannot be in the filter.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.fresh); }},
    {"lethe_audit_false_drops_total", "Of these, the ones that were called duplicates: good events lost.",
     kCounter, [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.false_drops); }},
    {"lethe_audit_copies_total", "Audited events whose id was passed within the horizon.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.copies); }},
    {"lethe_audit_missed_copies_total", "Of these, the ones that were called unique: duplicates that passed.",
     kCounter, [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.missed); }},
    {"lethe_audit_payload_mismatches_total",
     "Audited copies whose value differs from the first's: the id does not identify the event.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.audit.payload_mismatches); }},
    {"lethe_audit_fpp_measured_ratio", "The rate of false positives that the audit found.", kGauge,
     [](const PartitionReport& p) { return p.filter.audit.fpp_measured; }},
    {"lethe_audit_fpp_low_ratio", "Low end of the audit's 99 % confidence interval.", kGauge,
     [](const PartitionReport& p) { return p.filter.audit.fpp_low; }},
    {"lethe_audit_fpp_high_ratio", "High end of the audit's 99 % confidence interval.", kGauge,
     [](const PartitionReport& p) { return p.filter.audit.fpp_high; }},
    {"lethe_filter_past_generations", "N: past generations of the filter.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.past_generations); }},
    {"lethe_filter_refresh_period_seconds", "t: stream time between the last two refreshes.", kGauge,
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.filter.filter.refresh_period); }},
    {"lethe_filter_generation_bits", "m: bits of one generation.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.bits_per_generation); }},
    {"lethe_filter_id_bits", "k: bits set for an id in one generation.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.bits_per_id); }},
    {"lethe_filter_ids", "Ids in the filter.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.ids); }},
    {"lethe_filter_window_seconds", "Stream time that the filter covers now.", kGauge,
     [](const PartitionReport& p) { return absl::ToDoubleSeconds(p.filter.filter.window); }},
    {"lethe_filter_memory_bytes", "Memory of the filter.", kGauge,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.memory_bytes); }},
    {"lethe_filter_refreshes_total", "Refreshes of the filter since it was made.", kCounter,
     [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.refreshes); }},
    {"lethe_filter_memory_limit_hits_total", "Times that the memory limit kept the filter from growing.",
     kCounter, [](const PartitionReport& p) { return static_cast<double>(p.filter.filter.limit_hits); }},
};

// A kind of record, and where it is counted.
struct Counted {
  const char* label;
  int64_t RecordCounts::*count;
};
constexpr Counted kVerdicts[] = {
    {"unique", &RecordCounts::unique},
    {"duplicate", &RecordCounts::duplicate},
    {"missing_id", &RecordCounts::missing_id},
    {"malformed", &RecordCounts::malformed},
    {"undeliverable", &RecordCounts::undeliverable},
};
// What the first stage counts does not come to the second.
constexpr Counted kRoutingVerdicts[] = {{"undeliverable", &RecordCounts::undeliverable}};
constexpr Counted kRoutingActions[] = {
    {"diverted", &RecordCounts::diverted},
    {"dropped", &RecordCounts::dropped},
};
constexpr Counted kActions[] = {
    {"passed", &RecordCounts::passed},
    {"tagged", &RecordCounts::tagged},
    {"diverted", &RecordCounts::diverted},
    {"dropped", &RecordCounts::dropped},
};

Labels PartitionLabels(const std::string& topic, const PartitionReport& partition) {
  return {{"topic", topic}, {"partition", absl::StrCat(partition.partition)}};
}

// Counts of records, each kind a series of its own.
void AddCounts(MetricFamily& family, const char* label, absl::Span<const Counted> kinds,
               const std::string& topic, const std::vector<LaneReport>& lanes) {
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      for (const Counted& kind : kinds) {
        Labels all = PartitionLabels(topic, partition);
        all.push_back({label, kind.label});
        Add(family, static_cast<double>(partition.counts.*kind.count), std::move(all));
      }
    }
  }
}

struct LaneMetric {
  const char* name;
  const char* help;
  int64_t LaneReport::*value;
};
constexpr LaneMetric kLaneMetrics[] = {
    {"lethe_transactions_committed_total", "Transactions committed.", &LaneReport::commits},
    {"lethe_transactions_aborted_total", "Transactions aborted; their records were judged again.",
     &LaneReport::aborts},
    {"lethe_fences_total", "Producers that were lost (fenced, say) and made anew.", &LaneReport::fences},
};

}  // namespace

std::vector<MetricFamily> Metrics(const kafka::DaemonReport& report) {
  std::vector<MetricFamily> families;
  families.push_back(Family("lethe_build_info", "Always 1; the version is a label.", kGauge));
  Add(families.back(), 1, {{"version", LETHE_VERSION}});
  families.push_back(Family("lethe_memory_used_bytes", "Memory of all filters of the process.", kGauge));
  Add(families.back(), static_cast<double>(report.memory_used_bytes), {});
  families.push_back(Family("lethe_memory_limit_bytes", "What the filters may take together.", kGauge));
  Add(families.back(), static_cast<double>(report.memory_limit_bytes), {});
  for (const LaneMetric& metric : kLaneMetrics) {
    families.push_back(Family(metric.name, metric.help, kCounter));
    for (const LaneReport& lane : report.lanes) {
      Add(families.back(), static_cast<double>(lane.*metric.value), {{"lane", absl::StrCat(lane.lane)}});
    }
    for (const LaneReport& lane : report.routing_lanes) {
      Add(families.back(), static_cast<double>(lane.*metric.value),
          {{"lane", absl::StrCat("routing-", lane.lane)}});
    }
  }
  families.push_back(Family(
      "lethe_records_total",
      "Records of the input by what they are: unique, duplicate, missing_id, malformed or undeliverable.",
      kCounter));
  AddCounts(families.back(), "verdict", kVerdicts, report.input, report.lanes);
  AddCounts(families.back(), "verdict", kRoutingVerdicts, report.routing_input, report.routing_lanes);
  families.push_back(
      Family("lethe_record_actions_total",
             "The same records by what was done with them: passed, tagged, diverted or dropped.", kCounter));
  AddCounts(families.back(), "action", kActions, report.input, report.lanes);
  AddCounts(families.back(), "action", kRoutingActions, report.routing_input, report.routing_lanes);
  families.push_back(Family("lethe_routed_records_total",
                            "With scope: topic, records of the input that were copied to be judged.",
                            kCounter));
  for (const LaneReport& lane : report.routing_lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      Add(families.back(), static_cast<double>(partition.counts.unique),
          PartitionLabels(report.routing_input, partition));
    }
  }
  for (const PartitionMetric& metric : kPartitionMetrics) {
    families.push_back(Family(metric.name, metric.help, metric.type));
    for (const LaneReport& lane : report.lanes) {
      for (const PartitionReport& partition : lane.partitions) {
        Add(families.back(), metric.value(partition), PartitionLabels(report.input, partition));
      }
    }
    if (!metric.of_routing) continue;
    for (const LaneReport& lane : report.routing_lanes) {
      for (const PartitionReport& partition : lane.partitions) {
        Add(families.back(), metric.value(partition), PartitionLabels(report.routing_input, partition));
      }
    }
  }
  return families;
}

}  // namespace lethe
