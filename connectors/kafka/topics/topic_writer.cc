#include "connectors/kafka/topics/topic_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/message_view.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

// One writer at a time for each topic. The source is not in the name: two that copy the same records from two
// places would double them.
constexpr absl::string_view kGroup = "lethe-reconcile";
constexpr int kCallTimeoutMs = 500;
constexpr absl::Duration kWritePatience = absl::Minutes(2);
// An open transaction hides from readers what comes behind it, for ten minutes.
constexpr absl::Duration kAbortPatience = absl::Seconds(30);
constexpr absl::Duration kWriteAgainAfter = absl::Milliseconds(20);

// Retries while the error asks for it. Null is success.
ErrorPtr Retry(const std::function<bool()>& go_on, const std::function<rd_kafka_error_t*()>& call) {
  const absl::Time deadline = SteadyNow() + kWritePatience;
  for (;;) {
    ErrorPtr error(call());
    if (error == nullptr || !rd_kafka_error_is_retriable(error.get()) || SteadyNow() > deadline) return error;
    if (!go_on()) return error;
    absl::SleepFor(kWriteAgainAfter);
  }
}

HeadersPtr HeadersOf(const SurveyRecord& record, absl::string_view from) {
  HeadersPtr headers;
  for (const auto& [name, value] : record.headers) AddHeader(headers, name, value);
  AddHeader(headers, kCopiedFrom, from);
  return headers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TopicWriter>> TopicWriter::Open(const WriteOptions& options, rd_kafka_t* asks,
                                                               const std::function<bool()>& go_on) {
  const auto topic = DescribeTopic(asks, options.topic);
  if (!topic.ok()) return topic.status();
  const auto type = topic->config.find("message.timestamp.type");
  if (type != topic->config.end() && type->second == "LogAppendTime") {
    return absl::FailedPreconditionError(absl::StrCat(
        "topic ", options.topic, " at ", options.brokers,
        " has message.timestamp.type=LogAppendTime: copied records would get the time of the copy, and be "
        "missing in their window again. Set it to CreateTime to copy into the topic"));
  }
  std::unique_ptr<TopicWriter> writer(new TopicWriter(options));
  DaemonOptions client;
  client.process.brokers = options.brokers;
  client.process.instance = "reconcile";
  client.process.properties = options.properties;
  ClientConfig config = BaseConfig(client, {
                                               {"transaction.timeout.ms", "600000"},
                                               {"linger.ms", "5"},
                                               {"compression.type", "lz4"},
                                               // Where Kafka's own clients would send them.
                                               {"partitioner", "murmur2_random"},
                                           });
  config.Set("enable.idempotence", "true")
      .Set("acks", "all")
      .Set("delivery.report.only.error", "true")
      // The broker decides whether a record is too large; none may be refused because of others in its batch.
      .Set("message.max.bytes", "1000000000")
      .Set("batch.size", absl::StrCat(std::min<int64_t>(1'000'000, topic->max_batch_bytes())))
      .Set("transactional.id", absl::StrCat(kGroup, "/", options.topic));
  rd_kafka_conf_set_opaque(config.raw(), writer.get());
  rd_kafka_conf_set_dr_msg_cb(config.raw(), OnDelivery);
  absl::StatusOr<ClientPtr> producer = config.MakeProducer();
  if (!producer.ok()) return producer.status();
  writer->producer_ = *std::move(producer);
  writer->topic_.reset(rd_kafka_topic_new(writer->producer_.get(), options.topic.c_str(), nullptr));
  const ErrorPtr error =
      Retry(go_on, [&] { return rd_kafka_init_transactions(writer->producer_.get(), kCallTimeoutMs); });
  if (error == nullptr) return writer;
  return StartError(writer->producer_.get(), error.get(),
                    absl::StrCat("starting to write to ", options.topic), std::string(kGroup));
}

TopicWriter::~TopicWriter() {
  if (!is_open_) return;
  const absl::Time deadline = SteadyNow() + kAbortPatience;
  const ErrorPtr error = Retry([&] { return SteadyNow() < deadline; },
                               [&] { return rd_kafka_abort_transaction(producer_.get(), kCallTimeoutMs); });
}

void TopicWriter::OnDelivery(rd_kafka_t* /*producer*/, const rd_kafka_message_t* message, void* opaque) {
  auto* self = static_cast<TopicWriter*>(opaque);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR || !self->refused_.ok()) return;
  if (IsFence(message->err)) {
    self->refused_ = self->Fenced();
    return;
  }
  const absl::string_view from = MessageView(*message).Last(kCopiedFrom).value_or("a record");
  self->refused_ = ErrorStatus(
      message->err, absl::StrCat("copying ", from, " to ", self->options_.topic, "-", message->partition));
}

absl::Status TopicWriter::Fenced() const {
  return absl::AbortedError(absl::StrCat("another lethe reconcile --copy writes to ", options_.topic, " at ",
                                         options_.brokers,
                                         " and continues; this one has copied nothing there"));
}

absl::Status TopicWriter::Lost(const rd_kafka_error_t* error, absl::string_view doing) const {
  if (!refused_.ok()) return refused_;
  const rd_kafka_resp_err_t code = CauseOf(producer_.get(), error);
  if (IsFence(code)) return Fenced();
  const absl::Status status = ErrorStatus(code, absl::StrCat(doing, " to ", options_.topic));
  return absl::Status(status.code(), absl::StrCat(status.message(), ", ", rd_kafka_error_string(error)));
}

absl::Status TopicWriter::Write(const SurveyRecord& record, absl::string_view from,
                                const std::function<bool()>& go_on) {
  if (!refused_.ok()) return refused_;
  if (!is_open_) {
    const ErrorPtr error(rd_kafka_begin_transaction(producer_.get()));
    if (error != nullptr) return Lost(error.get(), "beginning to write");
    is_open_ = true;
  }
  HeadersPtr headers = HeadersOf(record, from);
  const auto& [key, value, unused] = record.record;
  // librdkafka's macros cast only the first word of what they are given.
  void* const key_bytes = DataOf(key);
  void* const value_bytes = DataOf(value);
  const size_t key_size = key.value_or("").size();
  const size_t value_size = value.value_or("").size();
  const int32_t partition = record.partition < 0 ? RD_KAFKA_PARTITION_UA : record.partition;
  for (;;) {
    const rd_kafka_resp_err_t code =
        rd_kafka_producev(producer_.get(), RD_KAFKA_V_RKT(topic_.get()), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key_bytes, key_size),
                          RD_KAFKA_V_VALUE(value_bytes, value_size), RD_KAFKA_V_TIMESTAMP(record.time_ms),
                          RD_KAFKA_V_HEADERS(headers.get()), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      headers.release();  // the client owns them now
      return absl::OkStatus();
    }
    const bool is_full = code == RD_KAFKA_RESP_ERR__QUEUE_FULL && rd_kafka_outq_len(producer_.get()) > 0;
    if (!is_full) return ErrorStatus(code, absl::StrCat("copying ", from, " to ", options_.topic));
    rd_kafka_poll(producer_.get(), 100);  // returns when something was delivered
    if (!refused_.ok()) return refused_;
    if (!go_on()) return absl::CancelledError("interrupted");
  }
}

absl::Status TopicWriter::Commit(const std::function<bool()>& go_on) {
  if (!is_open_) return absl::OkStatus();
  // A commit would also wait for records that are stuck behind a refused one.
  const absl::Time deadline = SteadyNow() + kWritePatience;
  while (rd_kafka_flush(producer_.get(), 100) != RD_KAFKA_RESP_ERR_NO_ERROR && refused_.ok()) {
    if (!go_on()) return absl::CancelledError("interrupted");
    if (SteadyNow() > deadline) {
      return absl::UnavailableError(absl::StrCat(
          "the brokers at ", options_.brokers, " do not acknowledge the records: nothing was copied there"));
    }
  }
  if (!refused_.ok()) return refused_;
  // From here on the broker may have committed, so keep asking.
  const ErrorPtr error = Retry(
      [&] {
        go_on();
        return true;
      },
      [&] { return rd_kafka_commit_transaction(producer_.get(), kCallTimeoutMs); });
  if (error == nullptr || !rd_kafka_error_txn_requires_abort(error.get())) is_open_ = false;
  if (error == nullptr) return absl::OkStatus();
  if (rd_kafka_error_is_retriable(error.get())) {
    return absl::UnavailableError(
        absl::StrCat("no answer to the commit from ", options_.brokers,
                     ": run it again; it copies the records that are still missing"));
  }
  return Lost(error.get(), "committing the copies");
}

}  // namespace lethe::kafka
