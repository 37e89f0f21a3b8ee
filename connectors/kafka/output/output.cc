#include "connectors/kafka/output/output.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe::kafka {
namespace {

// How long one call may block before the stop flag is looked at again.
constexpr int kCallTimeoutMs = 1000;
// How long a record may be refused without being noticed.
constexpr int kFlushTimeoutMs = 20;
// How long the last records of a transaction may take until that is worth a warning.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);
// The pause before a retry.
constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(20);
// After stop: how long the open transaction may still take.
constexpr absl::Duration kStopGrace = absl::Seconds(3);
// After stop: how long its records may still take; then it is aborted, which also takes a moment.
constexpr absl::Duration kStopFlushPatience = absl::Milliseconds(1500);

// For the topic, or its segments.
bool IsTooLarge(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

// The broker refuses the record itself, and would refuse it again.
bool IsRefusal(rd_kafka_resp_err_t code) {
  return IsTooLarge(code) || code == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP ||
         code == RD_KAFKA_RESP_ERR_INVALID_RECORD || code == RD_KAFKA_RESP_ERR_INVALID_MSG;
}

// Records of this topic fail, whatever they are.
bool IsOfTopic(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
         code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
         code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION || code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
}

// RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD, since librdkafka 2.4: the record is good, and was in the batch
// of one that is not.
constexpr int kBatchHasInvalidRecord = -138;

bool NamesCodec(const DaemonOptions& options) {
  return std::any_of(options.properties.begin(), options.properties.end(), [](const Property& property) {
    return property.first == "compression.type" || property.first == "compression.codec";
  });
}

// The broker's answers to a former member, or to one of an earlier generation.
bool IsGroupMovedOn(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION || code == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
         code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS || code == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
}

int64_t SizeOf(absl::Span<const HeaderView> headers) {
  int64_t bytes = 0;
  for (const HeaderView& header : headers) {
    bytes += static_cast<int64_t>(header.name.size() + header.value.value_or("").size());
  }
  return bytes;
}

// What the client gives back with a message: the number of the record in the transaction, and its flow.
constexpr int kFlowShift = 32;
static_assert(sizeof(uintptr_t) == sizeof(uint64_t));
void* TagOf(size_t number, int32_t flow) {
  return reinterpret_cast<void*>((static_cast<uintptr_t>(flow) << kFlowShift) | number);
}
size_t NumberIn(const rd_kafka_message_t& message) {
  return reinterpret_cast<uintptr_t>(message._private) & UINT32_MAX;
}
int32_t FlowIn(const rd_kafka_message_t& message) {
  return static_cast<int32_t>(reinterpret_cast<uintptr_t>(message._private) >> kFlowShift);
}

// The most bytes on their way to the brokers: enough to keep them busy, and few enough to commit within the
// transaction's time when they suddenly slow down.
constexpr int64_t kAheadBytes = int64_t{4} << 20;
constexpr int64_t kLookForRoomEvery = kAheadBytes / 16;
constexpr int kLookForRoomMs = 2;
// The compression: fast, until a record is too large for its topic.
constexpr absl::string_view kDenseCodec = "zstd";
// The size of a record on the wire without its key and value.
constexpr int64_t kRecordOverhead = 10;
// The broker writes the offsets of one request as one batch, which its topic takes up to 1 MiB by default.
// Thousands of partitions need more.
constexpr size_t kMostOffsetsBytes = size_t{256} << 10;
constexpr size_t kOffsetOverhead = 128;  // of one partition, beside names and metadata
// The client's queue, for records up to so many bytes.
constexpr int64_t kQueueBytes = int64_t{64} << 20;

// The client's batch.size: the user's or its default, and no more than the broker takes.
int64_t BatchSize(const DaemonOptions& options, int64_t max_batch_bytes) {
  int64_t size = 1000000;
  for (const auto& [name, value] : options.properties) {
    int64_t wanted = 0;
    if (name == "batch.size" && absl::SimpleAtoi(value, &wanted)) size = wanted;
  }
  return std::min(size, max_batch_bytes);
}

// Adds the time of a scope.
class Waiting {
 public:
  explicit Waiting(absl::Duration& sum) : sum_(sum) {}
  ~Waiting() { sum_ += SteadyNow() - begin_; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  absl::Duration& sum_;
  const absl::Time begin_ = SteadyNow();
};

std::string Describe(const rd_kafka_error_t* error) {
  return absl::StrCat(rd_kafka_error_string(error), " (", rd_kafka_error_name(error), ")");
}

// Partitions by murmur2 of the key, as Kafka Streams, ksqlDB and the Java client expect; librdkafka's default
// differs.
TopicPtr OpenKeyedTopic(rd_kafka_t* producer, const std::string& name) {
  rd_kafka_topic_conf_t* config = rd_kafka_default_topic_conf_dup(producer);
  char reason[256];
  rd_kafka_topic_conf_set(config, "partitioner", "murmur2", reason, sizeof reason);
  return TopicPtr(rd_kafka_topic_new(producer, name.c_str(), config));
}

}  // namespace

Output::Output(const DaemonOptions& options, const Flows& flows, WorkerState& state, const Consumer& consumer,
               std::function<absl::Status()> may_recreate)
    : options_(options),
      flows_(flows),
      state_(state),
      consumer_(consumer),
      may_recreate_(std::move(may_recreate)),
      transactional_(options.delivery == Delivery::kExactlyOnce),
      codec_(kQuickCodec) {}

void Output::OnDelivery(rd_kafka_t* /*producer*/, const rd_kafka_message_t* message, void* opaque) {
  auto* self = static_cast<Output*>(opaque);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  if (rd_kafka_message_status(message) == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED) self->unsure_ = true;
  // A refusal counts; records that are purged because of it do not.
  if (IsRefusal(message->err)) {
    const size_t number = NumberIn(*message);
    if (number < self->sent_.size()) {
      self->Refuse(self->sent_[number], message->err, rd_kafka_err2str(message->err));
    }
  } else if (static_cast<int>(message->err) == kBatchHasInvalidRecord) {
    self->report_.refusals_are_named = true;
  } else {
    const size_t number = NumberIn(*message);
    if (number < self->sent_.size()) {
      self->Blame(self->sent_[number], message->err, rd_kafka_topic_name(message->rkt));
    }
    if (self->report_.failure != Failure::kNone) return;
    self->report_.failure = Failure::kTransient;
    self->report_.last_error = rd_kafka_err2str(message->err);
  }
}

rd_kafka_resp_err_t Output::OnNew(rd_kafka_t* client, const rd_kafka_conf_t* /*config*/, void* self,
                                  char* /*reason*/, size_t /*size*/) {
  return rd_kafka_interceptor_add_on_acknowledgement(client, "lethe", OnAnswer, self);
}

rd_kafka_resp_err_t Output::OnAnswer(rd_kafka_t* /*client*/, rd_kafka_message_t* message, void* self) {
  static_cast<Output*>(self)->CountOf(FlowIn(*message)).answered.fetch_add(1, std::memory_order_relaxed);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void Output::NoteWait(absl::Duration step) {
  for (auto& [flow, size] : flow_sizes_) {
    const FlowCount& count = CountOf(flow);
    if (count.answered.load(std::memory_order_relaxed) < count.sent) size.waited += step;
  }
}

std::map<int32_t, TransactionSize> Output::SizeByFlow() const {
  std::map<int32_t, TransactionSize> sizes;
  for (const auto& [flow, size] : flow_sizes_) {
    const double answered = 1 - static_cast<double>(size.unanswered_at_end) /
                                    static_cast<double>(std::max<int64_t>(size.records, 1));
    sizes[flow] = {.bytes = size.bytes,
                   .acknowledged = static_cast<int64_t>(static_cast<double>(size.bytes) * answered),
                   .waited = size.waited};
  }
  return sizes;
}

void Output::Blame(const Sent& sent, rd_kafka_resp_err_t code, const std::string& topic) {
  if (!IsOfTopic(code)) return;
  std::string& why = report_.to_blame[sent.flow];
  why = absl::StrCat("topic ", topic, ": ", rd_kafka_err2str(code));
  if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
    absl::StrAppend(&why, ": grant this user Write on it");
  }
}

int Output::CloseSocket(int socket, void* opaque) {
  ++static_cast<Output*>(opaque)->closed_sockets_;
  return close(socket);
}

ClientConfig Output::Config(const DaemonOptions& options, int lane, const OutputLimits& limits,
                            absl::string_view codec) {
  const int64_t queue_bytes = std::max(kQueueBytes, limits.record_bytes);
  ClientConfig config =
      BaseConfig(options, {
                              {"transaction.timeout.ms", "30000"},
                              // Large batches cost less on both sides.
                              {"linger.ms", "5"},
                              {"compression.type", std::string(codec)},
                              // AwaitRoom() bounds a stalled output; any record fits.
                              {"queue.buffering.max.kbytes", absl::StrCat((queue_bytes >> 10) + 1)},
                              {"queue.buffering.max.messages", "1000000"},
                              // A topic that was deleted fails its records after this time, and the
                              // transaction of all topics with them.
                              {"topic.metadata.propagation.max.ms", "5000"},
                              ClientStatistics::Interval(),
                          });
  config.Set("enable.idempotence", "true")
      .Set("acks", "all")
      .Set("delivery.report.only.error", "true")
      // The broker decides whether a record is too large: the client would measure it uncompressed. But no
      // record may be refused because of others in its batch.
      .Set("message.max.bytes", "1000000000")
      .Set("batch.size", absl::StrCat(BatchSize(options, limits.batch_bytes)));
  if (options.delivery == Delivery::kExactlyOnce) {
    config.Set("transactional.id", absl::StrCat(options.group, "/", options.instance, "/", lane));
  }
  return config;
}

absl::Status Output::MakeProducer() {
  ClientConfig config = Config(options_, state_.lane, limits_, codec_);
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_dr_msg_cb(config.raw(), OnDelivery);
  rd_kafka_conf_set_closesocket_cb(config.raw(), CloseSocket);
  for (FlowCount& count : counts_) count.sent = count.answered = 0;  // no other client is there to count
  config.OnNew(OnNew, this);
  rd_kafka_conf_set_stats_cb(config.raw(), [](rd_kafka_t*, char* json, size_t, void* opaque) {
    return static_cast<Output*>(opaque)->statistics_.Take(json);
  });
  rd_kafka_conf_set_throttle_cb(config.raw(), [](rd_kafka_t*, const char*, int32_t, int ms, void* opaque) {
    static_cast<Output*>(opaque)->statistics_.AddThrottled(ms);
  });
  auto producer = config.MakeProducer();
  if (!producer.ok()) return producer.status();
  producer_ = *std::move(producer);
  return absl::OkStatus();
}

void Output::DropProducer() {
  topics_.clear();
  producer_.reset();
}

absl::Status Output::Open(OutputLimits limits) {
  limits_ = limits;
  DropProducer();
  for (;;) {
    if (absl::Status made = MakeProducer(); !made.ok()) return made;
    if (!transactional_) return absl::OkStatus();
    const ErrorPtr error = Retry("starting the transactional producer", [this](int timeout_ms) {
      return rd_kafka_init_transactions(producer_.get(), timeout_ms);
    });
    if (error == nullptr) return absl::OkStatus();
    const absl::Status stopped = absl::CancelledError("stopped while the transactional producer started");
    if (state_.stop.requested()) return stopped;
    if (!IsFence(CauseOf(producer_.get(), error.get()))) {
      return StartError(producer_.get(), error.get(), "starting the transactional producer", options_.group);
    }
    // Another instance of the same name took over in between.
    ++fences_;
    spdlog::warn("lane {}: {}; recreating the producer", state_.lane, Describe(error.get()));
    DropProducer();
    if (absl::Status may = may_recreate_(); !may.ok()) return may;
    if (state_.stop.WaitFor(kAskAgainAfter)) return stopped;
  }
}

bool Output::StopGraceIsOver(absl::Time& give_up) const {
  if (state_.stop.requested() && give_up == absl::InfiniteFuture()) give_up = SteadyNow() + kStopGrace;
  return SteadyNow() >= give_up;
}

ErrorPtr Output::Retry(const std::string& doing, const std::function<rd_kafka_error_t*(int)>& call) {
  absl::Time give_up = absl::InfiniteFuture();
  bool said = false;
  for (;;) {
    state_.heartbeat.Beat();
    StopGraceIsOver(give_up);  // begins with the stop, also while the call waits
    ErrorPtr error(call(kCallTimeoutMs));
    if (error == nullptr || !rd_kafka_error_is_retriable(error.get()) || StopGraceIsOver(give_up)) {
      if (said) state_.SetWaiting("");
      return error;
    }
    const std::string why = absl::StrCat(doing, ": ", Describe(error.get()));
    state_.SetWaiting(why);
    if (!said) spdlog::warn("lane {}: waiting: {}", state_.lane, why);
    said = true;
    absl::SleepFor(kAskAgainAfter);
  }
}

absl::Status Output::Begin() {
  if (producer_ == nullptr) return NoProducer();
  report_.failure = Failure::kNone;
  unsure_ = false;
  report_.has_group_moved_on = false;
  report_.refusals.clear();
  report_.refusals_are_named = false;
  report_.to_blame.clear();
  sent_.clear();
  flow_sizes_.clear();
  flow_size_ = nullptr;
  room_seen_at_ = 0;
  unanswered_at_end_ = 0;
  waited_ = absl::ZeroDuration();
  closed_before_ = closed_sockets_;
  if (!transactional_) return absl::OkStatus();
  for (;;) {
    const ErrorPtr error(rd_kafka_begin_transaction(producer_.get()));
    if (error == nullptr) return absl::OkStatus();
    report_.last_error = Describe(error.get());
    if (!rd_kafka_error_is_fatal(error.get())) {
      return ErrorStatus(rd_kafka_error_code(error.get()), "beginning a transaction");
    }
    if (ProducerLost(report_.last_error) != Outcome::kStopped) continue;
    return state_.stop.requested() ? absl::CancelledError(report_.last_error) : NoProducer();
  }
}

Output::FlowTopics Output::OpenTopics(const DaemonOptions& options) const {
  FlowTopics topics;
  topics.output.reset(rd_kafka_topic_new(producer_.get(), options.output.c_str(), nullptr));
  if (!options.divert.empty()) {
    topics.divert.reset(rd_kafka_topic_new(producer_.get(), options.divert.c_str(), nullptr));
  }
  for (const CounterOptions& counter : options.counters) {
    topics.counters.push_back(OpenKeyedTopic(producer_.get(), counter.output));
  }
  return topics;
}

rd_kafka_topic_t* Output::TopicOf(const Target& target) {
  auto opened = topics_.find(target.flow);
  if (opened == topics_.end()) {
    opened = topics_.emplace(target.flow, OpenTopics(flows_.at(target.flow).options)).first;
  }
  const FlowTopics& topics = opened->second;
  switch (target.kind) {
    case Target::Kind::kOutput:
      return topics.output.get();
    case Target::Kind::kDivert:
      return topics.divert.get();
    case Target::Kind::kCounter:
      break;
  }
  return topics.counters[target.counter].get();
}

absl::Status Output::Write(const OutputRecord& record) {
  AwaitRoom();
  const int64_t before = sent_.empty() ? 0 : sent_.back().end_bytes;
  const size_t key_bytes = record.key.value_or("").size();
  const size_t value_bytes = record.value.value_or("").size();
  const auto bytes = static_cast<int64_t>(key_bytes + value_bytes);
  const int64_t with_headers = bytes + SizeOf(record.headers);
  sent_.push_back({record.of, before + kRecordOverhead + with_headers, bytes, record.timestamp_ms,
                   record.key.has_value(), record.target.flow});
  // The records of a run are of one flow.
  if (flow_size_ == nullptr || flow_of_size_ != record.target.flow) {
    flow_size_ = &flow_sizes_[record.target.flow];
    flow_of_size_ = record.target.flow;
  }
  flow_size_->bytes += kRecordOverhead + with_headers;
  ++flow_size_->records;
  void* const tag = TagOf(sent_.size() - 1, record.target.flow);
  rd_kafka_topic_t* const topic = TopicOf(record.target);
  HeadersPtr headers;
  for (const auto& [name, value] : record.headers) AddHeader(headers, name, value);
  static_assert(OutputRecord::kByKey == RD_KAFKA_PARTITION_UA);
  bool has_asked = false;
  for (;;) {
    // V_HEADERS(NULL) is no headers.
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(record.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),  // the input's buffers go back to the consumer at once
        RD_KAFKA_V_KEY(DataOf(record.key), key_bytes), RD_KAFKA_V_VALUE(DataOf(record.value), value_bytes),
        RD_KAFKA_V_TIMESTAMP(record.timestamp_ms), RD_KAFKA_V_HEADERS(headers.get()), RD_KAFKA_V_OPAQUE(tag),
        RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      headers.release();  // the client owns them now
      ++CountOf(record.target.flow).sent;
      return absl::OkStatus();
    }
    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && !has_asked) {
      // The topic may have grown since the producer last asked for its metadata.
      has_asked = true;
      if (kafka::CountPartitions(producer_.get(), rd_kafka_topic_name(topic), kCallTimeoutMs).ok()) continue;
    }
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
      Refuse(sent_.back(), RD_KAFKA_RESP_ERR__QUEUE_FULL, "larger than librdkafka sends");
    } else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && rd_kafka_outq_len(producer_.get()) == 0) {
      Refuse(sent_.back(), code, "larger than the producer's queue (queue.buffering.max.kbytes)");
    } else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && !state_.stop.requested()) {
      const Waiting waiting(waited_);
      state_.heartbeat.Beat();
      rd_kafka_poll(producer_.get(), 10);  // returns when something was delivered
      if (report_.failure == Failure::kNone) continue;
    }
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && state_.stop.requested())
      return absl::CancelledError("stopped");
    Blame(sent_.back(), code, rd_kafka_topic_name(topic));
    if (report_.failure == Failure::kNone) {
      report_.failure = Failure::kTransient;
      report_.last_error = rd_kafka_err2str(code);
    }
    return ErrorStatus(code, "producing");
  }
}

void Output::Refuse(const Sent& sent, rd_kafka_resp_err_t code, const std::string& why) {
  report_.failure = Failure::kRefused;
  report_.last_error = why;
  const bool diverted = sent.place.diverted;
  report_.refusals.push_back(
      {sent.place, {sent.bytes, sent.timestamp_ms, sent.has_key, !IsTooLarge(code), diverted}, why});
}

int64_t Output::batch_bytes() const { return BatchSize(options_, limits_.batch_bytes); }

TransactionSize Output::size() const {
  const int64_t bytes = sent_.empty() ? 0 : sent_.back().end_bytes;
  return {0, bytes, bytes - unanswered_at_end_, waited_};
}

int64_t Output::UnansweredBytes() {
  const auto unanswered = static_cast<size_t>(rd_kafka_outq_len(producer_.get()));
  if (unanswered == 0 || sent_.empty()) return 0;
  if (unanswered >= sent_.size()) return sent_.back().end_bytes;
  return sent_.back().end_bytes - sent_[sent_.size() - unanswered - 1].end_bytes;
}

void Output::AwaitRoom() {
  if (sent_.empty() || sent_.back().end_bytes - room_seen_at_ < kLookForRoomEvery) return;
  room_seen_at_ = sent_.back().end_bytes;
  const Waiting waiting(waited_);
  while (UnansweredBytes() > kAheadBytes && report_.failure == Failure::kNone && !state_.stop.requested()) {
    state_.heartbeat.Beat();
    const absl::Time before = SteadyNow();
    rd_kafka_poll(producer_.get(), kLookForRoomMs);
    NoteWait(SteadyNow() - before);
  }
}

absl::StatusOr<int32_t> Output::CountPartitions(int32_t flow) {
  if (producer_ == nullptr) return NoProducer();
  int32_t least = INT32_MAX;
  for (const std::string& topic : TopicsOfSamePartition(flows_.at(flow).options)) {
    const auto count = kafka::CountPartitions(producer_.get(), topic, kCallTimeoutMs);
    if (!count.ok()) return count;
    least = std::min(least, *count);
  }
  return least;
}

Failure Output::Poll() {
  if (producer_ != nullptr) rd_kafka_poll(producer_.get(), 0);
  return report_.failure;
}

absl::StatusOr<RecordRules> Output::AskRules(int32_t flow) {
  const auto output = DescribeTopic(consumer_.client(), flows_.at(flow).options.output);
  if (!output.ok()) return output.status();
  return output->record_rules();
}

std::vector<PartitionListPtr> Output::Offsets(const std::vector<Position>& positions) const {
  std::vector<PartitionListPtr> lists;
  size_t bytes = 0;
  for (const Position& position : positions) {
    const std::string& topic = flows_.at(position.partition.flow).options.input;
    bytes += kOffsetOverhead + topic.size() + position.metadata.size();
    if (lists.empty() || bytes > kMostOffsetsBytes) {
      lists.emplace_back(rd_kafka_topic_partition_list_new(0));
      bytes = 0;
    }
    rd_kafka_topic_partition_t* element =
        rd_kafka_topic_partition_list_add(lists.back().get(), topic.c_str(), position.partition.partition);
    element->offset = position.offset;
    element->metadata = rd_kafka_mem_malloc(consumer_.client(), position.metadata.size());
    std::copy(position.metadata.begin(), position.metadata.end(), static_cast<char*>(element->metadata));
    element->metadata_size = position.metadata.size();
  }
  return lists;
}

Outcome Output::Commit(const std::vector<Position>& positions) {
  const Waiting waiting(waited_);
  const std::vector<PartitionListPtr> offsets = Offsets(positions);
  return transactional_ ? CommitTransaction(offsets) : CommitDelivered(offsets);
}

Outcome Output::CommitTransaction(const std::vector<PartitionListPtr>& offsets) {
  // A commit would also wait for records that are stuck behind a refused one.
  const absl::Time begin = SteadyNow();
  absl::Time looked = begin;
  while (rd_kafka_flush(producer_.get(), kFlushTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR &&
         report_.failure == Failure::kNone &&
         SteadyNow() - begin < (state_.stop.requested() ? kStopFlushPatience : kFlushPatience)) {
    state_.heartbeat.Beat();
    const absl::Time now = SteadyNow();
    NoteWait(now - std::exchange(looked, now));
  }
  if (report_.failure == Failure::kNone && state_.stop.requested() &&
      rd_kafka_outq_len(producer_.get()) > 0) {
    // A commit would wait for the rest: a quota or a slow broker would keep lethe from leaving the group.
    report_.failure = Failure::kTransient;
    report_.last_error = "stopped while the broker was slow to take the records";
  }
  if (report_.failure != Failure::kNone) return Abort();
  ErrorPtr error;
  for (auto list = offsets.begin(); list != offsets.end() && error == nullptr; ++list) {
    error = Retry("adding the offsets to the transaction", [&](int timeout_ms) {
      return rd_kafka_send_offsets_to_transaction(producer_.get(), list->get(), consumer_.group_metadata(),
                                                  timeout_ms);
    });
  }
  if (error == nullptr) {
    error = Retry("committing a transaction", [this](int timeout_ms) {
      // A commit that timed out goes on inside the client: calling again waits for the same commit. It is
      // never answered with an abort, since the broker may have committed.
      return rd_kafka_commit_transaction(producer_.get(), timeout_ms);
    });
    if (error == nullptr) return Outcome::kCommitted;
  }
  if (rd_kafka_error_is_retriable(error.get())) return Outcome::kStopped;
  report_.has_group_moved_on = IsGroupMovedOn(rd_kafka_error_code(error.get()));
  if (report_.failure != Failure::kRefused) report_.last_error = Describe(error.get());
  if (report_.failure == Failure::kNone) report_.failure = Failure::kTransient;
  if (rd_kafka_error_is_fatal(error.get())) return ProducerLost(Describe(error.get()));
  return Abort();
}

Outcome Output::CommitDelivered(const std::vector<PartitionListPtr>& offsets) {
  absl::Time give_up = absl::InfiniteFuture();
  while (rd_kafka_flush(producer_.get(), kCallTimeoutMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (StopGraceIsOver(give_up)) return Outcome::kStopped;
    state_.heartbeat.Beat();
    state_.SetWaiting("delivering records: the broker does not answer");
  }
  state_.SetWaiting("");
  char reason[256];
  if (rd_kafka_fatal_error(producer_.get(), reason, sizeof reason) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ProducerLost(reason);
  }
  if (report_.failure != Failure::kNone) return Aborted(/*renew=*/false);
  for (auto list = offsets.begin(); list != offsets.end();) {
    const rd_kafka_resp_err_t code = rd_kafka_commit(consumer_.client(), list->get(), /*async=*/0);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++list;
      continue;
    }
    report_.last_error = rd_kafka_err2str(code);
    report_.has_group_moved_on = IsGroupMovedOn(code);
    if (!IsTransient(code) || code == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS) return Outcome::kUnknown;
    if (StopGraceIsOver(give_up)) return Outcome::kStopped;
    state_.heartbeat.Beat();
    state_.SetWaiting(absl::StrCat("committing offsets: ", report_.last_error));
    absl::SleepFor(kAskAgainAfter);
  }
  return Outcome::kCommitted;
}

// Unanswered records may be in the broker's log. If one waited to be sent again, the client purges it when it
// aborts, and reuses its sequence numbers for later records: the broker takes those for copies, acknowledges
// them and drops them (librdkafka 2.0.2, and its sources of July 2026). A new producer has a new epoch.
// OnDelivery learns which records may be there, but only from the last attempt to send them, so every
// unanswered record counts.
Outcome Output::Abort() {
  if (producer_ == nullptr) return Outcome::kStopped;
  unanswered_at_end_ = UnansweredBytes();
  for (auto& [flow, size] : flow_sizes_) {
    const FlowCount& count = CountOf(flow);
    size.unanswered_at_end =
        std::min(size.records, count.sent - count.answered.load(std::memory_order_relaxed));
  }
  const bool is_unanswered = rd_kafka_outq_len(producer_.get()) > 0;
  if (!transactional_) {
    rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(producer_.get(), kCallTimeoutMs);
    return Aborted(/*renew=*/is_unanswered);
  }
  if (report_.failure == Failure::kTransient) {
    // Purged records do not show why the transaction failed. Until it is aborted, the client answers another
    // begin with the cause.
    const ErrorPtr why(rd_kafka_begin_transaction(producer_.get()));
    if (why != nullptr && rd_kafka_error_txn_requires_abort(why.get()) != 0) {
      report_.last_error = Describe(why.get());
      if (rd_kafka_error_code(why.get()) == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
        std::set<std::string> written;  // of the flows that this producer has written to
        for (const auto& [flow, topics] : topics_) {
          for (std::string& topic : WrittenTopics(flows_.at(flow).options)) written.insert(std::move(topic));
        }
        absl::StrAppend(&report_.last_error, ": grant this user Write on ", absl::StrJoin(written, ", "));
      }
    }
  }
  const ErrorPtr error = Retry("aborting a transaction", [this](int timeout_ms) {
    return rd_kafka_abort_transaction(producer_.get(), timeout_ms);
  });
  if (error == nullptr) {
    while (rd_kafka_poll(producer_.get(), 0) > 0) continue;  // the last delivery reports
    // After a refusal some records are always unanswered, and renewing would add half a second to each abort
    // until the refused record is found. There it counts only if a connection was closed: otherwise no record
    // waits to be sent again.
    const bool counts = report_.failure != Failure::kRefused || closed_sockets_ != closed_before_;
    return Aborted(/*renew=*/unsure_ || (is_unanswered && counts));
  }
  if (rd_kafka_error_is_retriable(error.get())) return Outcome::kStopped;
  return ProducerLost(Describe(error.get()));
}

Outcome Output::Aborted(bool renew) {
  const bool too_large = std::any_of(report_.refusals.begin(), report_.refusals.end(),
                                     [](const Refusal& refusal) { return !refusal.record.is_invalid; });
  if (too_large && codec_ == kQuickCodec && !NamesCodec(options_)) {
    codec_ = kDenseCodec;
    renew = true;
    // The record is not to blame before the denser codec was tried.
    report_.failure = Failure::kTransient;
    spdlog::info("lane {}: a record is too large for its topic with {}: compressing with {} from now on",
                 state_.lane, std::string(kQuickCodec), std::string(kDenseCodec));
  }
  return !renew || RecreateProducer() ? Outcome::kAborted : Outcome::kStopped;
}

Outcome Output::ProducerLost(const std::string& why) {
  ++fences_;
  char reason[256];
  const bool is_fenced = IsFence(rd_kafka_fatal_error(producer_.get(), reason, sizeof reason));
  if (const absl::Status may = is_fenced ? may_recreate_() : absl::OkStatus(); !may.ok()) {
    DropProducer();
    report_.last_error = std::string(may.message());
    return Outcome::kStopped;
  }
  spdlog::warn("lane {}: the producer is lost: {}; recreating it", state_.lane, why);
  return RecreateProducer() ? Outcome::kUnknown : Outcome::kStopped;
}

absl::Status Output::NoProducer() const {
  return absl::UnavailableError(absl::StrCat("the producer cannot be recreated: ", report_.last_error));
}

bool Output::RecreateProducer() {
  const Failure failure = report_.failure;
  DropProducer();
  if (absl::Status opened = Open(limits_); !opened.ok()) {
    DropProducer();
    report_.last_error = std::string(opened.message());
    return false;
  }
  report_.failure = failure;
  return true;
}

}  // namespace lethe::kafka
