#include "connectors/kafka/topics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client.h"

namespace lethe::kafka {
namespace {

// Short enough for a stop to be seen in time; who waits asks again, over the same connection.
constexpr absl::Duration kNewTopicPatience = absl::Seconds(3);
constexpr int kRequestTimeoutMs = 1500;
// Kafka's default of max.message.bytes, for brokers that do not answer DescribeConfigs.
constexpr int64_t kDefaultMaxMessageBytes = 1048588;

using TopicConfig = std::map<std::string, std::string>;

// The configuration of a topic; empty if the broker does not want to answer: the checks are left out then.
absl::StatusOr<TopicConfig> DescribeTopic(rd_kafka_t* client, const std::string& name) {
  using ResourcePtr = std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;
  using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
  using EventPtr = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
  using OptionsPtr = std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;
  const ResourcePtr resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name.c_str()));
  const QueuePtr queue(rd_kafka_queue_new(client));
  const OptionsPtr options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  char reason[128];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), kRequestTimeoutMs, reason, sizeof reason);
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client, resources, 1, options.get(), queue.get());
  const EventPtr event(rd_kafka_queue_poll(queue.get(), kRequestTimeoutMs + 1000));
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
  if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
      code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED) {
    spdlog::warn(
        "topic {} may not be described (no DescribeConfigs permission): its cleanup policy, retention and "
        "size "
        "limit are not checked",
        name);
    return TopicConfig();
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, absl::StrCat("describing topic ", name));
  return config;
}

int64_t Number(const TopicConfig& config, const std::string& name, int64_t fallback) {
  const auto found = config.find(name);
  int64_t value = 0;
  return found != config.end() && absl::SimpleAtoi(found->second, &value) ? value : fallback;
}

bool Compacts(const TopicConfig& config) {
  const auto found = config.find("cleanup.policy");
  return found != config.end() && absl::StrContains(found->second, "compact");
}

// The embedded broker never answers a request to describe a topic.
bool CanDescribeTopics(rd_kafka_t* client) {
  char* id = rd_kafka_clusterid(client, kRequestTimeoutMs);
  const bool embedded = id != nullptr && absl::StartsWith(id, "mockCluster");
  rd_kafka_mem_free(client, id);
  return !embedded;
}

absl::StatusOr<TopicConfig> DescribeIfPossible(rd_kafka_t* client, const std::string& name) {
  return CanDescribeTopics(client) ? DescribeTopic(client, name) : TopicConfig();
}

absl::Status CheckInput(const DaemonOptions& options, const TopicConfig& config, Topics& topics) {
  if (Compacts(config)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "input topic ", options.input, " is compacted (cleanup.policy=", config.at("cleanup.policy"),
        "): compaction may keep the retry and remove the first; use a topic with cleanup.policy=delete"));
  }
  if (options.routes) return absl::OkStatus();  // what a restart needs is in the topic that it is copied to
  const int64_t retention_ms = Number(config, "retention.ms", -1);
  const int64_t horizon_ms = absl::ToInt64Milliseconds(options.stage.horizon);
  if (retention_ms >= 0 && retention_ms < horizon_ms) {
    topics.warnings.push_back(absl::StrFormat(
        "input topic %s keeps records for %s (retention.ms=%d), less than the horizon of %s: after a restart "
        "older ids are not known, and their retries pass; raise retention.ms",
        options.input, absl::FormatDuration(absl::Milliseconds(retention_ms)), retention_ms,
        absl::FormatDuration(options.stage.horizon)));
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const std::string& name, const char* what, int32_t partitions, int32_t needed,
                         const TopicConfig& config, Topics& topics, int64_t& max_bytes) {
  if (partitions < needed) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " topic ", name, " has ", partitions, " partitions, the input has ", needed,
                     ": records keep their partition, so it needs as many; kafka-topics.sh --alter --topic ",
                     name, " --partitions ", needed));
  }
  if (partitions > needed) {
    topics.warnings.push_back(absl::StrCat(what, " topic ", name, " has ", partitions,
                                           " partitions, the input has ", needed,
                                           ": records keep their partition, the others stay empty"));
  }
  const auto type = config.find("message.timestamp.type");
  if (type != config.end() && type->second == "LogAppendTime") {
    topics.warnings.push_back(absl::StrCat(what, " topic ", name,
                                           " has message.timestamp.type=LogAppendTime: the records' own "
                                           "times are lost there; CreateTime keeps them"));
  }
  max_bytes = Number(config, "max.message.bytes", kDefaultMaxMessageBytes);
  return absl::OkStatus();
}

// Compaction would keep only the last record of each key.
absl::Status CheckIsALog(const std::string& name, const char* what, const TopicConfig& config) {
  if (!Compacts(config)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " topic ", name,
                   " is compacted: what is written there are events, and compaction would keep only the last "
                   "of each key; use a topic with cleanup.policy=delete"));
}

absl::StatusOr<Topics> InspectOnce(const DaemonOptions& options, rd_kafka_t* client) {
  Topics topics;
  int32_t needed = 0;  // partitions of what records keep their partition in
  struct Role {
    const std::string& name;
    const char* what;
    int64_t Topics::*max_bytes;
    bool is_log;
  };
  for (const Role& role : {Role{options.input, "input", nullptr, false},
                           Role{options.output, "output", &Topics::output_max_bytes, false},
                           Role{options.counter_output, "counter", &Topics::counter_max_bytes, true},
                           Role{options.divert, "divert", &Topics::divert_max_bytes, true}}) {
    if (role.name.empty()) continue;
    const auto partitions = CountPartitions(client, role.name);
    if (absl::IsNotFound(partitions.status())) {
      const int32_t wanted = topics.partitions == 0 ? 1 : topics.partitions;
      return absl::NotFoundError(absl::StrCat(role.what, " topic ", role.name,
                                              " does not exist: create it, for example with kafka-topics.sh "
                                              "--bootstrap-server ",
                                              options.brokers, " --create --topic ", role.name,
                                              " --partitions ", wanted));
    }
    if (!partitions.ok()) return partitions.status();
    const auto described = DescribeIfPossible(client, role.name);
    if (!described.ok()) return described.status();
    const TopicConfig& config = *described;
    if (&role.name == &options.input) {
      topics.partitions = needed = *partitions;
      if (absl::Status fits = CheckInput(options, config, topics); !fits.ok()) return fits;
      if (options.routed_from.empty()) continue;
      const auto original = CountPartitions(client, options.routed_from);
      if (!original.ok()) return original.status();
      needed = *original;
      continue;
    }
    if (&role.name == &options.output) topics.output_partitions = *partitions;
    if (role.is_log) {
      if (absl::Status is_log = CheckIsALog(role.name, role.what, config); !is_log.ok()) return is_log;
    }
    // Counters are written to the partition that is judged, and what is routed goes where there is one.
    const bool routed = options.routes && &role.name == &options.output;
    const int32_t wanted = routed                                  ? *partitions
                           : &role.name == &options.counter_output ? topics.partitions
                                                                   : needed;
    if (absl::Status fits =
            CheckOutput(role.name, role.what, *partitions, wanted, config, topics, topics.*role.max_bytes);
        !fits.ok()) {
      return fits;
    }
  }
  for (int32_t partition = 0; partition < topics.partitions; ++partition) {
    int64_t low = 0;
    int64_t end = 0;  // by the client's isolation level
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        client, options.input.c_str(), partition, &low, &end, kRequestTimeoutMs);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ErrorStatus(code, absl::StrCat("asking for the end of ", options.input, "-", partition));
    }
    topics.end_offsets.push_back(end);
  }
  return topics;
}

}  // namespace

absl::StatusOr<int32_t> CountPartitions(rd_kafka_t* client, const std::string& name) {
  const TopicPtr topic(rd_kafka_topic_new(client, name.c_str(), nullptr));
  if (topic == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no name of a topic"));
  const rd_kafka_metadata_t* raw = nullptr;
  const rd_kafka_resp_err_t code = rd_kafka_metadata(client, 0, topic.get(), &raw, kRequestTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for topic metadata");
  const std::unique_ptr<const rd_kafka_metadata_t, Destroyer<rd_kafka_metadata_destroy>> metadata(raw);
  if (metadata->topic_cnt != 1) return absl::UnavailableError("the broker gave no metadata of the topic");
  if (metadata->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ErrorStatus(metadata->topics[0].err, absl::StrCat("topic ", name));
  }
  return metadata->topics[0].partition_cnt;
}

absl::StatusOr<TopicShape> ShapeOfTopic(rd_kafka_t* client, const std::string& topic) {
  const auto partitions = CountPartitions(client, topic);
  if (!partitions.ok()) return partitions.status();
  const auto config = DescribeIfPossible(client, topic);
  if (!config.ok()) return config.status();
  return TopicShape{*partitions, Number(*config, "max.message.bytes", kDefaultMaxMessageBytes)};
}

int64_t Topics::max_batch_bytes() const {
  int64_t bytes = output_max_bytes;
  for (const int64_t limit : {counter_max_bytes, divert_max_bytes}) {
    if (limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop) {
  for (const std::string* other : {&options.output, &options.counter_output, &options.divert}) {
    if (*other == options.input) {
      return absl::InvalidArgumentError(
          absl::StrCat("topic ", options.input, " is input and output at once: it would feed itself"));
    }
  }
  ClientConfig config = BaseConfig(options);
  config.Set("isolation.level", options.routed_from.empty() ? "read_committed" : "read_uncommitted");
  // A consumer, since asking as a producer would create missing topics where brokers allow it.
  auto client = config.MakeConsumer();
  if (!client.ok()) return client.status();
  Topics topics;
  absl::Status asked = AwaitTopics(options, stop, [&] {
    auto answer = InspectOnce(options, client->get());
    if (answer.ok()) topics = *std::move(answer);
    return answer.status();
  });
  if (!asked.ok()) return asked;
  return topics;
}

absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status()>& ask) {
  bool said = false;
  absl::Time missing_since = absl::InfiniteFuture();
  for (;;) {
    absl::Status answer = ask();
    // A topic that was made a moment ago is not known to every broker yet.
    const bool missing = absl::IsNotFound(answer);
    missing_since = missing ? std::min(missing_since, absl::Now()) : absl::InfiniteFuture();
    const bool wait = missing ? absl::Now() - missing_since < kNewTopicPatience : absl::IsUnavailable(answer);
    if (!wait) return answer;
    if (!said) spdlog::warn("waiting for {}: {}", options.brokers, answer.ToString());
    said = true;
    if (stop.WaitFor(absl::Milliseconds(250))) {
      return absl::CancelledError(
          absl::StrCat("stopped while waiting for ", options.brokers, ": ", answer.message()));
    }
  }
}

}  // namespace lethe::kafka
