#include "connectors/prometheus/filter_metrics.h"
#include "lethe/prometheus.h"

namespace lethe {

void FilterCollectable::Add(const std::string& name, const Partition* partition) {
  const std::lock_guard<std::mutex> lock(mutex_);
  partitions_[name] = partition;
}

void FilterCollectable::Remove(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  partitions_.erase(name);
}

std::vector<prometheus::MetricFamily> FilterCollectable::Collect() const {
  std::vector<prometheus::MetricFamily> families = {NewFamily(AdaptationSteps())};
  for (const FilterMetric& metric : FilterMetrics()) families.push_back(NewFamily(metric.definition));
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, partition] : partitions_) {
    const PartitionStatus status = partition->Status();
    const Labels labels = {{"partition", name}};
    auto family = families.begin();
    AddSteps(status, labels, &*family);
    for (const FilterMetric& metric : FilterMetrics()) AddSample(metric.value(status), labels, &*++family);
  }
  return families;
}

}  // namespace lethe
