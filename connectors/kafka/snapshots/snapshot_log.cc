#include "connectors/kafka/snapshots/snapshot_log.h"

#include <librdkafka/rdkafka.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr int kSnapshotTimeoutMs = 2000;
constexpr absl::Duration kSnapshotPatience = absl::Seconds(30);

class KafkaSnapshotLog final : public SnapshotLog {
 public:
  KafkaSnapshotLog(const DaemonOptions& options, SnapshotProducer producer)
      : options_(options), topic_(options.process.snapshots.topic), producer_(std::move(producer)) {}

  absl::Status Send(const NewRecord& record, const GoOn& go_on) override;
  absl::Status Flush(const GoOn& go_on) override;
  absl::Status Scan(int32_t partition, absl::Time from, const GoOn& go_on, const See& see) const override;

  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* /*opaque*/) {
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    *static_cast<rd_kafka_resp_err_t*>(message->_private) = message->err;
  }

 private:
  const DaemonOptions& options_;
  const std::string topic_;
  const SnapshotProducer producer_;
  // Why a record since the last Flush() was not delivered. No record is on its way after a Flush().
  rd_kafka_resp_err_t failed_ = RD_KAFKA_RESP_ERR_NO_ERROR;
};

absl::Status KafkaSnapshotLog::Send(const NewRecord& record, const GoOn& go_on) {
  const absl::Time deadline = SteadyNow() + kSnapshotPatience;
  for (;;) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_PARTITION(record.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record.key.data(), record.key.size()),
        RD_KAFKA_V_VALUE(DataOf(record.value), record.value.value_or("").size()),
        RD_KAFKA_V_TIMESTAMP(absl::ToUnixMillis(record.time)), RD_KAFKA_V_OPAQUE(&failed_), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || !go_on() || SteadyNow() >= deadline) {
      return ErrorStatus(code, absl::StrCat("writing to ", topic_));
    }
    rd_kafka_poll(producer_.get(), 20);
  }
}

absl::Status KafkaSnapshotLog::Flush(const GoOn& go_on) {
  const absl::Time deadline = SteadyNow() + kSnapshotPatience;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  do {
    code = rd_kafka_flush(producer_.get(), 100);
  } while (code != RD_KAFKA_RESP_ERR_NO_ERROR && go_on() && SteadyNow() < deadline);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    // No record may be delivered after this, nor report to a log that is gone.
    rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer_.get(), kSnapshotTimeoutMs);  // hands over what the purge has returned
  }
  const rd_kafka_resp_err_t failed = std::exchange(failed_, RD_KAFKA_RESP_ERR_NO_ERROR);
  return ErrorStatus(code != RD_KAFKA_RESP_ERR_NO_ERROR ? code : failed, absl::StrCat("writing to ", topic_));
}

absl::Status KafkaSnapshotLog::Scan(int32_t partition, absl::Time from, const GoOn& go_on,
                                    const See& see) const {
  // Up to the high watermark: all that was there when the commit that names it was read.
  const auto consumer =
      ReaderConfig(options_, "read_uncommitted",
                   FetchOn::Defaults({{"fetch.message.max.bytes", "8388608"}, kSeesEndsSoon}))
          .MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  const auto bounds = BoundsOf(consumer->get(), topic_, partition, kSnapshotTimeoutMs);
  if (!bounds.ok()) return bounds.status();
  if (!go_on()) return absl::CancelledError(absl::StrCat("reading ", topic_, " was cancelled"));
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_t* const element =
      rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition);
  element->offset = absl::ToUnixMillis(from);
  rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(consumer->get(), list.get(), kSnapshotTimeoutMs);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = element->err;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return ErrorStatus(code, absl::StrCat("looking for a time in ", topic_));
  if (element->offset < 0) return absl::OkStatus();
  return ReadLog(consumer->get(), topic_,
                 {.ranges = {{partition, {element->offset, bounds->end}}},
                  .patience = kSnapshotPatience,
                  .see =
                      [&](const rd_kafka_message_t& message) {
                        const InputRecord record = MessageView(message).record();
                        return see(record.key.value_or(""), record.value);
                      },
                  .go_on = [&](int64_t) { return go_on(); }});
}

absl::Status MakeProducer(const DaemonOptions& options, SnapshotProducer& producer) {
  if (producer != nullptr) return absl::OkStatus();
  ClientConfig config = BaseConfig(options, {{"linger.ms", "5"}, {"compression.type", "lz4"}});
  config.Set("enable.idempotence", "true").Set("acks", "all").Set("delivery.report.only.error", "true");
  // The queue holds a second copy in memory.
  config.Set("queue.buffering.max.kbytes", "16384").Set("message.max.bytes", "1000000");
  rd_kafka_conf_set_dr_msg_cb(config.raw(), KafkaSnapshotLog::OnDelivery);
  auto made = config.MakeProducer();
  if (!made.ok()) return made.status();
  producer = *std::move(made);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshotLog(const DaemonOptions& options,
                                                             SnapshotProducer& producer) {
  if (absl::Status made = MakeProducer(options, producer); !made.ok()) return made;
  return std::make_unique<KafkaSnapshotLog>(options, producer);
}

}  // namespace lethe::kafka
