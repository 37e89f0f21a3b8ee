// The definition of a metric, and its samples in the form that Prometheus' library takes.
#ifndef LETHE_CONNECTORS_PROMETHEUS_METRIC_DEFINITION_H_
#define LETHE_CONNECTORS_PROMETHEUS_METRIC_DEFINITION_H_

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <utility>
#include <vector>

namespace lethe {

inline constexpr prometheus::MetricType kCounter = prometheus::MetricType::Counter;
inline constexpr prometheus::MetricType kGauge = prometheus::MetricType::Gauge;
inline constexpr prometheus::MetricType kHistogram = prometheus::MetricType::Histogram;

// How the figures of a topic's partitions become one.
enum class Fold {
  kNone,  // it is not of a partition
  kSum,
  kMax,
  kMin,
  kOneAudit,  // from the sums, as if it were one audit
  kLeftOut,
};

// The definition of a metric: its export, and its row in dashboards/README.md.
struct MetricDefinition {
  const char* name;
  prometheus::MetricType type;
  const char* labels;
  const char* unit;     // of the value, for people
  const char* meaning;  // also the HELP text
  const char* remedy;   // what to do when it looks wrong
  Fold fold = Fold::kNone;
};

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline prometheus::MetricFamily NewFamily(const MetricDefinition& definition) {
  prometheus::MetricFamily family;
  family.name = definition.name;
  family.help = definition.meaning;
  family.type = definition.type;
  return family;
}

inline void AddSample(double value, Labels labels, prometheus::MetricFamily* family) {
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  if (family->type == kCounter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

}  // namespace lethe

#endif  // LETHE_CONNECTORS_PROMETHEUS_METRIC_DEFINITION_H_
