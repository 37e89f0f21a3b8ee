#include "connectors/kafka/topics/topic_id.h"

#include <memory>

namespace lethe::kafka {

// rd_kafka_DescribeTopics() is new in 2.3.
#if RD_KAFKA_VERSION >= 0x020300ff

std::string AskTopicId(rd_kafka_t* client, const std::string& topic, int timeout_ms) {
  using CollectionPtr =
      std::unique_ptr<rd_kafka_TopicCollection_t, Destroyer<rd_kafka_TopicCollection_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  const char* names[] = {topic.c_str()};
  const CollectionPtr topics(rd_kafka_TopicCollection_of_topic_names(names, 1));
  const OptionsPtr options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS));
  char reason[256];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), timeout_ms, reason, sizeof reason);
  const EventPtr event = AskAdmin(client, timeout_ms, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DescribeTopics(client, topics.get(), options.get(), queue);
  });
  if (event == nullptr || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return "";
  const rd_kafka_DescribeTopics_result_t* result = rd_kafka_event_DescribeTopics_result(event.get());
  if (result == nullptr) return "";
  size_t count = 0;
  const rd_kafka_TopicDescription_t** found = rd_kafka_DescribeTopics_result_topics(result, &count);
  if (count != 1) return "";
  if (rd_kafka_error_code(rd_kafka_TopicDescription_error(found[0])) != RD_KAFKA_RESP_ERR_NO_ERROR) return "";
  const rd_kafka_Uuid_t* id = rd_kafka_TopicDescription_topic_id(found[0]);
  // Brokers without ids answer zero.
  if (id == nullptr ||
      (rd_kafka_Uuid_most_significant_bits(id) == 0 && rd_kafka_Uuid_least_significant_bits(id) == 0)) {
    return "";
  }
  return rd_kafka_Uuid_base64str(id);
}

#else

std::string AskTopicId(rd_kafka_t* /*client*/, const std::string& /*topic*/, int /*timeout_ms*/) {
  return "";
}

#endif

}  // namespace lethe::kafka
