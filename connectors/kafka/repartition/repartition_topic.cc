#include "connectors/kafka/repartition/repartition_topic.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe::kafka {
namespace {

// The most that the two headers add to a record.
constexpr int64_t kHeaderBytes = 256;
// Small segments, so that deleted records free their room soon.
constexpr int64_t kSegmentBytes = 52428800;

// How long Trim() waits for the broker.
constexpr int kTrimTimeoutMs = 2000;
constexpr int kAskTimeoutMs = 3000;

using DeleteRecordsPtr = std::unique_ptr<rd_kafka_DeleteRecords_t, Destroyer<rd_kafka_DeleteRecords_destroy>>;

// The configuration of a topic that may be created: nothing is lost with it. The client is of the group that
// copies.
absl::StatusOr<TopicConfig> ConfigIfNew(const DaemonOptions& options, rd_kafka_t* client,
                                        const TopicFacts& input) {
  for (const std::string& each : options.inputs()) {
    const auto partitions = CountPartitions(client, each, kAskTimeoutMs);
    if (absl::IsNotFound(partitions.status())) continue;  // another one exists
    if (!partitions.ok()) return partitions.status();
    const auto committed = AskCommitted(client, each, *partitions);
    if (absl::IsPermissionDenied(committed.status())) {
      const std::string group = RoutingGroup(options);
      return absl::PermissionDeniedError(absl::StrCat("group ", group, ": ", committed.status().message(),
                                                      ": grant this user Read on group ", group));
    }
    if (!committed.ok()) return committed.status();
    DaemonOptions of_input = options;
    of_input.input = each;
    // Another instance may have created it a moment ago: the caller asks again.
    if (const auto lost = LostWithTopic(of_input, *committed)) return absl::NotFoundError(lost->Text());
  }
  return RepartitionConfig(input);
}

}  // namespace

TopicConfig RepartitionConfig(const TopicFacts& input) {
  const int64_t max_bytes = std::min<int64_t>(input.max_message_bytes() + kHeaderBytes, INT32_MAX);
  TopicConfig config = {{"cleanup.policy", "delete"},
                        {"retention.ms", "-1"},
                        {"retention.bytes", "-1"},
                        {"segment.bytes", absl::StrCat(std::max(kSegmentBytes, max_bytes))},
                        {"message.timestamp.type", "CreateTime"},
                        {"max.message.bytes", absl::StrCat(max_bytes)}};
  // The brokers' version decides which exist.
  for (const char* bound : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
    if (input.config.contains(bound)) config[bound] = absl::StrCat(INT64_MAX);
  }
  // Routed records are committed in the input's group, so the topic must be as safe as the input.
  constexpr char kMinInSync[] = "min.insync.replicas";
  if (const auto least = input.config.find(kMinInSync); least != input.config.end()) {
    config[kMinInSync] = least->second;
  }
  return config;
}

std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed) {
  const bool has_copied = std::any_of(committed.begin(), committed.end(), [](const CommittedOffset& each) {
    const auto metadata = CommitMetadata::Parse(each.metadata);
    // Unreadable metadata counts as routed.
    return metadata.ok() ? metadata->origin.offset < each.offset : !absl::IsNotFound(metadata.status());
  });
  if (!has_copied) return std::nullopt;
  const std::string group = RoutingGroup(options);
  return Finding{
      Finding::Severity::kError, "create", absl::StrCat("repartition topic ", RepartitionTopic(options)),
      absl::StrCat("is gone, and group ", group, " has routed records of ", options.input,
                   " to it: unjudged ones would be lost, and copies of judged ones would pass"),
      absl::StrCat(
          "stop every instance, then have them routed again: kafka-consumer-groups.sh --bootstrap-server ",
          options.process.brokers, " --group ", group, " --topic ", options.input,
          " --reset-offsets --to-earliest --execute, or --to-datetime with a time before the first unjudged "
          "record. Records read again that are in ",
          options.output, " already are written there again",
          options.counters.empty() ? "" : ", and counted again",
          "; copies of records before that time pass (a new --group does the same, from --start)")};
}

absl::Status EnsureRepartitionTopicOnce(const DaemonOptions& options, rd_kafka_t* client) {
  return EnsureTopic(options, client, "repartition", RepartitionTopic(options),
                     [&](const TopicFacts& input) { return ConfigIfNew(options, client, input); })
      .status();
}

absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop) {
  return AwaitTopics(RoutingOptions(options, options.input), stop,
                     [&](rd_kafka_t* client) { return EnsureRepartitionTopicOnce(options, client); });
}

absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input) {
  return CreateTopic(client, RepartitionTopic(options), {input.partitions, input.replicas},
                     RepartitionConfig(input), /*validate_only=*/true);
}

absl::StatusOr<LogTrimmer> LogTrimmer::Create(const DaemonOptions& judging) {
  auto client = BaseConfig(judging).MakeProducer();
  if (!client.ok()) return client.status();
  return LogTrimmer(*std::move(client));
}

void LogTrimmer::Trim(const Flows& flows, const std::vector<LaneReport>& lanes) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      if (flows.at(partition.flow).options.half.routed_from.empty()) continue;  // it is not lethe's
      const int64_t offset = partition.restore.restart;
      if (offset <= 0 || offset <= trimmed_[{partition.topic, partition.partition}]) continue;
      rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.partition)->offset =
          offset;
    }
  }
  if (list->cnt == 0) return;
  const DeleteRecordsPtr deletion(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* deletions[] = {deletion.get()};
  const EventPtr event = AskAdmin(client_.get(), kTrimTimeoutMs, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DeleteRecords(client_.get(), deletions, 1, nullptr, queue);
  });
  if (event == nullptr) return;  // done or not: it is asked again
  rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  std::string refused = list->elems[0].topic;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const rd_kafka_topic_partition_list_t* done =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
    for (int i = 0; i < done->cnt; ++i) {
      const rd_kafka_topic_partition_t& element = done->elems[i];
      if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = element.err;
        refused = element.topic;
      } else {
        int64_t& below = trimmed_[{element.topic, element.partition}];
        below = std::max(below, element.offset);
      }
    }
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || std::exchange(complained_, true)) return;
  spdlog::warn("{}: cannot delete records that no restart needs, so the topic grows: {}", refused,
               rd_kafka_err2str(code));
}

}  // namespace lethe::kafka
