// The daemon's figures as Prometheus metrics.
#ifndef LETHE_SRC_CLI_METRICS_H_
#define LETHE_SRC_CLI_METRICS_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "connectors/kafka/report.h"

namespace lethe {

// Families in a fixed order. Works on a copy of the figures, and holds up nothing.
std::vector<prometheus::MetricFamily> Metrics(const kafka::DaemonReport& report);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_H_
