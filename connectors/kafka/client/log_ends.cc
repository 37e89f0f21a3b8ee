#include "connectors/kafka/client/log_ends.h"

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"

namespace lethe::kafka {
namespace {

// As a time, in the protocol's request ListOffsets.
constexpr int64_t kLatest = -1;

}  // namespace

absl::Status LogEnds::Ask(rd_kafka_t* client, const std::string& topic,
                          const std::vector<int32_t>& partitions, absl::Duration timeout) {
  if (partitions.empty()) return absl::OkStatus();
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const int32_t partition : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = kLatest;
  }
  const rd_kafka_resp_err_t code =
      rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return ErrorStatus(code, absl::StrCat("asking for the end of ", topic));
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& answer = list->elems[i];
    if (answer.err == RD_KAFKA_RESP_ERR_NO_ERROR && answer.offset >= 0) {
      ends_[answer.partition] = answer.offset;
    }
  }
  return absl::OkStatus();
}

int64_t LogEnds::Of(int32_t partition) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto end = ends_.find(partition);
  return end == ends_.end() ? 0 : end->second;
}

}  // namespace lethe::kafka
