// The figures of a partition's filter and audit as Prometheus metrics: of the daemon, and of programs that
// embed the stage.
#ifndef LETHE_CONNECTORS_PROMETHEUS_FILTER_METRICS_H_
#define LETHE_CONNECTORS_PROMETHEUS_FILTER_METRICS_H_

#include <prometheus/metric_family.h>

#include "absl/types/span.h"
#include "connectors/prometheus/metric_definition.h"
#include "lethe/stage.h"
#include "lethe/status.h"

namespace lethe {

inline constexpr const char* kPartitionLabels = "group, topic, partition";  // the daemon's

struct FilterMetric {
  MetricDefinition definition;
  double (*value)(const PartitionStatus&);
};
absl::Span<const FilterMetric> FilterMetrics();

// The steps of adaptation, a series for each kind and reason.
MetricDefinition AdaptationSteps();
void AddSteps(const PartitionStatus& partition, const Labels& labels, prometheus::MetricFamily* family);

// As the label `kind` says it, and /status.
const char* StepKindName(AdaptationStep::Kind kind);

}  // namespace lethe

#endif  // LETHE_CONNECTORS_PROMETHEUS_FILTER_METRICS_H_
