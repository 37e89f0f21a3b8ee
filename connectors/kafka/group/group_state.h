// Committed offsets of the group, and the bounds of logs.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/restore/restore_plan.h"

namespace lethe::kafka {

// The committed offset of a partition.
struct CommittedOffset {
  int64_t offset = -1;  // -1: none
  std::string metadata;
};

// Whether the group has committed anything of the topic.
bool HasBegun(const std::vector<CommittedOffset>& committed);

// By partition, for 0 .. partitions - 1; `client` is of the group. Unavailable: ask again.
absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(rd_kafka_t* client, const std::string& topic,
                                                          int32_t partitions);

// The log of one partition, as an assignment needs it.
struct LogState {
  int64_t start = 0;                   // the first offset that is there
  int64_t end = 0;                     // the last stable offset
  std::optional<LogTimes> times = {};  // where Assigner::NeedsLogTimes() asks for them
};
// NotFound: this client does not know the partition yet, but has asked for news of the topic. Unavailable:
// ask again.
absl::StatusOr<LogState> AskLog(rd_kafka_t* client, const std::string& topic, int32_t partition);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
