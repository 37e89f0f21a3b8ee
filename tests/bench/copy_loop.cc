// The least that a stage between two topics can do: consume, produce, commit, in transactions, nothing else.
// What the pipeline benchmark compares lethe with.
//
//   copy_loop BROKERS INPUT OUTPUT GROUP
#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

namespace {

using Clock = std::chrono::steady_clock;

void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "copy_loop: %s failed\n", what);
  std::exit(1);
}

rd_kafka_t* NewClient(rd_kafka_type_t type, const std::map<const char*, const char*>& properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  char reason[256];
  for (const auto& [name, value] : properties) {
    Require(rd_kafka_conf_set(conf, name, value, reason, sizeof reason) == RD_KAFKA_CONF_OK, name);
  }
  rd_kafka_t* client = rd_kafka_new(type, conf, reason, sizeof reason);
  Require(client != nullptr, "making a client");
  return client;
}

void Check(rd_kafka_error_t* error, const char* what) {
  if (error != nullptr) std::fprintf(stderr, "copy_loop: %s\n", rd_kafka_error_string(error));
  Require(error == nullptr, what);
}

}  // namespace

int main(int argc, char** argv) {
  Require(argc == 5, "usage: copy_loop BROKERS INPUT OUTPUT GROUP");
  rd_kafka_t* producer = NewClient(RD_KAFKA_PRODUCER, {{"bootstrap.servers", argv[1]},
                                                       {"transactional.id", argv[4]},
                                                       {"delivery.report.only.error", "true"},
                                                       {"linger.ms", "5"},
                                                       {"compression.type", "lz4"},
                                                       {"queue.buffering.max.messages", "1000000"}});
  Check(rd_kafka_init_transactions(producer, 60000), "init_transactions");
  // It fetches as much ahead as it likes: at the limit it would wait for librdkafka to look again.
  rd_kafka_t* consumer = NewClient(RD_KAFKA_CONSUMER, {{"bootstrap.servers", argv[1]},
                                                       {"queued.min.messages", "10000000"},
                                                       {"queued.max.messages.kbytes", "1048576"},
                                                       {"group.id", argv[4]},
                                                       {"isolation.level", "read_committed"},
                                                       {"enable.auto.commit", "false"},
                                                       {"auto.offset.reset", "earliest"},
                                                       {"enable.partition.eof", "true"}});
  rd_kafka_poll_set_consumer(consumer);
  rd_kafka_topic_partition_list_t* topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, argv[2], RD_KAFKA_PARTITION_UA);
  Require(rd_kafka_subscribe(consumer, topics) == RD_KAFKA_RESP_ERR_NO_ERROR, "subscribing");
  rd_kafka_topic_t* output = rd_kafka_topic_new(producer, argv[3], nullptr);

  std::map<int32_t, int64_t> next;
  std::map<int32_t, bool> at_end;
  bool open = false;
  int64_t copied = 0;
  Clock::time_point deadline;
  for (;;) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(consumer, 10);
    if (message != nullptr && message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      at_end[message->partition] = true;
    } else if (message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (!open) {
        Check(rd_kafka_begin_transaction(producer), "begin_transaction");
        deadline = Clock::now() + std::chrono::milliseconds(100);
        open = true;
      }
      rd_kafka_timestamp_type_t type;
      while (rd_kafka_producev(producer, RD_KAFKA_V_RKT(output), RD_KAFKA_V_PARTITION(message->partition),
                               RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                               RD_KAFKA_V_KEY(message->key, message->key_len),
                               RD_KAFKA_V_VALUE(message->payload, message->len),
                               RD_KAFKA_V_TIMESTAMP(rd_kafka_message_timestamp(message, &type)),
                               RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
        rd_kafka_poll(producer, 10);
      }
      next[message->partition] = message->offset + 1;
      at_end[message->partition] = false;
      ++copied;
    }
    if (message != nullptr) rd_kafka_message_destroy(message);
    if (open && Clock::now() >= deadline) {
      rd_kafka_topic_partition_list_t* offsets =
          rd_kafka_topic_partition_list_new(static_cast<int>(next.size()));
      for (const auto& [partition, offset] : next) {
        rd_kafka_topic_partition_list_add(offsets, argv[2], partition)->offset = offset;
      }
      rd_kafka_consumer_group_metadata_t* group = rd_kafka_consumer_group_metadata(consumer);
      Check(rd_kafka_send_offsets_to_transaction(producer, offsets, group, 60000), "send_offsets");
      Check(rd_kafka_commit_transaction(producer, 60000), "commit_transaction");
      rd_kafka_consumer_group_metadata_destroy(group);
      rd_kafka_topic_partition_list_destroy(offsets);
      open = false;
    }
    int ended = 0;
    for (const auto& [partition, end] : at_end) ended += end ? 1 : 0;
    if (!open && copied > 0 && ended == static_cast<int>(next.size())) break;
  }
  rd_kafka_consumer_close(consumer);
  std::printf("%lld\n", static_cast<long long>(copied));
  rd_kafka_topic_destroy(output);
  rd_kafka_topic_partition_list_destroy(topics);
  rd_kafka_destroy(consumer);
  rd_kafka_destroy(producer);
  return 0;
}
