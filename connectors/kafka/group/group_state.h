// What the group has committed, and where logs begin and end, asked of the cluster.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/restore/restore_plan.h"

namespace lethe::kafka {

// What the group has committed for a partition.
struct CommittedOffset {
  int64_t offset = -1;  // -1: nothing
  std::string metadata;
};

// Whether the group has committed anything of the topic.
bool HasBegun(const std::vector<CommittedOffset>& committed);

// Answers of the cluster to what an assignment must know. Unavailable: ask again.
class GroupState {
 public:
  GroupState(rd_kafka_t* consumer, std::string topic) : consumer_(consumer), topic_(std::move(topic)) {}

  // For partitions 0 .. partitions - 1, by partition.
  absl::StatusOr<std::vector<CommittedOffset>> Committed(int32_t partitions) const;

  struct Log {
    int64_t start = 0;                   // the first offset that is there
    int64_t end = 0;                     // the last stable offset
    std::optional<LogTimes> times = {};  // where Assigner::NeedsLogTimes() asks for them
  };
  // NotFound: this client knows of no such partition yet, but has asked for news of the topic.
  absl::StatusOr<Log> LogOf(int32_t partition) const;

 private:
  rd_kafka_t* const consumer_;
  const std::string topic_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
