#include "connectors/kafka/topics/topics.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lethe::kafka {
namespace {

// Short enough for a prompt stop; callers ask again, over the same connection.
constexpr int kTopicsTimeoutMs = 1500;
constexpr int kCreateTimeoutMs = 5000;

// PermissionDenied if the user lacks the permission.
absl::StatusOr<TopicConfig> DescribeConfig(rd_kafka_t* client, const std::string& name) {
  using ResourcePtr = std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  const ResourcePtr resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name.c_str()));
  const OptionsPtr options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  char reason[128];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), kTopicsTimeoutMs, reason, sizeof reason);
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  const EventPtr event = AskAdmin(client, kTopicsTimeoutMs + 1000, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DescribeConfigs(client, resources, 1, options.get(), queue);
  });
  if (event == nullptr) return absl::UnavailableError("describing a topic timed out");
  rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  TopicConfig config;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    size_t count = 0;
    const rd_kafka_ConfigResource_t** answers =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event.get()), &count);
    if (count != 1) return absl::InternalError("describing a topic: no answer for it");
    code = rd_kafka_ConfigResource_error(answers[0]);
    const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(answers[0], &count);
    for (size_t i = 0; i < count; ++i) {
      const char* value = rd_kafka_ConfigEntry_value(entries[i]);
      config[rd_kafka_ConfigEntry_name(entries[i])] = value == nullptr ? "" : value;
    }
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, absl::StrCat("describing topic ", name));
  return config;
}

}  // namespace

std::string ClusterId(rd_kafka_t* client, int timeout_ms) {
  char* const id = rd_kafka_clusterid(client, timeout_ms);
  const std::string text = id == nullptr ? "" : id;
  rd_kafka_mem_free(client, id);
  return text;
}

bool IsEmbedded(rd_kafka_t* client) { return absl::StartsWith(ClusterId(client), "mockCluster"); }

absl::StatusOr<std::map<std::string, int32_t>> ListTopics(rd_kafka_t* client) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t code = rd_kafka_metadata(client, 1, nullptr, &metadata, kTopicsTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for the topics of the cluster");
  std::map<std::string, int32_t> topics;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic& topic = metadata->topics[i];
    if (!absl::StartsWith(topic.topic, "__")) topics.emplace(topic.topic, topic.partition_cnt);
  }
  rd_kafka_metadata_destroy(metadata);
  return topics;
}

absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name) {
  TopicFacts topic;
  topic.name = name;
  const auto shape = ShapeOf(client, name, kTopicsTimeoutMs);
  if (!shape.ok()) return shape.status();
  topic.partitions = shape->partitions;
  topic.replicas = shape->replicas;
  // The embedded broker never answers a request to describe a topic.
  if (IsEmbedded(client)) return topic;
  auto config = DescribeConfig(client, name);
  topic.may_be_described = !absl::IsPermissionDenied(config.status());
  if (!topic.may_be_described) return topic;
  if (!config.ok()) return config.status();
  topic.config = *std::move(config);
  return topic;
}

absl::Status CreateTopic(rd_kafka_t* client, const TopicFacts& topic, bool validate_only) {
  using NewTopicPtr = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  const std::string& name = topic.name;
  char reason[256];
  const int replicas = topic.replicas > 0 ? topic.replicas : -1;
  const NewTopicPtr created(
      rd_kafka_NewTopic_new(name.c_str(), topic.partitions, replicas, reason, sizeof reason));
  if (created == nullptr) return absl::InvalidArgumentError(absl::StrCat("topic ", name, ": ", reason));
  for (const auto& [key, value] : topic.config) {
    rd_kafka_NewTopic_set_config(created.get(), key.c_str(), value.c_str());
  }
  rd_kafka_NewTopic_t* topics[] = {created.get()};
  const OptionsPtr options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_CREATETOPICS));
  rd_kafka_AdminOptions_set_validate_only(options.get(), validate_only ? 1 : 0, reason, sizeof reason);
  const EventPtr event = AskAdmin(client, kCreateTimeoutMs, [&](rd_kafka_queue_t* queue) {
    rd_kafka_CreateTopics(client, topics, 1, options.get(), queue);
  });
  if (event == nullptr) return absl::UnavailableError(absl::StrCat("creating topic ", name, " timed out"));
  rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    size_t count = 0;
    const rd_kafka_topic_result_t** results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()), &count);
    code = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR_UNKNOWN;
  }
  if (code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return absl::OkStatus();  // another instance's
  if (code == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR) {
    return absl::UnavailableError(absl::StrCat("creating topic ", name, " with ", replicas,
                                               " replicas, like the input: fewer brokers are up"));
  }
  return ErrorStatus(code, absl::StrCat("creating topic ", name));
}

}  // namespace lethe::kafka
