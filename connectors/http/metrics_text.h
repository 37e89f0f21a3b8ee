// Metrics as Prometheus reads them.
#ifndef LETHE_CONNECTORS_HTTP_METRICS_TEXT_H_
#define LETHE_CONNECTORS_HTTP_METRICS_TEXT_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "connectors/http/http_server.h"

namespace lethe::http {

// The families in Prometheus' text format, version 0.0.4.
HttpResponse MetricsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_METRICS_TEXT_H_
