#include "connectors/kafka/repartition/log_trimmer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lethe::kafka {
namespace {

constexpr int kTrimTimeoutMs = 2000;

using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using EventPtr = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
using DeleteRecordsPtr = std::unique_ptr<rd_kafka_DeleteRecords_t, Destroyer<rd_kafka_DeleteRecords_destroy>>;

}  // namespace

absl::StatusOr<LogTrimmer> LogTrimmer::Create(const DaemonOptions& judging) {
  auto client = BaseConfig(judging).MakeProducer();
  if (!client.ok()) return client.status();
  return LogTrimmer(judging.input, *std::move(client));
}

void LogTrimmer::Trim(const std::vector<LaneReport>& lanes) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      const int64_t offset = partition.restart;
      if (offset <= 0 || offset <= trimmed_[partition.partition]) continue;
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition.partition)->offset = offset;
    }
  }
  if (list->cnt == 0) return;
  const DeleteRecordsPtr deletion(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* deletions[] = {deletion.get()};
  const QueuePtr queue(rd_kafka_queue_new(client_.get()));
  rd_kafka_DeleteRecords(client_.get(), deletions, 1, nullptr, queue.get());
  const EventPtr event(rd_kafka_queue_poll(queue.get(), kTrimTimeoutMs));
  if (event == nullptr) return;  // done or not: it is asked again
  rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const rd_kafka_topic_partition_list_t* done =
        rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()));
    for (int i = 0; i < done->cnt; ++i) {
      const rd_kafka_topic_partition_t& element = done->elems[i];
      if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        code = element.err;
      } else {
        trimmed_[element.partition] = std::max(trimmed_[element.partition], element.offset);
      }
    }
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || std::exchange(complained_, true)) return;
  spdlog::warn("{}: records that are no longer needed cannot be deleted, and the topic grows: {}", topic_,
               rd_kafka_err2str(code));
}

}  // namespace lethe::kafka
