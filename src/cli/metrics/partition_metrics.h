// The figures of topic-partitions as Prometheus metrics, one by one or folded.
#ifndef LETHE_SRC_CLI_METRICS_PARTITION_METRICS_H_
#define LETHE_SRC_CLI_METRICS_PARTITION_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "src/cli/metrics/metric_family.h"
#include "src/pipeline/report/report.h"

namespace lethe {

// In records; NaN if it is not known.
double LagOf(const PartitionReport& partition);

std::vector<MetricDefinition> PartitionDefinitions();

// One family for each definition, in that order.
std::vector<prometheus::MetricFamily> PartitionMetrics(const DaemonReport& report, bool per_partition);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_PARTITION_METRICS_H_
