// The id of a topic (KIP-516): one that is deleted and created again by the same name has another.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_

#include <string>

#include "connectors/kafka/client/client.h"

namespace lethe::kafka {

// Empty: not known. The client library tells ids since librdkafka 2.3, brokers have them since Kafka 2.8, and
// there may be no answer in time.
std::string AskTopicId(rd_kafka_t* client, const std::string& topic, int timeout_ms);

// Whether the group has judged another topic of this name. False while either id is not known.
inline bool IsOfAnotherTopic(const std::string& judged, const std::string& present) {
  return !judged.empty() && !present.empty() && judged != present;
}

// Compares a topic's ids while it is read. One other answer does not count: a broker may be behind. Thread
// safety: none.
class TopicIdWatch {
 public:
  // Whether `answer` is another topic than `judged`, and the answer before it was the same.
  bool IsRecreated(const std::string& judged, const std::string& answer) {
    const bool is_other = IsOfAnotherTopic(judged, answer);
    const bool is_sure = is_other && answer == other_;
    other_ = is_other ? answer : "";
    return is_sure;
  }

 private:
  std::string other_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_ID_H_
