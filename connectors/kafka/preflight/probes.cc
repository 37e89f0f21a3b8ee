#include "connectors/kafka/preflight/probes.h"

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/output/producer_config.h"

namespace lethe::kafka {
namespace {

constexpr int kProbeTimeoutMs = 8000;

// A transaction that has just begun is in no valid state any more: the other producer has ended it.
bool IsTaken(rd_kafka_resp_err_t code) {
  return IsFence(code) || code == RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS ||
         code == RD_KAFKA_RESP_ERR_INVALID_TXN_STATE;
}

// Its message is librdkafka's text alone.
absl::Status TransactionStatus(rd_kafka_t* client, const rd_kafka_error_t* error) {
  if (error == nullptr) return absl::OkStatus();
  char reason[256];
  const bool is_taken =
      IsTaken(rd_kafka_error_code(error)) || IsTaken(rd_kafka_fatal_error(client, reason, sizeof reason));
  if (is_taken) return absl::AbortedError(rd_kafka_error_string(error));
  return absl::Status(ErrorStatus(CauseOf(client, error), "").code(), rd_kafka_error_string(error));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Brokers>> KafkaProbes::MakeBrokers(const DaemonOptions& options,
                                                                  Isolation isolation) {
  return BrokerClient::Make(options, isolation);
}

absl::Status KafkaProbes::MakeClients(const DaemonOptions& options) {
  if (absl::Status made = Consumer::Config(options, 0).MakeConsumer().status(); !made.ok()) return made;
  constexpr int64_t kUsualBytes = 1'000'000;
  return ProducerConfig(options, 0, {kUsualBytes, kUsualBytes}).MakeProducer().status();
}

TriedTransaction KafkaProbes::TryTransaction(const DaemonOptions& options, const std::string& id,
                                             int64_t offset) {
  ClientConfig config = BaseConfig(options, {{"transaction.timeout.ms", "30000"}});
  config.Set("transactional.id", id);
  ClientErrors errors;  // else they are logged
  errors.Watch(config);
  const auto producer = config.MakeProducer();
  if (!producer.ok()) return {.begun = producer.status()};
  rd_kafka_t* const client = producer->get();
  TriedTransaction tried = {.timeout_ms = PropertyOf(client, "transaction.timeout.ms")};
  const ErrorPtr unusable(rd_kafka_init_transactions(client, kProbeTimeoutMs));
  const ErrorPtr not_begun(unusable == nullptr ? rd_kafka_begin_transaction(client) : nullptr);
  tried.begun = TransactionStatus(client, unusable != nullptr ? unusable.get() : not_begun.get());
  if (!tried.begun.ok()) return tried;
  const PartitionListPtr offsets(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(offsets.get(), options.input.c_str(), 0)->offset = offset;
  const GroupMetadataPtr group(rd_kafka_consumer_group_metadata_new(options.process.group.c_str()));
  const ErrorPtr refused(
      rd_kafka_send_offsets_to_transaction(client, offsets.get(), group.get(), kProbeTimeoutMs));
  const ErrorPtr aborted(rd_kafka_abort_transaction(client, kProbeTimeoutMs));
  tried.offsets = TransactionStatus(client, refused.get());
  return tried;
}

absl::Status KafkaProbes::TryWriting(const DaemonOptions& options, const std::string& topic,
                                     int64_t value_bytes) {
  rd_kafka_resp_err_t result = RD_KAFKA_RESP_ERR__TIMED_OUT;
  ClientConfig config = BaseConfig(options);
  config.Set("message.max.bytes", "1000000000")
      .Set("compression.type", "none")
      .Set("enable.idempotence", "false")
      .Set("message.timeout.ms", absl::StrCat(kProbeTimeoutMs))
      .Set("linger.ms", "0");
  rd_kafka_conf_set_opaque(config.raw(), &result);
  rd_kafka_conf_set_dr_msg_cb(config.raw(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    *static_cast<rd_kafka_resp_err_t*>(opaque) = message->err;
  });
  const auto producer = config.MakeProducer();
  if (!producer.ok()) return producer.status();
  std::string value(static_cast<size_t>(value_bytes), '\0');
  const rd_kafka_resp_err_t queued = rd_kafka_producev(
      producer->get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(0),
      RD_KAFKA_V_VALUE(value.data(), value.size()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  if (queued == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_flush(producer->get(), kProbeTimeoutMs + 1000);
  } else {
    result = queued;
  }
  if (result == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) return absl::OutOfRangeError(rd_kafka_err2str(result));
  return absl::Status(ErrorStatus(result, "").code(), rd_kafka_err2str(result));
}

}  // namespace lethe::kafka
