#include "src/cli/demo/demo_traffic.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/client/message_view.h"

namespace lethe {
namespace {

using kafka::ClientConfig;
using kafka::ErrorStatus;
using kafka::MessagePtr;
using kafka::MessageView;
using kafka::PartitionListPtr;

constexpr int kRequestTimeoutMs = 10000;

}  // namespace

absl::StatusOr<DemoSender> DemoSender::Connect(const std::string& brokers, const std::string& topic) {
  auto producer = ClientConfig()
                      .Set("bootstrap.servers", brokers)
                      .Set("enable.idempotence", "true")
                      .Set("linger.ms", "5")
                      .Set("partitioner", "murmur2_random")
                      .MakeProducer();
  if (!producer.ok()) return producer.status();
  DemoSender sender;
  sender.producer_ = *std::move(producer);
  sender.topic_.reset(rd_kafka_topic_new(sender.producer_.get(), topic.c_str(), nullptr));
  return sender;
}

absl::Status DemoSender::Send(const DemoEvent& event, int64_t time_ms) {
  for (;;) {
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_RKT(topic_.get()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(event.id.data(), event.id.size()), RD_KAFKA_V_TIMESTAMP(time_ms),
        RD_KAFKA_V_VALUE(const_cast<char*>(event.value.data()), event.value.size()), RD_KAFKA_V_END);
    rd_kafka_poll(producer_.get(), code == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 10 : 0);
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) return ErrorStatus(code, "sending an event");
  }
}

absl::Status DemoSender::Flush() {
  return ErrorStatus(rd_kafka_flush(producer_.get(), 6 * kRequestTimeoutMs), "sending events");
}

absl::StatusOr<DemoReader> DemoReader::Connect(const std::string& brokers, const DemoTopics& topics) {
  DemoReader reader;
  reader.topics_ = topics;
  auto consumer = ClientConfig()
                      .Set("bootstrap.servers", brokers)
                      .Set("group.id", topics.group + "-reader")
                      .Set("enable.auto.commit", "false")
                      .Set("isolation.level", "read_committed")
                      .Set("enable.partition.eof", "true")
                      .MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  reader.consumer_ = *std::move(consumer);
  rd_kafka_poll_set_consumer(reader.consumer_.get());
  auto group = ClientConfig().Set("bootstrap.servers", brokers).Set("group.id", topics.group).MakeConsumer();
  if (!group.ok()) return group.status();
  reader.group_ = *std::move(group);
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(2 * topics.partitions));
  for (const std::string& topic : {topics.output, topics.counters}) {
    if (topic.empty()) continue;
    for (int32_t partition = 0; partition < topics.partitions; ++partition) {
      rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = 0;
      reader.positions_[{topic, partition}] = 0;
    }
  }
  if (absl::Status assigned =
          ErrorStatus(rd_kafka_assign(reader.consumer_.get(), list.get()), "reading the output");
      !assigned.ok()) {
    return assigned;
  }
  return reader;
}

absl::Status DemoReader::Poll() {
  int timeout_ms = 20;
  for (int i = 0; i < 2000; ++i) {
    const MessagePtr message(rd_kafka_consumer_poll(consumer_.get(), timeout_ms));
    if (message == nullptr) return absl::OkStatus();
    timeout_ms = 0;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      positions_[{rd_kafka_topic_name(message->rkt), message->partition}] = message->offset;
      continue;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (kafka::IsTransient(message->err)) continue;
      return ErrorStatus(message->err, "reading the output");
    }
    const std::string topic = rd_kafka_topic_name(message->rkt);
    positions_[{topic, message->partition}] = message->offset + 1;
    const MessageView view(*message);
    const InputRecord record = view.record();
    if (topic == topics_.output) {
      ++records_;
      ++copies_[record.key.value_or("")];  // the sender keys each event by its id
      continue;
    }
    int64_t delta = 0;
    if (!absl::SimpleAtoi(record.value.value_or(""), &delta)) {
      return absl::DataLossError(absl::StrCat(topic, ": \"", record.value.value_or(""), "\" is not a delta"));
    }
    counters_[std::string(record.key.value_or(""))] += delta;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DemoReader::Behind() {
  int64_t behind = 0;
  for (const auto& [where, position] : positions_) {
    const auto bounds = kafka::BoundsOf(group_.get(), where.first, where.second, kRequestTimeoutMs);
    if (!bounds.ok()) return bounds.status();
    behind += std::max<int64_t>(bounds->end - position, 0);
  }
  return behind;
}

absl::StatusOr<int64_t> DemoReader::CommittedOffsets() {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(topics_.partitions));
  rd_kafka_topic_partition_list_add_range(list.get(), topics_.input.c_str(), 0, topics_.partitions - 1);
  const rd_kafka_resp_err_t code = rd_kafka_committed(group_.get(), list.get(), kRequestTimeoutMs);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR && !kafka::IsTransient(code)) {
    return ErrorStatus(code, "asking for the group's offsets");
  }
  int64_t sum = 0;
  for (int i = 0; i < list->cnt; ++i) sum += std::max<int64_t>(list->elems[i].offset, 0);
  return sum;
}

}  // namespace lethe
