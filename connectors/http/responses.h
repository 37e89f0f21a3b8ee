// The responses of the daemon's HTTP server: the status page, and metrics for Prometheus.
#ifndef LETHE_CONNECTORS_HTTP_RESPONSES_H_
#define LETHE_CONNECTORS_HTTP_RESPONSES_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "connectors/http/http_server.h"

namespace lethe::http {

// page.html as of the build. It needs nothing but /status and /counters of the same host.
HttpResponse Page();

// In Prometheus' text format, version 0.0.4.
HttpResponse MetricsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace lethe::http

#endif  // LETHE_CONNECTORS_HTTP_RESPONSES_H_
