// The id of a topic (KIP-516): one that is deleted and created again by the same name has another.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_

#include <map>
#include <string>
#include <vector>

#include "connectors/kafka/client/client.h"

namespace lethe::kafka {

// By topic, in one request; without those that are not known. The client library tells ids since librdkafka
// 2.3, brokers have them since Kafka 2.8, and there may be no answer in time.
std::map<std::string, std::string> AskTopicIds(rd_kafka_t* client, const std::vector<std::string>& topics,
                                               int timeout_ms);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_
