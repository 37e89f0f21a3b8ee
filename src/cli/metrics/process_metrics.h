// Metrics of the process itself, under the names that all Prometheus clients use.
#ifndef LETHE_SRC_CLI_METRICS_PROCESS_METRICS_H_
#define LETHE_SRC_CLI_METRICS_PROCESS_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "absl/types/span.h"
#include "src/cli/metrics/metric_family.h"

namespace lethe {

absl::Span<const MetricDefinition> ProcessDefinitions();

// One family for each definition; without a sample where the system does not tell.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_PROCESS_METRICS_H_
