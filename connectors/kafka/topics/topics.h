// Asks the cluster to describe topics, and creates some in it.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe::kafka {

// Empty if no broker answers in time, or has answered before.
std::string ClusterId(rd_kafka_t* client, int timeout_ms = 1500);
// Whether it is that of the embedded broker, which answers some questions only in part.
bool IsEmbedded(rd_kafka_t* client);

// As of Brokers.
absl::StatusOr<std::map<std::string, int32_t>> ListTopics(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

// As of Brokers.
absl::Status CreateTopic(rd_kafka_t* client, const TopicFacts& topic, bool validate_only);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
