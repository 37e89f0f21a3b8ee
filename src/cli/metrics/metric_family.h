// Samples in the form that Prometheus' library takes.
#ifndef LETHE_SRC_CLI_METRICS_METRIC_FAMILY_H_
#define LETHE_SRC_CLI_METRICS_METRIC_FAMILY_H_

#include <prometheus/metric_family.h>

#include "connectors/prometheus/metric_definition.h"
#include "src/pipeline/report/report.h"

namespace lethe {

void AddSample(const Histogram& histogram, Labels labels, prometheus::MetricFamily* family);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_METRICS_METRIC_FAMILY_H_
