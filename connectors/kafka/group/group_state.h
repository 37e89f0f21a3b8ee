// Committed offsets and members of the group, and the bounds of logs.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/cluster.h"

namespace lethe::kafka {

// By partition, for 0 .. partitions - 1; `client` is of the group. Unavailable: ask again.
absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(rd_kafka_t* client, const std::string& topic,
                                                          int32_t partitions);

// NotFound: this client does not know the partition yet, but has asked for news of the topic. Unavailable:
// ask again.
absl::StatusOr<LogState> AskLog(rd_kafka_t* client, const std::string& topic, int32_t partition);

// The members of the options' group, with a client of its own.
absl::StatusOr<std::vector<NamedMember>> AskGroupMembers(const DaemonOptions& options);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
