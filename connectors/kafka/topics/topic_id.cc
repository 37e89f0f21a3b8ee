#include "connectors/kafka/topics/topic_id.h"

#include <memory>

namespace lethe::kafka {

// rd_kafka_DescribeTopics() is new in 2.3.
#if RD_KAFKA_VERSION >= 0x020300ff

std::map<std::string, std::string> AskTopicIds(rd_kafka_t* client, const std::vector<std::string>& topics,
                                               int timeout_ms) {
  using CollectionPtr =
      std::unique_ptr<rd_kafka_TopicCollection_t, Destroyer<rd_kafka_TopicCollection_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  std::map<std::string, std::string> ids;
  std::vector<const char*> names;
  for (const std::string& topic : topics) names.push_back(topic.c_str());
  if (names.empty()) return ids;
  const CollectionPtr collection(rd_kafka_TopicCollection_of_topic_names(names.data(), names.size()));
  const OptionsPtr options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS));
  char reason[256];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), timeout_ms, reason, sizeof reason);
  const EventPtr event = AskAdmin(client, timeout_ms, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DescribeTopics(client, collection.get(), options.get(), queue);
  });
  if (event == nullptr || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return ids;
  const rd_kafka_DescribeTopics_result_t* result = rd_kafka_event_DescribeTopics_result(event.get());
  if (result == nullptr) return ids;
  size_t count = 0;
  const rd_kafka_TopicDescription_t** found = rd_kafka_DescribeTopics_result_topics(result, &count);
  for (size_t i = 0; i < count; ++i) {
    if (rd_kafka_error_code(rd_kafka_TopicDescription_error(found[i])) != RD_KAFKA_RESP_ERR_NO_ERROR)
      continue;
    const rd_kafka_Uuid_t* id = rd_kafka_TopicDescription_topic_id(found[i]);
    // Brokers without ids answer zero.
    if (id == nullptr ||
        (rd_kafka_Uuid_most_significant_bits(id) == 0 && rd_kafka_Uuid_least_significant_bits(id) == 0)) {
      continue;
    }
    ids[rd_kafka_TopicDescription_name(found[i])] = rd_kafka_Uuid_base64str(id);
  }
  return ids;
}

#else

std::map<std::string, std::string> AskTopicIds(rd_kafka_t* /*client*/,
                                               const std::vector<std::string>& /*topics*/,
                                               int /*timeout_ms*/) {
  return {};
}

#endif

}  // namespace lethe::kafka
