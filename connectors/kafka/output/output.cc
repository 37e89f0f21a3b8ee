#include "connectors/kafka/output/output.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe::kafka {
namespace {

constexpr int kLookForRoomMs = 2;
// The broker writes the offsets of one request as one batch, which its topic takes up to 1 MiB by default.
// Thousands of partitions need more.
constexpr size_t kMostOffsetsBytes = size_t{256} << 10;
constexpr size_t kOffsetOverhead = 128;  // of one partition, beside names and metadata

constexpr int kFlowShift = 32;
static_assert(sizeof(uintptr_t) == sizeof(uint64_t));

// RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD, since librdkafka 2.4: the record is good, and was in the batch
// of one that is not.
constexpr int kBatchHasInvalidRecord = -138;

WriteFailure::Kind KindOf(rd_kafka_resp_err_t code) {
  if (static_cast<int>(code) == kBatchHasInvalidRecord) return WriteFailure::Kind::kGoodAmongInvalid;
  switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return WriteFailure::Kind::kTooLarge;
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
      return WriteFailure::Kind::kInvalid;
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
      return WriteFailure::Kind::kInvalidSomehow;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return WriteFailure::Kind::kMayNotWrite;
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return WriteFailure::Kind::kNoPartition;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
      return WriteFailure::Kind::kOfTopic;
    default:
      return WriteFailure::Kind::kOther;
  }
}

// What the client gives back with a message: the number of the record in the transaction, and its flow.
void* TagOf(size_t number, int32_t flow) {
  return reinterpret_cast<void*>((static_cast<uintptr_t>(flow) << kFlowShift) | number);
}

// The client did not take a record of this topic.
WriteFailure FailureOf(rd_kafka_resp_err_t code, absl::string_view topic) {
  return {.kind = KindOf(code), .why = rd_kafka_err2str(code), .topic = topic};
}

// The delivery report of a record that failed.
void ReportFailure(const rd_kafka_message_t& message, SentRecords& sent) {
  WriteFailure failure = FailureOf(message.err, rd_kafka_topic_name(message.rkt));
  failure.may_be_written = rd_kafka_message_status(&message) == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
  sent.OnFailure(reinterpret_cast<uintptr_t>(message._private) & UINT32_MAX, failure);
}

// A record was answered or purged; in the client's threads.
void ReportAnswer(const rd_kafka_message_t& message, SentRecords& sent) {
  sent.OnAnswer(static_cast<int32_t>(reinterpret_cast<uintptr_t>(message._private) >> kFlowShift));
}

// Kafka's numbers of the requests that belong to a transaction.
constexpr int16_t kProduce = 0;
constexpr int16_t kAddPartitionsToTxn = 24;
constexpr int16_t kAddOffsetsToTxn = 25;
constexpr int16_t kEndTxn = 26;
constexpr int16_t kTxnOffsetCommit = 28;

// In the client's threads.
void ReportUnanswered(int16_t request, LateRequests& late) {
  switch (request) {
    case kTxnOffsetCommit:
      return late.OnUnanswered(LateRequests::Kind::kOffsets);
    case kProduce:
    case kAddPartitionsToTxn:
    case kAddOffsetsToTxn:
    case kEndTxn:
      return late.OnUnanswered(LateRequests::Kind::kOther);
    default:
      return;  // A late InitProducerId fences this producer, like any other that takes its name.
  }
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
      transactional_(options.process.delivery == Delivery::kExactlyOnce) {}

absl::Status Output::MakeProducer() {
  ClientConfig config = ProducerConfig(options_, state_.lane, limits_, codec_.codec());
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_dr_msg_cb(config.raw(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
      ReportFailure(*message, static_cast<Output*>(self)->sent_);
  });
  sent_.ForgetAnswers();
  late_.OnNewEpoch();
  wants_new_producer_ = false;
  config.OnNew(OnNew, this);
  rd_kafka_conf_set_stats_cb(config.raw(), [](rd_kafka_t*, char* json, size_t, void* self) {
    return static_cast<Output*>(self)->statistics_.Take(json);
  });
  rd_kafka_conf_set_throttle_cb(config.raw(), [](rd_kafka_t*, const char*, int32_t, int ms, void* self) {
    static_cast<Output*>(self)->statistics_.AddThrottled(ms);
  });
  auto producer = config.MakeProducer();
  if (!producer.ok()) return producer.status();
  producer_ = *std::move(producer);
  if (transactional_) timeout_ = absl::Milliseconds(NumberOf(producer_.get(), "transaction.timeout.ms"));
  return absl::OkStatus();
}

rd_kafka_resp_err_t Output::OnNew(rd_kafka_t* client, const rd_kafka_conf_t* /*config*/, void* self,
                                  char* /*reason*/, size_t /*size*/) {
  // An error stands for the missing answer; those of brokers are in answers.
  rd_kafka_interceptor_add_on_response_received(
      client, "lethe",
      [](rd_kafka_t*, int, const char*, int32_t, int16_t request, int16_t, int32_t, size_t, int64_t,
         rd_kafka_resp_err_t error, void* output) {
        if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
          ReportUnanswered(request, static_cast<Output*>(output)->late_);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
      },
      self);
  return rd_kafka_interceptor_add_on_acknowledgement(
      client, "lethe",
      [](rd_kafka_t*, rd_kafka_message_t* message, void* output) {
        ReportAnswer(*message, static_cast<Output*>(output)->sent_);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
      },
      self);
}

void Output::DropProducer() {
  topics_.clear();
  producer_.reset();
}

std::string Output::Describe(const rd_kafka_error_t* error) {
  return absl::StrCat(rd_kafka_error_string(error), " (", rd_kafka_error_name(error), ")");
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
      return StartError(producer_.get(), error.get(), "starting the transactional producer",
                        options_.process.group);
    }
    // Another instance of the same name took over in between.
    ++fences_;
    spdlog::warn("lane {}: {}; recreating the producer", state_.lane, Describe(error.get()));
    DropProducer();
    if (absl::Status may = may_recreate_(); !may.ok()) return may;
    if (state_.stop.WaitFor(kAskAgainAfter)) return stopped;
  }
}

absl::Status Output::Begin() {
  if (producer_ == nullptr) return NoProducer();
  // What went wrong before is known until the next error.
  std::string last_error = std::move(report_.last_error);
  report_ = TransactionReport();
  report_.last_error = std::move(last_error);
  sent_.Begin();
  waited_ = absl::ZeroDuration();
  if (absl::Status renewed = RenewProducer(); !renewed.ok()) return renewed;
  if (!transactional_) return absl::OkStatus();
  for (;;) {
    const ErrorPtr error(rd_kafka_begin_transaction(producer_.get()));
    if (error == nullptr) return absl::OkStatus();
    report_.last_error = Describe(error.get());
    if (!rd_kafka_error_is_fatal(error.get())) {
      return ErrorStatus(rd_kafka_error_code(error.get()), "beginning a transaction");
    }
    if (ProducerLost(report_.last_error) != Outcome::kStopped) continue;
    return NoProducerNow();
  }
}

absl::Status Output::RenewProducer() {
  const bool may_be_late = transactional_ && late_.NeedNewEpoch();
  if (!may_be_late && !wants_new_producer_) return absl::OkStatus();
  const absl::Time begin = SteadyNow();
  if (!RecreateProducer()) return NoProducerNow();
  if (!may_be_late) return absl::OkStatus();
  ++renewals_;
  spdlog::info(
      "lane {}: the brokers did not answer a request of the last transaction and may apply it late: "
      "recreated the producer within {}",
      state_.lane, absl::FormatDuration(absl::Trunc(SteadyNow() - begin, absl::Milliseconds(1))));
  return absl::OkStatus();
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
  void* const tag = TagOf(sent_.Add(record), record.target.flow);
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
        RD_KAFKA_V_KEY(DataOf(record.key), record.key.value_or("").size()),
        RD_KAFKA_V_VALUE(DataOf(record.value), record.value.value_or("").size()),
        RD_KAFKA_V_TIMESTAMP(record.timestamp_ms), RD_KAFKA_V_HEADERS(headers.get()), RD_KAFKA_V_OPAQUE(tag),
        RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      headers.release();  // the client owns them now
      sent_.NoteTaken();
      return absl::OkStatus();
    }
    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION && !has_asked) {
      // The topic may have grown since the producer last asked for its metadata.
      has_asked = true;
      if (kafka::CountPartitions(producer_.get(), rd_kafka_topic_name(topic), kCallTimeoutMs).ok()) continue;
    }
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
      sent_.FailLast({WriteFailure::Kind::kInvalid, "larger than librdkafka sends"});
    } else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && rd_kafka_outq_len(producer_.get()) == 0) {
      sent_.FailLast(
          {WriteFailure::Kind::kInvalid, "larger than the producer's queue (queue.buffering.max.kbytes)"});
    } else if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && !state_.stop.requested()) {
      const Waiting waiting(waited_);
      state_.heartbeat.Beat();
      rd_kafka_poll(producer_.get(), 10);  // returns when something was delivered
      if (report_.failure == Failure::kNone) continue;
    } else if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      sent_.FailLast(FailureOf(code, rd_kafka_topic_name(topic)));
    }
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && state_.stop.requested())
      return absl::CancelledError("stopped");
    return ErrorStatus(code, "producing");
  }
}

int64_t Output::batch_bytes() const { return BatchSize(options_, limits_.batch_bytes); }

TransactionSize Output::size() const { return {0, sent_.bytes(), sent_.acknowledged(), waited_}; }

void Output::AwaitRoom() {
  if (!sent_.IsRoomDue()) return;
  const Waiting waiting(waited_);
  while (!sent_.HasRoom(Unanswered()) && report_.failure == Failure::kNone && !state_.stop.requested()) {
    state_.heartbeat.Beat();
    const absl::Time before = SteadyNow();
    rd_kafka_poll(producer_.get(), kLookForRoomMs);
    sent_.NoteWait(SteadyNow() - before);
  }
}

absl::StatusOr<SmallestTopic> Output::CountPartitions(int32_t flow) {
  if (producer_ == nullptr) return NoProducer();
  return LeastPartitions(flows_.at(flow).options, [&](const std::string& topic) {
    return kafka::CountPartitions(producer_.get(), topic, kCallTimeoutMs);
  });
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

absl::Status Output::NoProducerNow() const {
  return state_.stop.requested() ? absl::CancelledError(report_.last_error) : NoProducer();
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
