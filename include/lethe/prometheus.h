// The figures of filters for a registry of prometheus-cpp, under the names that the daemon exports: the
// false-positive probability (lethe_filter_fpp_estimated_ratio), N (lethe_filter_past_generations), t
// (lethe_filter_refresh_period_seconds) and the rest of PartitionStatus. Link lethe::prometheus.
//
//   auto figures = std::make_shared<lethe::FilterCollectable>();
//   figures->Add("orders-0", partition.get());
//   exposer.RegisterCollectable(figures);
#ifndef LETHE_PROMETHEUS_H_
#define LETHE_PROMETHEUS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <vector>

#include "lethe/stage.h"

namespace lethe {

// Thread safety: all methods may be called from several threads. A scrape holds up Remove(), and no judging
// for more than some microseconds.
class FilterCollectable final : public prometheus::Collectable {
 public:
  FilterCollectable();
  ~FilterCollectable() override;

  // The partition's series have the label partition="name". It must be removed before it is destroyed.
  // Another one of that name takes its place.
  void Add(const std::string& name, const Partition* partition);
  void Remove(const std::string& name);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Partitions;
  const std::unique_ptr<Partitions> partitions_;
};

}  // namespace lethe

#endif  // LETHE_PROMETHEUS_H_
