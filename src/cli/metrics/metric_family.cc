#include "src/cli/metrics/metric_family.h"

#include <cstdint>
#include <limits>

namespace lethe {

void AddSample(const Histogram& histogram, Labels labels, prometheus::MetricFamily* family) {
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  uint64_t cumulative = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    cumulative += static_cast<uint64_t>(histogram.counts()[i]);
    const bool is_last = i == histogram.bounds().size();
    metric.histogram.bucket.push_back(
        {cumulative, is_last ? std::numeric_limits<double>::infinity() : histogram.bounds()[i]});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = histogram.sum();
}

}  // namespace lethe
