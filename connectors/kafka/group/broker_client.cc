#include "connectors/kafka/group/broker_client.h"

#include <algorithm>
#include <utility>

#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kAskTimeoutMs = 3000;
constexpr int kMetadataTimeoutMs = 1500;
constexpr int kDeleteTimeoutMs = 2000;
// A broker makes a member id of the name of a static member, or of the client's, and "-" and a UUID.
constexpr size_t kIdBehindName = 37;

using DeleteRecordsPtr = std::unique_ptr<rd_kafka_DeleteRecords_t, Destroyer<rd_kafka_DeleteRecords_destroy>>;

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerClient>> BrokerClient::Make(const DaemonOptions& options,
                                                                 Isolation isolation) {
  std::unique_ptr<BrokerClient> brokers(new BrokerClient(options.process.group));
  ClientConfig config =
      ReaderConfig(options, isolation == Isolation::kReadCommitted ? "read_committed" : "read_uncommitted");
  brokers->errors_.Watch(config);
  // A consumer: a producer's question would create missing topics where brokers allow it.
  auto client = config.MakeConsumer();
  if (!client.ok()) return client.status();
  brokers->client_ = *std::move(client);
  return brokers;
}

absl::StatusOr<int> BrokerClient::CountBrokers() {
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto code = rd_kafka_metadata(client(), 0, nullptr, &metadata, kMetadataTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for metadata");
  const int count = metadata->broker_cnt;
  rd_kafka_metadata_destroy(metadata);
  return count;
}

absl::StatusOr<std::map<std::string, int32_t>> BrokerClient::ListTopics() {
  return Explained(kafka::ListTopics(client()));
}

absl::StatusOr<int32_t> BrokerClient::CountPartitions(const std::string& topic) {
  return Explained(kafka::CountPartitions(client(), topic, kAskTimeoutMs));
}

absl::StatusOr<TopicFacts> BrokerClient::DescribeTopic(const std::string& topic) {
  return Explained(kafka::DescribeTopic(client(), topic));
}

absl::Status BrokerClient::CreateTopic(const TopicFacts& topic, bool validate_only) {
  return Explained(kafka::CreateTopic(client(), topic, validate_only));
}

ByTopic<std::vector<CommittedOffset>> BrokerClient::AskCommittedOf(
    const std::map<std::string, int32_t>& partitions) {
  auto committed = kafka::AskCommitted(client(), partitions);
  for (auto& [topic, offsets] : committed) offsets = Explained(std::move(offsets));
  return committed;
}

absl::StatusOr<EndsByTopic> BrokerClient::AskOffsets(const PartitionsByTopic& partitions, absl::Time at,
                                                     absl::Duration timeout) {
  auto offsets = Explained(kafka::AskOffsets(client(), partitions, at, timeout));
  if (!offsets.ok() || at != absl::InfiniteFuture() || !IsEmbedded(client())) return offsets;
  // The embedded broker answers for one partition only.
  for (const auto& [topic, of_topic] : partitions) {
    for (const int32_t partition : of_topic) {
      const auto bounds = AskBounds(topic, partition);
      if (bounds.ok()) (*offsets)[topic][partition] = bounds->end;
    }
  }
  return offsets;
}

absl::StatusOr<OffsetRange> BrokerClient::AskBounds(const std::string& topic, int32_t partition) {
  return Explained(BoundsOf(client(), topic, partition, kAskTimeoutMs));
}

absl::Status BrokerClient::Read(const std::string& topic, const std::map<int32_t, OffsetRange>& ranges,
                                absl::Duration patience, const std::function<void(const InputRecord&)>& see) {
  const absl::Time deadline = SteadyNow() + patience;
  const absl::Status read = ReadLog(client(), topic,
                                    {.ranges = ranges,
                                     .patience = patience,
                                     .see =
                                         [&](const rd_kafka_message_t& message) {
                                           see(MessageView(message).record());
                                           return true;
                                         },
                                     .go_on = [&](int64_t) { return SteadyNow() < deadline; }});
  return absl::IsCancelled(read) || absl::IsUnavailable(read) ? absl::OkStatus() : read;
}

absl::StatusOr<std::vector<NamedMember>> BrokerClient::AskMembers() {
  using GroupsPtr = std::unique_ptr<const rd_kafka_group_list, Destroyer<rd_kafka_group_list_destroy>>;
  // rd_kafka_list_groups() waits for a connection, and does not ask for one: a new client makes its first
  // when its timer of a second next runs.
  if (auto connected = CountBrokers(); !connected.ok()) return connected.status();
  // rd_kafka_DescribeConsumerGroups() says more, but where brokers do not know the request, such as the one
  // of `lethe demo`, the client of librdkafka 2.0.2 never closes.
  const rd_kafka_group_list* raw = nullptr;
  rd_kafka_resp_err_t code = rd_kafka_list_groups(client(), group_.c_str(), &raw, kAskTimeoutMs);
  const GroupsPtr groups(raw);
  // All brokers are asked for the group, and one that is away does not matter if the coordinator has
  // answered. One that is no more, or not yet, the coordinator lists the group without its members.
  const rd_kafka_group_info* group = nullptr;
  for (int i = 0; groups != nullptr && i < groups->group_cnt; ++i) {
    group = &groups->groups[i];
    code = group->err;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) break;
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Explained(ErrorStatus(code, "asking for the members of the group"));
  std::vector<NamedMember> members;
  for (int i = 0; group != nullptr && i < group->member_cnt; ++i) {
    const rd_kafka_group_member_info& member = group->members[i];
    const absl::string_view id = member.member_id;
    members.push_back({.id = std::string(id),
                       .name = std::string(id.substr(0, id.size() - std::min(id.size(), kIdBehindName))),
                       .host = member.client_host,
                       .client = member.client_id});
  }
  return members;
}

absl::StatusOr<Brokers::Answers> BrokerClient::DeleteRecords(const EndsByTopic& below) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  for (const auto& [topic, of_topic] : below) {
    for (const auto& [partition, offset] : of_topic) {
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
    }
  }
  const DeleteRecordsPtr deletion(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* deletions[] = {deletion.get()};
  const EventPtr event = AskAdmin(client(), kDeleteTimeoutMs, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DeleteRecords(client(), deletions, 1, nullptr, queue);
  });
  if (event == nullptr) return Explained(absl::UnavailableError("deleting records timed out"));
  const rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Explained(ErrorStatus(code, "deleting records"));
  const rd_kafka_topic_partition_list_t* done =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
  Answers answers;
  for (int i = 0; i < done->cnt; ++i) {
    const rd_kafka_topic_partition_t& each = done->elems[i];
    answers[each.topic].emplace(each.partition, ErrorStatus(each.err, "deleting records"));
  }
  return answers;
}

}  // namespace lethe::kafka
