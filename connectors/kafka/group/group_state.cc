#include "connectors/kafka/group/group_state.h"

#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/topics/topics.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 2000;
constexpr int kAskMembersTimeoutMs = 3000;
// A broker makes a member id of the name of a static member, or of the client's, and "-" and a UUID.
constexpr size_t kIdBehindName = 37;

}  // namespace

absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(rd_kafka_t* client, const std::string& topic,
                                                          int32_t partitions) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(partitions));
  rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, partitions - 1);
  const rd_kafka_resp_err_t code = rd_kafka_committed(client, list.get(), kRequestTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for committed offsets");
  std::vector<CommittedOffset> result(static_cast<size_t>(partitions));
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& element = list->elems[i];
    if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return ErrorStatus(element.err,
                         absl::StrCat("asking for the committed offset of ", topic, "-", element.partition));
    }
    CommittedOffset& committed = result[static_cast<size_t>(element.partition)];
    if (element.offset < 0) continue;
    committed.offset = element.offset;
    committed.metadata.assign(static_cast<const char*>(element.metadata), element.metadata_size);
  }
  return result;
}

absl::StatusOr<LogState> AskLog(rd_kafka_t* client, const std::string& topic, int32_t partition) {
  const auto bounds = BoundsOf(client, topic, partition, kRequestTimeoutMs);
  if (bounds.ok()) return LogState{bounds->begin, bounds->end};
  if (absl::IsNotFound(bounds.status())) {
    CountPartitions(client, topic, kRequestTimeoutMs).status().IgnoreError();
  }
  return bounds.status();
}

absl::StatusOr<std::vector<NamedMember>> AskGroupMembers(const DaemonOptions& options) {
  using GroupsPtr = std::unique_ptr<const rd_kafka_group_list, Destroyer<rd_kafka_group_list_destroy>>;
  ClientErrors errors;
  auto client = MakeAskingClient(options, errors);
  if (!client.ok()) return client.status();
  // rd_kafka_DescribeConsumerGroups() says more, but where brokers do not know the request, such as the one
  // of `lethe demo`, the client of librdkafka 2.0.2 never closes.
  const rd_kafka_group_list* raw = nullptr;
  const rd_kafka_resp_err_t code =
      rd_kafka_list_groups(client->get(), options.group.c_str(), &raw, kAskMembersTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for the members of the group");
  const GroupsPtr groups(raw);
  std::vector<NamedMember> members;
  for (int i = 0; i < groups->group_cnt; ++i) {
    for (int j = 0; j < groups->groups[i].member_cnt; ++j) {
      const rd_kafka_group_member_info& member = groups->groups[i].members[j];
      const absl::string_view id = member.member_id;
      if (id.size() <= kIdBehindName) continue;
      members.push_back(
          {std::string(id), std::string(id.substr(0, id.size() - kIdBehindName)), member.client_host});
    }
  }
  return members;
}

}  // namespace lethe::kafka
