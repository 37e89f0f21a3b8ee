// Committed offsets of the group, and the bounds of logs.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/task/cluster.h"

namespace lethe::kafka {

// By partition, for 0 .. partitions - 1 of any topics, in one request; `client` is of the group. Unavailable:
// ask again.
ByTopic<std::vector<CommittedOffset>> AskCommitted(rd_kafka_t* client,
                                                   const std::map<std::string, int32_t>& partitions);

// Commits offsets outside of a transaction, and waits for the answer; _TIMED_OUT: none came, and it may still
// take effect.
rd_kafka_resp_err_t CommitOffsets(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& offsets,
                                  int timeout_ms);

// Of these partitions by topic. NotFound: this client does not know one of them yet, but has asked for news
// of the topic. Unavailable: ask again.
ByTopic<Cluster::Logs> AskLogs(rd_kafka_t* client,
                               const std::map<std::string, std::vector<int32_t>>& partitions);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_GROUP_STATE_H_
