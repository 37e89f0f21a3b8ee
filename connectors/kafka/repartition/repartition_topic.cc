#include "connectors/kafka/repartition/repartition_topic.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/repartition_rules.h"

namespace lethe::kafka {
namespace {

// How long Trim() waits for the broker.
constexpr int kTrimTimeoutMs = 2000;
constexpr int kRoutedTimeoutMs = 3000;

using DeleteRecordsPtr = std::unique_ptr<rd_kafka_DeleteRecords_t, Destroyer<rd_kafka_DeleteRecords_destroy>>;

// The configuration of a topic that may be created: nothing is lost with it. The client is of the group that
// copies.
absl::StatusOr<TopicConfig> ConfigIfNew(const DaemonOptions& options, rd_kafka_t* client,
                                        const TopicFacts& input) {
  for (const std::string& each : options.inputs()) {
    const auto partitions = CountPartitions(client, each, kRoutedTimeoutMs);
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

void WarnOfLoss(const DaemonOptions& options, rd_kafka_t* routers, rd_kafka_t* deduplicators) {
  const std::string topic = RepartitionTopic(options);
  const auto committed = [](rd_kafka_t* client,
                            const std::string& of) -> absl::StatusOr<std::vector<CommittedOffset>> {
    const auto partitions = CountPartitions(client, of, kRoutedTimeoutMs);
    if (!partitions.ok()) return partitions.status();
    return AskCommitted(client, of, *partitions);
  };
  // The routers' first: what they have routed since is not judged.
  for (const std::string& input : options.inputs()) {
    const auto routed = committed(routers, input);
    const auto judged = committed(deduplicators, topic);
    if (!routed.ok() || !judged.ok()) continue;
    DaemonOptions of_input = options;
    of_input.input = input;
    if (const auto lost = LostInTopic(of_input, *routed, *judged)) return spdlog::warn("{}", lost->Text());
  }
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
