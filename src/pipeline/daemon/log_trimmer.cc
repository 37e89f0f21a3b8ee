#include "src/pipeline/daemon/log_trimmer.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace lethe {

void LogTrimmer::Trim(Brokers& brokers, const Flows& flows, const std::vector<LaneReport>& lanes) {
  EndsByTopic below;
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      if (flows.at(partition.flow).options.half.routed_from.empty()) continue;  // it is not lethe's
      const int64_t offset = partition.restore.restart;
      if (offset <= 0 || offset <= trimmed_[{partition.topic, partition.partition}]) continue;
      below[partition.topic][partition.partition] = offset;
    }
  }
  if (below.empty()) return;
  const auto answers = brokers.DeleteRecords(below);
  if (absl::IsUnavailable(answers.status())) return;  // done or not: it is asked again
  if (!answers.ok()) return Complain(below.begin()->first, answers.status());
  for (const auto& [topic, of_topic] : *answers) {
    for (const auto& [partition, deleted] : of_topic) {
      if (!deleted.ok()) {
        Complain(topic, deleted);
        continue;
      }
      int64_t& known = trimmed_[{topic, partition}];
      known = std::max(known, below[topic][partition]);
    }
  }
}

void LogTrimmer::Complain(const std::string& topic, const absl::Status& why) {
  if (std::exchange(complained_, true)) return;
  spdlog::warn("{}: cannot delete records that no restart needs, so the topic grows: {}", topic,
               std::string(why.message()));
}

}  // namespace lethe
