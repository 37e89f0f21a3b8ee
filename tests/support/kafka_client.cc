#include "tests/support/kafka_client.h"

#include <algorithm>
#include <array>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kClientTimeout = absl::Minutes(1);
constexpr int kClientTimeoutMs = 60'000;
// For a topic that some broker has not heard of yet, or whose partitions choose leaders.
constexpr absl::Duration kKnownTimeout = absl::Seconds(15);

using PartitionList =
    std::unique_ptr<rd_kafka_topic_partition_list_t, decltype(&rd_kafka_topic_partition_list_destroy)>;
using Queue = std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)>;
using Event = std::unique_ptr<rd_kafka_event_t, decltype(&rd_kafka_event_destroy)>;
using Message = std::unique_ptr<rd_kafka_message_t, decltype(&rd_kafka_message_destroy)>;

absl::Status KafkaError(absl::string_view what, rd_kafka_resp_err_t error, absl::string_view detail = "") {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", rd_kafka_err2name(error), ": ",
                                        detail.empty() ? rd_kafka_err2str(error) : detail);
  return error == RD_KAFKA_RESP_ERR__TIMED_OUT ? absl::DeadlineExceededError(text) : absl::UnknownError(text);
}

// Takes the error.
absl::Status KafkaError(absl::string_view what, rd_kafka_error_t* error) {
  if (error == nullptr) return absl::OkStatus();
  const absl::Status status = KafkaError(what, rd_kafka_error_code(error), rd_kafka_error_string(error));
  rd_kafka_error_destroy(error);
  return status;
}

// The first failed delivery of a batch; the batch's messages carry its address.
struct Delivery {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
};

void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
  auto* delivery = static_cast<Delivery*>(message->_private);
  if (message->err != 0 && delivery->error == RD_KAFKA_RESP_ERR_NO_ERROR) delivery->error = message->err;
}

absl::StatusOr<Handle> NewHandle(rd_kafka_type_t type, const KafkaClient::Configs& properties) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> error;
  for (const auto& [name, value] : properties) {
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error.data(), error.size()) !=
        RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return absl::InvalidArgumentError(error.data());
    }
  }
  // Tests stop and kill brokers; the client's complaints about that are no news.
  rd_kafka_conf_set_log_cb(conf, nullptr);
  if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_dr_msg_cb(conf, OnDelivery);
  rd_kafka_t* handle = rd_kafka_new(type, conf, error.data(), error.size());
  if (handle == nullptr) {
    rd_kafka_conf_destroy(conf);
    return absl::InternalError(error.data());
  }
  return Handle(handle);
}

KafkaClient::Configs Basics(const std::string& bootstrap) {
  return {{"bootstrap.servers", bootstrap},
          {"reconnect.backoff.ms", "20"},
          {"reconnect.backoff.max.ms", "200"},
          {"topic.metadata.refresh.interval.ms", "1000"}};
}

absl::StatusOr<Handle> NewProducer(const std::string& bootstrap, const std::string& transactional_id,
                                   const KafkaClient::Configs& more = {}) {
  KafkaClient::Configs properties = Basics(bootstrap);
  // As Java's clients place keys.
  properties.emplace_back("partitioner", "murmur2_random");
  properties.emplace_back("enable.idempotence", "true");
  properties.emplace_back("message.max.bytes", "100000000");  // what is too large, the topic says
  if (!transactional_id.empty()) properties.emplace_back("transactional.id", transactional_id);
  properties.insert(properties.end(), more.begin(), more.end());
  return NewHandle(RD_KAFKA_PRODUCER, properties);
}

absl::Status ProduceAll(rd_kafka_t* producer, const std::string& topic, absl::Span<const Record> records) {
  Delivery delivery;
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (const Record& record : records) {
    while ((error = Enqueue(producer, topic, record, &delivery)) == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      rd_kafka_poll(producer, 100);
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) break;
    rd_kafka_poll(producer, 0);
  }
  // Also after an error: the messages under way point to `delivery`.
  rd_kafka_resp_err_t flushed = rd_kafka_flush(producer, kClientTimeoutMs);
  if (flushed != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer, kClientTimeoutMs);
  }
  const std::string what = absl::StrCat("produce to ", topic);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(what, error);
  if (flushed != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError(what, flushed);
  return KafkaError(what, delivery.error);
}

Record FromMessage(const rd_kafka_message_t& message) {
  Record record;
  if (message.key != nullptr) record.key.emplace(static_cast<const char*>(message.key), message.key_len);
  if (message.payload != nullptr)
    record.value.emplace(static_cast<const char*>(message.payload), message.len);
  record.partition = message.partition;
  record.offset = message.offset;
  record.timestamp_ms = rd_kafka_message_timestamp(&message, nullptr);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    record.headers.emplace_back(
        name, value == nullptr
                  ? std::nullopt
                  : std::optional<std::string>(std::in_place, static_cast<const char*>(value), size));
  }
  return record;
}

struct Bounds {
  int64_t begin;
  int64_t end;
};

absl::StatusOr<std::vector<Bounds>> QueryBounds(rd_kafka_t* consumer, const std::string& topic,
                                                int partitions) {
  std::vector<Bounds> bounds;
  for (int p = 0; p < partitions; ++p) {
    int64_t low = 0, high = 0;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    // The metadata may show a new partition before its leader knows that it is the leader.
    WaitUntil(
        [&] {
          error = rd_kafka_query_watermark_offsets(consumer, topic.c_str(), p, &low, &high, kClientTimeoutMs);
          if (error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) rd_kafka_poll(consumer, 10);
          return error != RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION &&
                 error != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION &&
                 error != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE &&
                 error != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        },
        kClientTimeout);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return KafkaError(absl::StrCat("end offset of ", topic, "-", p), error);
    }
    bounds.push_back({low, high});
  }
  return bounds;
}

}  // namespace

bool WaitUntil(const std::function<bool()>& condition, absl::Duration timeout) {
  // To ask a broker or a daemon costs both of them more than it costs to be told a little later.
  constexpr absl::Duration kShortest = absl::Milliseconds(5);
  constexpr absl::Duration kLongest = absl::Milliseconds(40);
  const absl::Time deadline = SteadyNow() + timeout;
  for (absl::Duration pause = kShortest; !condition(); pause = std::min(1.5 * pause, kLongest)) {
    if (SteadyNow() >= deadline) return false;
    absl::SleepFor(pause);
  }
  return true;
}

rd_kafka_resp_err_t Enqueue(rd_kafka_t* producer, const std::string& topic, const Record& record,
                            void* opaque) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr, value ? static_cast<ssize_t>(value->size()) : 0);
  }
  const auto data = [](const std::optional<std::string>& s) {
    return s ? const_cast<char*>(s->data()) : nullptr;
  };
  const auto size = [](const std::optional<std::string>& s) { return s ? s->size() : size_t{0}; };
  const rd_kafka_resp_err_t error = rd_kafka_producev(
      producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(record.partition),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(data(record.key), size(record.key)),
      RD_KAFKA_V_VALUE(data(record.value), size(record.value)), RD_KAFKA_V_TIMESTAMP(record.timestamp_ms),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
  // It owns the headers once it has accepted them.
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
  return error;
}

void HandleDeleter::operator()(rd_kafka_t* handle) const { rd_kafka_destroy(handle); }

struct KafkaClient::AdminCall {
  rd_kafka_t* handle;
  rd_kafka_AdminOptions_t* options;
  rd_kafka_queue_t* queue;
};

KafkaClient::KafkaClient(std::string bootstrap, Handle producer)
    : bootstrap_(std::move(bootstrap)), producer_(std::move(producer)) {}

KafkaClient::~KafkaClient() = default;

absl::StatusOr<std::unique_ptr<KafkaClient>> KafkaClient::Connect(const std::string& bootstrap) {
  absl::StatusOr<Handle> producer = NewProducer(bootstrap, "");
  if (!producer.ok()) return producer.status();
  return std::unique_ptr<KafkaClient>(new KafkaClient(bootstrap, std::move(*producer)));
}

absl::StatusOr<int> KafkaClient::BrokerCount(absl::Duration timeout) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(producer_.get(), 0, nullptr, &metadata,
                                                      static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError("metadata", error);
  const int count = metadata->broker_cnt;
  rd_kafka_metadata_destroy(metadata);
  return count;
}

absl::Status KafkaClient::Admin(rd_kafka_admin_op_t op, const std::function<void(const AdminCall&)>& start) {
  std::array<char, 512> text;
  const std::unique_ptr<rd_kafka_AdminOptions_t, decltype(&rd_kafka_AdminOptions_destroy)> options(
      rd_kafka_AdminOptions_new(producer_.get(), op), &rd_kafka_AdminOptions_destroy);
  rd_kafka_AdminOptions_set_request_timeout(options.get(), kClientTimeoutMs, text.data(), text.size());
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), kClientTimeoutMs, text.data(), text.size());
  const Queue queue(rd_kafka_queue_new(producer_.get()), &rd_kafka_queue_destroy);
  start({producer_.get(), options.get(), queue.get()});
  const Event event(rd_kafka_queue_poll(queue.get(), 2 * kClientTimeoutMs), &rd_kafka_event_destroy);
  if (event == nullptr) return absl::DeadlineExceededError("no answer to an admin request");
  if (const rd_kafka_resp_err_t error = rd_kafka_event_error(event.get()); error != 0) {
    return KafkaError("admin request", error, rd_kafka_event_error_string(event.get()));
  }
  if (const auto* records = rd_kafka_event_DeleteRecords_result(event.get()); records != nullptr) {
    return KafkaError("delete records", rd_kafka_DeleteRecords_result_offsets(records)->elems[0].err);
  }
  // The other three requests that are made here answer with one result per topic, of which there is one.
  size_t count = 0;
  const rd_kafka_topic_result_t** results = nullptr;
  if (const auto* created = rd_kafka_event_CreateTopics_result(event.get()); created != nullptr) {
    results = rd_kafka_CreateTopics_result_topics(created, &count);
  } else if (const auto* deleted = rd_kafka_event_DeleteTopics_result(event.get()); deleted != nullptr) {
    results = rd_kafka_DeleteTopics_result_topics(deleted, &count);
  } else if (const auto* extended = rd_kafka_event_CreatePartitions_result(event.get());
             extended != nullptr) {
    results = rd_kafka_CreatePartitions_result_topics(extended, &count);
  }
  if (count != 1) return absl::InternalError("an admin request was answered with something else");
  const char* detail = rd_kafka_topic_result_error_string(results[0]);
  return KafkaError(rd_kafka_topic_result_name(results[0]), rd_kafka_topic_result_error(results[0]),
                    detail == nullptr ? "" : detail);
}

absl::Status KafkaClient::CreateTopic(const std::string& topic, int partitions, const Configs& configs) {
  std::array<char, 512> text;
  rd_kafka_NewTopic_t* request =
      rd_kafka_NewTopic_new(topic.c_str(), partitions, /*replication_factor=*/-1, text.data(), text.size());
  if (request == nullptr) return absl::InvalidArgumentError(text.data());
  const std::unique_ptr<rd_kafka_NewTopic_t, decltype(&rd_kafka_NewTopic_destroy)> owned(
      request, &rd_kafka_NewTopic_destroy);
  for (const auto& [name, value] : configs) {
    rd_kafka_NewTopic_set_config(request, name.c_str(), value.c_str());
  }
  const absl::Status status = Admin(RD_KAFKA_ADMIN_OP_CREATETOPICS, [&](const AdminCall& call) {
    rd_kafka_CreateTopics(call.handle, &request, 1, call.options, call.queue);
  });
  if (!status.ok()) return status;
  if (!absl::StrContains(bootstrap_, ',')) return AwaitPartitions(producer_.get(), topic, partitions);
  // What one broker knows another may not know yet, and it may be the one that is asked next. A new handle
  // asks the broker that it was given.
  for (const absl::string_view server : absl::StrSplit(bootstrap_, ',')) {
    const absl::StatusOr<Handle> asking = NewProducer(std::string(server), "");
    if (!asking.ok()) return asking.status();
    if (absl::Status known = AwaitPartitions(asking->get(), topic, partitions); !known.ok()) return known;
  }
  return absl::OkStatus();
}

absl::Status KafkaClient::DeleteTopic(const std::string& topic) {
  rd_kafka_DeleteTopic_t* request = rd_kafka_DeleteTopic_new(topic.c_str());
  const std::unique_ptr<rd_kafka_DeleteTopic_t, decltype(&rd_kafka_DeleteTopic_destroy)> owned(
      request, &rd_kafka_DeleteTopic_destroy);
  const absl::Status status = Admin(RD_KAFKA_ADMIN_OP_DELETETOPICS, [&](const AdminCall& call) {
    rd_kafka_DeleteTopics(call.handle, &request, 1, call.options, call.queue);
  });
  if (!status.ok()) return status;
  if (absl::Status gone = AwaitPartitions(producer_.get(), topic, std::nullopt); !gone.ok()) return gone;
  committed_watermarks_.reset();
  uncommitted_watermarks_.reset();
  absl::StatusOr<Handle> producer = NewProducer(bootstrap_, "");
  if (producer.ok()) producer_ = std::move(*producer);
  return producer.status();
}

absl::Status KafkaClient::AddPartitions(const std::string& topic, int total) {
  std::array<char, 512> text;
  rd_kafka_NewPartitions_t* request = rd_kafka_NewPartitions_new(
      topic.c_str(), static_cast<size_t>(std::max(total, 0)), text.data(), text.size());
  if (request == nullptr) return absl::InvalidArgumentError(text.data());
  const std::unique_ptr<rd_kafka_NewPartitions_t, decltype(&rd_kafka_NewPartitions_destroy)> owned(
      request, &rd_kafka_NewPartitions_destroy);
  const absl::Status status = Admin(RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, [&](const AdminCall& call) {
    rd_kafka_CreatePartitions(call.handle, &request, 1, call.options, call.queue);
  });
  return status.ok() ? AwaitPartitions(producer_.get(), topic, total) : status;
}

absl::Status KafkaClient::DeleteRecords(const std::string& topic, int32_t partition, int64_t before) {
  const PartitionList list(rd_kafka_topic_partition_list_new(1), &rd_kafka_topic_partition_list_destroy);
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = before;
  rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(list.get());
  const std::unique_ptr<rd_kafka_DeleteRecords_t, decltype(&rd_kafka_DeleteRecords_destroy)> owned(
      request, &rd_kafka_DeleteRecords_destroy);
  return Admin(RD_KAFKA_ADMIN_OP_DELETERECORDS, [&](const AdminCall& call) {
    rd_kafka_DeleteRecords(call.handle, &request, 1, call.options, call.queue);
  });
}

absl::StatusOr<std::optional<int>> KafkaClient::PartitionCount(rd_kafka_t* asking, const std::string& topic) {
  // All topics are asked for: to ask for one by its name may create it.
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(asking, 1, nullptr, &metadata, kClientTimeoutMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError("metadata", error);
  std::optional<int> count;
  for (int t = 0; t < metadata->topic_cnt; ++t) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[t];
    if (topic != found.topic || found.err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    const bool led = std::all_of(found.partitions, found.partitions + found.partition_cnt,
                                 [](const rd_kafka_metadata_partition_t& p) { return p.leader >= 0; });
    if (led) count = found.partition_cnt;
  }
  rd_kafka_metadata_destroy(metadata);
  return count;
}

absl::StatusOr<int> KafkaClient::KnownPartitions(const std::string& topic) {
  absl::StatusOr<std::optional<int>> found;
  WaitUntil([&] { return (found = PartitionCount(producer_.get(), topic)).ok() && found->has_value(); },
            kKnownTimeout);
  if (!found.ok()) return found.status();
  if (!found->has_value()) return absl::NotFoundError(absl::StrCat("no topic ", topic));
  return **found;
}

absl::StatusOr<bool> KafkaClient::Exists(const std::string& topic) {
  const auto found = PartitionCount(producer_.get(), topic);
  if (!found.ok()) return found.status();
  return found->has_value();
}

absl::StatusOr<std::vector<int32_t>> KafkaClient::Leaders(const std::string& topic) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(producer_.get(), 1, nullptr, &metadata, kClientTimeoutMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError("metadata", error);
  std::vector<int32_t> leaders;
  for (int t = 0; t < metadata->topic_cnt; ++t) {
    const rd_kafka_metadata_topic_t& found = metadata->topics[t];
    if (topic != found.topic) continue;
    leaders.assign(static_cast<size_t>(found.partition_cnt), -1);
    for (int p = 0; p < found.partition_cnt; ++p) {
      leaders[static_cast<size_t>(found.partitions[p].id)] = found.partitions[p].leader;
    }
  }
  rd_kafka_metadata_destroy(metadata);
  return leaders;
}

absl::Status KafkaClient::AwaitPartitions(rd_kafka_t* asking, const std::string& topic,
                                          std::optional<int> count) {
  absl::StatusOr<std::optional<int>> found;
  const bool shown = WaitUntil(
      [&] {
        found = PartitionCount(asking, topic);
        return !found.ok() || *found == count;
      },
      kClientTimeout);
  if (!found.ok()) return found.status();
  if (shown) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the metadata of ", topic, " does not show ",
                                                  count ? absl::StrCat(*count, " partitions") : "its end"));
}

absl::Status KafkaClient::Produce(const std::string& topic, absl::Span<const Record> records) {
  return ProduceAll(producer_.get(), topic, records);
}

absl::StatusOr<Handle> KafkaClient::NewConsumer(const std::string& group, Isolation isolation) const {
  Configs properties = Basics(bootstrap_);
  properties.emplace_back("group.id", group);
  properties.emplace_back("isolation.level",
                          isolation == Isolation::kReadCommitted ? "read_committed" : "read_uncommitted");
  properties.emplace_back("enable.auto.commit", "false");
  properties.emplace_back("enable.partition.eof", "true");
  properties.emplace_back("auto.offset.reset", "earliest");
  properties.emplace_back("fetch.wait.max.ms", "50");
  absl::StatusOr<Handle> consumer = NewHandle(RD_KAFKA_CONSUMER, properties);
  if (consumer.ok()) rd_kafka_poll_set_consumer(consumer->get());
  return consumer;
}

absl::StatusOr<std::vector<int64_t>> KafkaClient::EndOffsets(const std::string& topic, Isolation isolation) {
  const absl::StatusOr<int> partitions = KnownPartitions(topic);
  if (!partitions.ok()) return partitions.status();
  const absl::StatusOr<rd_kafka_t*> consumer = WatermarkConsumer(isolation);
  if (!consumer.ok()) return consumer.status();
  const auto bounds = QueryBounds(*consumer, topic, *partitions);
  if (!bounds.ok()) return bounds.status();
  std::vector<int64_t> ends;
  for (const Bounds& each : *bounds) ends.push_back(each.end);
  return ends;
}

absl::StatusOr<rd_kafka_t*> KafkaClient::WatermarkConsumer(Isolation isolation) {
  Handle& kept = isolation == Isolation::kReadCommitted ? committed_watermarks_ : uncommitted_watermarks_;
  if (kept == nullptr) {
    absl::StatusOr<Handle> consumer = NewConsumer("end offsets", isolation);
    if (!consumer.ok()) return consumer.status();
    kept = std::move(*consumer);
  }
  return kept.get();
}

absl::StatusOr<std::vector<Record>> KafkaClient::ReadAll(const std::string& topic, Isolation isolation) {
  const absl::StatusOr<int> known = KnownPartitions(topic);
  if (!known.ok()) return known.status();
  const int partitions = *known;
  const absl::StatusOr<rd_kafka_t*> asking = WatermarkConsumer(isolation);
  if (!asking.ok()) return asking.status();
  const auto bounds = QueryBounds(*asking, topic, partitions);
  if (!bounds.ok()) return bounds.status();
  const absl::StatusOr<Handle> consumer = NewConsumer("read all", isolation);
  if (!consumer.ok()) return consumer.status();

  const PartitionList assignment(rd_kafka_topic_partition_list_new(partitions),
                                 &rd_kafka_topic_partition_list_destroy);
  for (int p = 0; p < partitions; ++p) {
    // A new consumer does not know the leaders yet, and looks where a log begins half a second later.
    rd_kafka_topic_partition_list_add(assignment.get(), topic.c_str(), p)->offset =
        (*bounds)[static_cast<size_t>(p)].begin;
  }
  if (const rd_kafka_resp_err_t error = rd_kafka_assign(consumer->get(), assignment.get()); error != 0) {
    return KafkaError(absl::StrCat("assign ", topic), error);
  }
  // The end of a partition may be a transaction's marker, which is not shown: then it is the consumer's
  // report of the end that says that everything before it has been read.
  std::vector<bool> done(bounds->size(), false);
  std::vector<Record> records;
  const absl::Time deadline = SteadyNow() + kClientTimeout;
  while (std::find(done.begin(), done.end(), false) != done.end()) {
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("read ", records.size(), " records of ", topic, " and did not come to its end"));
    }
    const Message message(rd_kafka_consumer_poll(consumer->get(), 100), &rd_kafka_message_destroy);
    if (message == nullptr) continue;
    const bool at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !at_end) {
      return KafkaError(absl::StrCat("read ", topic), message->err, rd_kafka_message_errstr(message.get()));
    }
    const auto partition = static_cast<size_t>(message->partition);
    const int64_t end = (*bounds)[partition].end;
    if (!at_end && message->offset < end) records.push_back(FromMessage(*message));
    if (message->offset + (at_end ? 0 : 1) >= end) done[partition] = true;
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.partition < b.partition; });
  return records;
}

absl::StatusOr<std::vector<Record>> KafkaClient::ReadSettled(const std::string& topic) {
  absl::Status failed;
  const bool settled = WaitUntil(
      [&] {
        const auto stable = EndOffsets(topic, Isolation::kReadCommitted);
        const auto end = EndOffsets(topic, Isolation::kReadUncommitted);
        failed = stable.ok() ? end.status() : stable.status();
        return !failed.ok() || *stable == *end;
      },
      kClientTimeout);
  if (!failed.ok()) return failed;
  if (!settled) return absl::DeadlineExceededError(absl::StrCat("a transaction stays open in ", topic));
  return ReadAll(topic, Isolation::kReadCommitted);
}

absl::StatusOr<std::vector<std::string>> KafkaClient::Groups() {
  const struct rd_kafka_group_list* list = nullptr;
  if (const rd_kafka_resp_err_t error =
          rd_kafka_list_groups(producer_.get(), nullptr, &list, kClientTimeoutMs);
      error != 0) {
    return KafkaError("listing groups", error);
  }
  std::vector<std::string> names;
  for (int i = 0; i < list->group_cnt; ++i) names.emplace_back(list->groups[i].group);
  rd_kafka_group_list_destroy(list);
  return names;
}

absl::StatusOr<std::vector<CommittedOffset>> KafkaClient::Committed(const std::string& group,
                                                                    const std::string& topic) {
  const absl::StatusOr<int> partitions = KnownPartitions(topic);
  if (!partitions.ok()) return partitions.status();
  const absl::StatusOr<Handle> consumer = NewConsumer(group, Isolation::kReadCommitted);
  if (!consumer.ok()) return consumer.status();
  const PartitionList list(rd_kafka_topic_partition_list_new(*partitions),
                           &rd_kafka_topic_partition_list_destroy);
  for (int p = 0; p < *partitions; ++p) rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), p);
  // Right after its start a broker may not be the group's coordinator yet, which librdkafka 2.8 says.
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  WaitUntil(
      [&] {
        error = rd_kafka_committed(consumer->get(), list.get(), kClientTimeoutMs);
        return error != RD_KAFKA_RESP_ERR_NOT_COORDINATOR;
      },
      kClientTimeout);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return KafkaError(absl::StrCat("committed offsets of ", group), error);
  }
  std::vector<CommittedOffset> offsets;
  for (int p = 0; p < *partitions; ++p) {
    const rd_kafka_topic_partition_t& found = list->elems[p];
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return KafkaError(absl::StrCat("committed offset of ", group, " in ", topic, "-", p), found.err);
    }
    offsets.push_back({found.offset < 0 ? -1 : found.offset,
                       std::string(static_cast<const char*>(found.metadata), found.metadata_size)});
  }
  return offsets;
}

TransactionalProducer::TransactionalProducer(Handle producer) : producer_(std::move(producer)) {}

absl::StatusOr<std::unique_ptr<TransactionalProducer>> TransactionalProducer::Start(
    const std::string& bootstrap, const std::string& transactional_id,
    const KafkaClient::Configs& properties) {
  absl::StatusOr<Handle> producer = NewProducer(bootstrap, transactional_id, properties);
  if (!producer.ok()) return producer.status();
  const absl::Status status =
      KafkaError("init_transactions", rd_kafka_init_transactions(producer->get(), kClientTimeoutMs));
  if (!status.ok()) return status;
  return std::unique_ptr<TransactionalProducer>(new TransactionalProducer(std::move(*producer)));
}

absl::Status TransactionalProducer::Begin() {
  return KafkaError("begin_transaction", rd_kafka_begin_transaction(producer_.get()));
}

absl::Status TransactionalProducer::Produce(const std::string& topic, absl::Span<const Record> records) {
  return ProduceAll(producer_.get(), topic, records);
}

absl::Status TransactionalProducer::SendOffsets(const std::string& group, const std::string& topic,
                                                absl::Span<const CommittedOffset> offsets) {
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())),
                           &rd_kafka_topic_partition_list_destroy);
  for (size_t p = 0; p < offsets.size(); ++p) {
    rd_kafka_topic_partition_t* entry =
        rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<int32_t>(p));
    entry->offset = offsets[p].offset;
    if (offsets[p].metadata.empty()) continue;
    // The list frees it.
    entry->metadata = rd_kafka_mem_malloc(producer_.get(), offsets[p].metadata.size());
    entry->metadata_size = offsets[p].metadata.copy(static_cast<char*>(entry->metadata), std::string::npos);
  }
  const std::unique_ptr<rd_kafka_consumer_group_metadata_t,
                        decltype(&rd_kafka_consumer_group_metadata_destroy)>
      metadata(rd_kafka_consumer_group_metadata_new(group.c_str()),
               &rd_kafka_consumer_group_metadata_destroy);
  return KafkaError(
      "send_offsets_to_transaction",
      rd_kafka_send_offsets_to_transaction(producer_.get(), list.get(), metadata.get(), kClientTimeoutMs));
}

absl::Status TransactionalProducer::Commit() {
  return KafkaError("commit_transaction", rd_kafka_commit_transaction(producer_.get(), kClientTimeoutMs));
}

absl::Status TransactionalProducer::Abort() {
  return KafkaError("abort_transaction", rd_kafka_abort_transaction(producer_.get(), kClientTimeoutMs));
}

}  // namespace lethe::test
