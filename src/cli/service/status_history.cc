#include "src/cli/service/status_history.h"

#include <iterator>

namespace lethe {

void StatusHistory::Add(const DaemonReport& report, absl::Time now) {
  std::map<Key, StatusSample> present;
  for (const LaneReport& lane : report.lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      const FilterStatus& filter = partition.filter.filter;
      present[{partition.topic, partition.partition}] = {.time = now,
                                                         .unique = partition.counts.unique,
                                                         .duplicate = partition.counts.duplicate,
                                                         .fpp_estimated = filter.fpp.estimated,
                                                         .ids = filter.ids,
                                                         .memory_bytes = filter.memory_bytes,
                                                         .past_generations = filter.shape.past_generations,
                                                         .refresh_period = filter.shape.refresh_period};
    }
  }
  while (present.size() > kMostPartitions) present.erase(std::prev(present.end()));
  const MutexLock lock(mutex_);
  std::erase_if(samples_, [&](const auto& kept) { return !present.contains(kept.first); });
  for (const auto& [partition, sample] : present) {
    std::deque<StatusSample>& kept = samples_[partition];
    kept.push_back(sample);
    if (kept.size() > kSamples) kept.pop_front();
  }
}

std::vector<StatusSample> StatusHistory::Of(const std::string& topic, int32_t partition) const {
  const MutexLock lock(mutex_);
  const auto kept = samples_.find({topic, partition});
  if (kept == samples_.end()) return {};
  return {kept->second.begin(), kept->second.end()};
}

}  // namespace lethe
