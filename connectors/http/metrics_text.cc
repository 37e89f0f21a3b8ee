#include "connectors/http/metrics_text.h"

#include <prometheus/text_serializer.h>

namespace lethe::http {

HttpResponse MetricsText(const std::vector<prometheus::MetricFamily>& families) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus::TextSerializer().Serialize(families)};
}

}  // namespace lethe::http
