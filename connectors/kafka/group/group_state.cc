#include "connectors/kafka/group/group_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 2000;

}  // namespace

bool HasBegun(const std::vector<CommittedOffset>& committed) {
  return std::any_of(committed.begin(), committed.end(),
                     [](const CommittedOffset& each) { return each.offset >= 0; });
}

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

}  // namespace lethe::kafka
