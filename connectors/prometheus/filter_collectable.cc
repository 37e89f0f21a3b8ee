#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "connectors/prometheus/filter_metrics.h"
#include "lethe/prometheus.h"
#include "src/sync/mutex.h"

namespace lethe {

struct FilterCollectable::Partitions {
  Mutex mutex;
  std::map<std::string, const Partition*> by_name ABSL_GUARDED_BY(mutex);
};

FilterCollectable::FilterCollectable() : partitions_(std::make_unique<Partitions>()) {}
FilterCollectable::~FilterCollectable() = default;

void FilterCollectable::Add(const std::string& name, const Partition* partition) {
  const MutexLock lock(partitions_->mutex);
  partitions_->by_name[name] = partition;
}

void FilterCollectable::Remove(const std::string& name) {
  const MutexLock lock(partitions_->mutex);
  partitions_->by_name.erase(name);
}

std::vector<prometheus::MetricFamily> FilterCollectable::Collect() const {
  std::vector<prometheus::MetricFamily> families = {NewFamily(AdaptationSteps())};
  for (const FilterMetric& metric : FilterMetrics()) families.push_back(NewFamily(metric.definition));
  const MutexLock lock(partitions_->mutex);
  for (const auto& [name, partition] : partitions_->by_name) {
    const PartitionStatus status = partition->Status();
    const Labels labels = {{"partition", name}};
    auto family = families.begin();
    AddSteps(status, labels, &*family);
    for (const FilterMetric& metric : FilterMetrics()) AddSample(metric.value(status), labels, &*++family);
  }
  return families;
}

}  // namespace lethe
