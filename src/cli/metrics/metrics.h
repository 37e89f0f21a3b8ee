// The daemon's figures as Prometheus metrics.
#ifndef LETHE_SRC_CLI_METRICS_METRICS_H_
#define LETHE_SRC_CLI_METRICS_METRICS_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "src/cli/metrics/metric_family.h"
#include "src/pipeline/report/report.h"

namespace lethe {

struct MetricsOptions {
  // One series for each partition; otherwise those of a topic are folded into one.
  bool per_partition = true;
  // A fingerprint of the configuration.
  std::string configuration;
};

// Families in a fixed order. Works on a copy of the figures, and holds up nothing.
std::vector<prometheus::MetricFamily> Metrics(const DaemonReport& report, const MetricsOptions& options);

// Of every metric that there is, in the same order.
std::vector<MetricDefinition> MetricDefinitions();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_METRICS_H_
