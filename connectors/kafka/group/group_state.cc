#include "connectors/kafka/group/group_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"

namespace lethe::kafka {
namespace {

constexpr int kGroupTimeoutMs = 2000;

}  // namespace

ByTopic<std::vector<CommittedOffset>> AskCommitted(rd_kafka_t* client,
                                                   const std::map<std::string, int32_t>& partitions) {
  ByTopic<std::vector<CommittedOffset>> result;
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const auto& [topic, count] : partitions) {
    rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, count - 1);
    result.emplace(topic, std::vector<CommittedOffset>(static_cast<size_t>(count)));
  }
  if (partitions.empty()) return result;
  const rd_kafka_resp_err_t code = rd_kafka_committed(client, list.get(), kGroupTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    for (auto& [topic, answer] : result) answer = ErrorStatus(code, "asking for committed offsets");
    return result;
  }
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& element = list->elems[i];
    auto& of_topic = result.at(element.topic);
    if (!of_topic.ok()) continue;
    if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      of_topic = ErrorStatus(element.err, absl::StrCat("asking for the committed offset of ", element.topic,
                                                       "-", element.partition));
      continue;
    }
    CommittedOffset& committed = (*of_topic)[static_cast<size_t>(element.partition)];
    if (element.offset < 0) continue;
    committed.offset = element.offset;
    committed.metadata.assign(static_cast<const char*>(element.metadata), element.metadata_size);
  }
  return result;
}

rd_kafka_resp_err_t CommitOffsets(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& offsets,
                                  int timeout_ms) {
  // rd_kafka_commit() waits for an answer however long it takes.
  const QueuePtr queue(rd_kafka_queue_new(client));
  const rd_kafka_resp_err_t sent = rd_kafka_commit_queue(client, &offsets, queue.get(), nullptr, nullptr);
  if (sent != RD_KAFKA_RESP_ERR_NO_ERROR) return sent;
  const EventPtr answer(rd_kafka_queue_poll(queue.get(), timeout_ms));
  return answer == nullptr ? RD_KAFKA_RESP_ERR__TIMED_OUT : rd_kafka_event_error(answer.get());
}

ByTopic<Cluster::Logs> AskLogs(rd_kafka_t* client,
                               const std::map<std::string, std::vector<int32_t>>& partitions) {
  ByTopic<Cluster::Logs> logs;
  const auto bounds = AskBounds(client, partitions, kGroupTimeoutMs);
  if (bounds.ok()) {
    for (const auto& [topic, of_topic] : *bounds) {
      Cluster::Logs& states = *logs.emplace(topic, Cluster::Logs()).first->second;
      for (const auto& [partition, range] : of_topic) states[partition] = {range.begin, range.end};
    }
    return logs;
  }
  const bool is_one = partitions.size() == 1;
  if (is_one && absl::IsNotFound(bounds.status())) {
    CountPartitions(client, partitions.begin()->first, kGroupTimeoutMs).status().IgnoreError();
  }
  for (const auto& each : partitions) {
    // The brokers have answered, so it is the trouble of some of them.
    const bool asks = !is_one && !absl::IsUnavailable(bounds.status());
    logs.emplace(each.first, asks ? std::move(AskLogs(client, {each}).at(each.first)) : bounds.status());
  }
  return logs;
}

}  // namespace lethe::kafka
