#include "connectors/kafka/topics/topics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe::kafka {
namespace {

// Short enough for a prompt stop; callers ask again, over the same connection.
constexpr absl::Duration kNewTopicPatience = absl::Seconds(3);
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

absl::StatusOr<TopicFacts> DescribeAs(const DaemonOptions& options, absl::string_view role,
                                      const std::string& name, int32_t partitions, rd_kafka_t* client) {
  auto topic = DescribeTopic(client, name);
  if (absl::IsPermissionDenied(topic.status())) {
    return WithGrant(role, name,
                     absl::PermissionDeniedError(absl::StrCat(role, " ", topic.status().message())));
  }
  if (!absl::IsNotFound(topic.status())) return topic;
  // An input exists if its name is right; an output is new at first.
  return MissingTopic(options, role, name, partitions,
                      role == "input" ? TopicNames(client) : std::vector<std::string>());
}

}  // namespace

std::string ClusterId(rd_kafka_t* client) {
  char* const id = rd_kafka_clusterid(client, kTopicsTimeoutMs);
  const std::string text = id == nullptr ? "" : id;
  rd_kafka_mem_free(client, id);
  return text;
}

std::vector<std::string> TopicNames(rd_kafka_t* client) {
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(client, 1, nullptr, &metadata, kTopicsTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return {};
  }
  std::vector<std::string> names;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const absl::string_view name = metadata->topics[i].topic;
    if (!absl::StartsWith(name, "__")) names.emplace_back(name);
  }
  rd_kafka_metadata_destroy(metadata);
  return names;
}

absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name) {
  TopicFacts topic;
  topic.name = name;
  const auto shape = ShapeOf(client, name, kTopicsTimeoutMs);
  if (!shape.ok()) return shape.status();
  topic.partitions = shape->partitions;
  topic.replicas = shape->replicas;
  // The embedded broker never answers a request to describe a topic.
  if (absl::StartsWith(ClusterId(client), "mockCluster")) return topic;
  auto config = DescribeConfig(client, name);
  topic.may_be_described = !absl::IsPermissionDenied(config.status());
  if (!topic.may_be_described) return topic;
  if (!config.ok()) return config.status();
  topic.config = *std::move(config);
  return topic;
}

absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const TopicConfig& config, bool validate_only) {
  using NewTopicPtr = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  char reason[256];
  const int replicas = shape.replicas > 0 ? shape.replicas : -1;
  const NewTopicPtr topic(
      rd_kafka_NewTopic_new(name.c_str(), shape.partitions, replicas, reason, sizeof reason));
  if (topic == nullptr) return absl::InvalidArgumentError(absl::StrCat("topic ", name, ": ", reason));
  for (const auto& [key, value] : config) {
    rd_kafka_NewTopic_set_config(topic.get(), key.c_str(), value.c_str());
  }
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
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

absl::StatusOr<int32_t> EnsureTopic(
    const DaemonOptions& options, rd_kafka_t* client, absl::string_view role, const std::string& name,
    const std::function<absl::StatusOr<TopicConfig>(const TopicFacts& input)>& config_for) {
  const auto partitions = CountPartitions(client, name, kCreateTimeoutMs);
  if (partitions.ok()) return partitions;
  if (!absl::IsNotFound(partitions.status())) return WithGrant(role, name, partitions.status());
  const auto input = DescribeInputs(options, options.inputs(), client);
  if (!input.ok()) return input.status();
  const auto config = config_for(*input);
  if (!config.ok()) return config.status();
  const absl::Status created = CreateTopic(client, name, {input->partitions, input->replicas}, *config);
  if (!created.ok()) return WithGrant(role, name, created);
  spdlog::info("topic {} created, with {} partitions", name, input->partitions);
  return input->partitions;
}

absl::StatusOr<TopicFacts> DescribeInputs(const DaemonOptions& options, const std::vector<std::string>& names,
                                          rd_kafka_t* client) {
  TopicFacts all;
  absl::Status missing;
  for (const std::string& name : names) {
    auto topic = DescribeAs(options, "input", name, 1, client);
    if (!topic.ok()) {
      if (!absl::IsNotFound(topic.status())) return topic;
      if (missing.ok()) missing = topic.status();
      continue;
    }
    if (all.partitions == 0) {
      all = *std::move(topic);
    } else {
      all.Join(*topic);
    }
  }
  if (all.partitions == 0) return missing;
  return all;
}

absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client) {
  AllTopics topics;
  absl::Status asked;
  const auto describe = [&](absl::string_view role, const std::string& name, int32_t partitions, auto& into) {
    auto topic = DescribeAs(options, role, name, partitions, client);
    asked = topic.status();
    if (topic.ok()) into = *std::move(topic);
    const bool creates_it = role == "snapshot" || role == "repartition";
    if (creates_it && absl::IsNotFound(asked)) asked = absl::OkStatus();
  };
  describe("input", options.input, 1, topics.input);
  if (asked.ok() && !options.half.routed_from.empty()) {
    auto origin = DescribeInputs(options, options.half.routed_from, client);
    asked = origin.status();
    if (origin.ok()) topics.origin = *std::move(origin);
  }
  const int32_t partitions = topics.with_places().partitions;
  if (asked.ok()) describe("output", options.output, partitions, topics.output);
  for (const CounterOptions& each : options.counters) {
    if (!asked.ok()) return asked;
    TopicFacts& counter = topics.counters.emplace_back();
    counter.name = each.output;
    describe("counter", each.output, topics.input.partitions, counter);
    if (each.mode == CounterMode::kTotal && absl::IsNotFound(asked))
      asked = absl::OkStatus();  // created later
  }
  if (asked.ok() && !options.divert.empty()) describe("divert", options.divert, partitions, topics.divert);
  if (asked.ok() && !options.process.snapshots.topic.empty()) {
    describe("snapshot", options.process.snapshots.topic, 1, topics.snapshots);
  }
  if (asked.ok() && options.has_two_stages()) {
    describe("repartition", RepartitionTopic(options), 1, topics.repartition);
  }
  if (!asked.ok()) return asked;
  return topics;
}

absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors) {
  ClientConfig config =
      ReaderConfig(options, options.half.routed_from.empty() ? "read_committed" : "read_uncommitted");
  errors.Watch(config);
  // A consumer: a producer's question would create missing topics where brokers allow it.
  return config.MakeConsumer();
}

absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t*)>& ask) {
  ClientErrors errors;
  auto client = MakeAskingClient(options, errors);
  if (!client.ok()) return client.status();
  std::string said;
  absl::Time missing_since = absl::InfiniteFuture();
  for (;;) {
    absl::Status answer = ask(client->get());
    // Some brokers may not know a new topic yet.
    const bool missing = absl::IsNotFound(answer);
    missing_since = missing ? std::min(missing_since, SteadyNow()) : absl::InfiniteFuture();
    const bool wait = missing ? SteadyNow() - missing_since < kNewTopicPatience : absl::IsUnavailable(answer);
    if (!wait) return answer;
    const absl::Status met = errors.Last(client->get());
    if (absl::IsPermissionDenied(met)) return met;
    const std::string why(met.ok() ? answer.message() : met.message());
    // A topic may have been created a moment ago; if it stays missing, the error says so.
    if (said != why && !missing) spdlog::warn("waiting for {}: {}", options.process.brokers, why);
    said = why;
    if (stop.WaitFor(absl::Milliseconds(250))) {
      return absl::CancelledError(
          absl::StrCat("stopped while waiting for ", options.process.brokers, ": ", why));
    }
  }
}

}  // namespace lethe::kafka
