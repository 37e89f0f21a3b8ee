#include "connectors/kafka/group/consumer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe::kafka {
namespace {

// Leaving takes one request, unless the group is in the middle of a rebalance.
constexpr absl::Duration kLeavePatience = absl::Seconds(1);
// The others join again at their next heartbeat, three seconds by default.
constexpr absl::Duration kJoinPatience = absl::Milliseconds(3500);
constexpr int kLeavePollMs = 20;

}  // namespace

Consumer::Consumer(const DaemonOptions& options, const Flows& flows, int lane)
    : options_(options),
      flows_(flows),
      lane_(lane),
      cooperative_(options.process.assignment == Assignment::kCooperative) {}

ClientConfig Consumer::Config(const DaemonOptions& options, int lane) {
  // Fetching ahead, over all partitions: enough to keep the lane busy, and little compared with the memory
  // limit. Twice or four times as much was no faster.
  ClientConfig config = ReaderConfig(options, "read_committed",
                                     FetchOn::Defaults({{"queued.min.messages", "25000"},
                                                        {"queued.max.messages.kbytes", "32768"},
                                                        ClientStatistics::Interval()}));
  config.Set("auto.offset.reset", "error");
  config.Set("partition.assignment.strategy", options.process.assignment == Assignment::kCooperative
                                                  ? "cooperative-sticky"
                                                  : "range,roundrobin");
  // Each lane is a member, and needs a name of its own.
  if (options.process.static_membership != StaticMembership::kNever) {
    config.Set("group.instance.id", MemberName(options.process, lane));
  }
  return config;
}

absl::Status Consumer::Open() {
  ClientConfig config = Config(options_, lane_);
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_rebalance_cb(config.raw(), OnRebalance);
  rd_kafka_conf_set_stats_cb(config.raw(), [](rd_kafka_t*, char* json, size_t, void* opaque) {
    return static_cast<Consumer*>(opaque)->statistics_.Take(json);
  });
  rd_kafka_conf_set_throttle_cb(config.raw(), [](rd_kafka_t*, const char*, int32_t, int ms, void* opaque) {
    static_cast<Consumer*>(opaque)->statistics_.AddThrottled(ms);
  });
  auto consumer = config.MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  consumer_ = *std::move(consumer);
  is_closing_ = false;
  session_timeout_ = absl::Milliseconds(NumberOf(client(), "session.timeout.ms"));
  fetch_on_.emplace(client());
  rd_kafka_poll_set_consumer(client());
  return Resubscribe();
}

absl::Status Consumer::Resubscribe() {
  if (flows_.size() == 0) return absl::OkStatus();  // no topic of the list is there yet
  const PartitionListPtr topics(rd_kafka_topic_partition_list_new(flows_.size()));
  for (int32_t flow = 0; flow < flows_.size(); ++flow) {
    rd_kafka_topic_partition_list_add(topics.get(), TopicOf({flow, 0}).c_str(), RD_KAFKA_PARTITION_UA);
  }
  return ErrorStatus(rd_kafka_subscribe(client(), topics.get()), "subscribing to the input");
}

absl::Status Consumer::Rejoin() {
  rd_kafka_unsubscribe(client());
  return Resubscribe();
}

void Consumer::Leave() {
  if (!is_open()) return;
  BeginToClose();
  // Dynamic members leave when they close. A static member that closes keeps its place; to leave, it must
  // unsubscribe and have its partitions revoked. Until its join is answered it has no id to leave by, while
  // the group may count it already.
  if (options_.process.static_membership == StaticMembership::kAfterCrash) {
    const auto poll_while = [&](bool is_member, absl::Duration patience) {
      const absl::Time give_up = SteadyNow() + patience;
      while (MemberId().empty() != is_member && SteadyNow() < give_up) {
        const MessagePtr ignored(rd_kafka_consumer_poll(client(), kLeavePollMs));
      }
    };
    if (flows_.size() > 0 && !ClusterId(client(), /*timeout_ms=*/0).empty()) poll_while(false, kJoinPatience);
    rd_kafka_unsubscribe(client());
    poll_while(true, kLeavePatience);
  }
  rd_kafka_consumer_close(client());
}

absl::Status Consumer::Reopen() {
  Close();
  return Open();
}

void Consumer::Close() {
  BeginToClose();
  rd_kafka_consumer_close(client());
  ClearBatch();
  asides_.Clear();
  consumer_.reset();
}

void Consumer::BeginToClose() {
  is_closing_ = true;
  AnswerAtOnce();
}

void Consumer::AnswerAtOnce() {
  if (!rebalance_) return;
  const SourceEvent event = *rebalance_;
  if (event.kind == SourceEvent::Kind::kAssigned) {
    Assign({});
  } else {
    Unassign(event.partitions);
  }
}

void Consumer::PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) {
  PollMessages(timeout, limit, most_bytes);
  if (!std::exchange(is_new_rebalance_, false)) return;
  events_.push_back(*rebalance_);
  InputRecord record;
  record.event = &events_.back();
  batch_.insert(batch_.begin(), record);
}

void Consumer::PollMessages(absl::Duration timeout, size_t limit, size_t most_bytes) {
  messages_.reserve(limit);
  views_.reserve(limit);
  size_t bytes = 0;
  const auto has_room = [&] { return messages_.size() < limit && bytes < most_bytes; };
  const auto add = [&](MessagePtr message, size_t size) {
    Add(std::move(message));
    bytes += size;
  };
  // What the client has fetched comes behind that.
  if (!asides_.Return(has_room, add)) return;
  int timeout_ms =
      messages_.empty()
          ? static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))))
          : 0;
  while (has_room() && !is_new_rebalance_) {
    // Singly: librdkafka's batch consumption may skip or repeat messages after a seek.
    MessagePtr polled = fetch_on_->Poll(timeout_ms);
    if (polled == nullptr) break;
    timeout_ms = 0;
    if (!asides_.TakeFollowing(polled)) add(std::move(polled), fetch_on_->last_bytes());
  }
}

void Consumer::Add(MessagePtr message) {
  const rd_kafka_message_t* added = messages_.emplace_back(std::move(message)).get();
  if (added->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    batch_.push_back(views_.emplace_back(*added).record());
    batch_.back().flow = PartitionOf(*added).flow;
  } else {
    AddEvent(*added);
  }
}

MessagePlace Consumer::PlaceOf(const MessagePtr& message) {
  return {.partition = PartitionOf(*message),
          .offset = message->offset,
          .is_record = message->err == RD_KAFKA_RESP_ERR_NO_ERROR,
          .bytes = message->len + message->key_len};
}

void Consumer::SetAside(const Task& task, absl::Span<const InputRecord> records) {
  asides_.SetAside(task.id(), records, messages_);
}

void Consumer::Wait(Task& task) { asides_.Wait(task.id()); }

void Consumer::TakeBack(Task& task) {
  SkipRestOfBatch(task);
  asides_.TakeBack(task.id(), task.next(), messages_);
}

void Consumer::PauseClient(TopicPartition partition, bool paused) {
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), TopicOf(partition).c_str(), partition.partition);
  const rd_kafka_resp_err_t code = paused ? rd_kafka_pause_partitions(client(), list.get())
                                          : rd_kafka_resume_partitions(client(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}-{}: {}: {}", TopicOf(partition), partition.partition, paused ? "pausing" : "resuming",
                 rd_kafka_err2str(code));
  }
}

void Consumer::FetchAgain(TopicPartition partition, std::optional<int64_t> offset) {
  PauseClient(partition, false);
  // A pause drops what the client had fetched.
  if (offset) SeekClient(partition, *offset);
}

void Consumer::ReleaseBatch() {
  asides_.Release();
  views_.clear();
  events_.clear();
  messages_.clear();
}

SourceEvent::Problem Consumer::ProblemOf(rd_kafka_resp_err_t code) const {
  switch (code) {
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      return SourceEvent::Problem::kMayNotUseGroup;
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return SourceEvent::Problem::kMayNotReadTopic;
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
      return SourceEvent::Problem::kOtherProtocol;
    case RD_KAFKA_RESP_ERR__FATAL: {
      char reason[256];
      const bool is_fenced =
          rd_kafka_fatal_error(client(), reason, sizeof reason) == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
      return is_fenced ? SourceEvent::Problem::kNameTaken : SourceEvent::Problem::kFatal;
    }
    case RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT:
      return SourceEvent::Problem::kFatal;
    default:
      return SourceEvent::Problem::kOther;
  }
}

void Consumer::AddEvent(const rd_kafka_message_t& message) {
  SourceEvent event;
  switch (message.err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      event.kind = SourceEvent::Kind::kEnd;
      break;
    // One batch cannot be read, however often it is fetched: broken, or too large once decompressed.
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      event.kind = SourceEvent::Kind::kUnreadable;
      event.why = rd_kafka_message_errstr(&message);
      break;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      event.kind = SourceEvent::Kind::kUnreadDeleted;
      break;
    default:
      event.problem = ProblemOf(message.err);
      break;
  }
  const bool is_of_partition = message.rkt != nullptr && message.partition >= 0;
  if (event.why.empty() && event.kind != SourceEvent::Kind::kEnd) {
    event.why = absl::StrCat(message.rkt == nullptr ? "the consumer" : rd_kafka_topic_name(message.rkt),
                             is_of_partition ? absl::StrCat("-", message.partition) : "", ": ",
                             rd_kafka_message_errstr(&message));
  }
  if (message.err == RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT) {
    absl::StrAppend(&event.why, ": the brokers refuse session.timeout.ms ",
                    absl::ToInt64Milliseconds(session_timeout_),
                    ": set it between their group.min.session.timeout.ms (6000 by default) and "
                    "group.max.session.timeout.ms");
  }
  events_.push_back(std::move(event));
  InputRecord record;
  record.flow = PartitionOf(message).flow;
  if (is_of_partition) record.partition = message.partition;
  record.offset = message.offset;
  record.event = &events_.back();
  batch_.push_back(record);
}

void Consumer::MoveTo(const Task& task, int64_t offset) {
  asides_.Drop(task.id());
  SeekClient(task.id(), offset);
}

void Consumer::SeekClient(TopicPartition partition, int64_t offset) {
  const TopicPtr topic(rd_kafka_topic_new(client(), TopicOf(partition).c_str(), nullptr));
  // Does not wait: from the call on, the client drops messages that it fetched before.
  const rd_kafka_resp_err_t code = rd_kafka_seek(topic.get(), partition.partition, offset, 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}-{}: seeking offset {}: {}", TopicOf(partition), partition.partition, offset,
                 rd_kafka_err2str(code));
  }
}

void Consumer::Pause(const Task& task, bool paused) { asides_.SetPaused(task.id(), paused); }

int64_t Consumer::HighWatermark(TopicPartition partition) const {
  int64_t low = 0;
  int64_t high = 0;
  if (is_open()) {
    rd_kafka_get_watermark_offsets(client(), TopicOf(partition).c_str(), partition.partition, &low, &high);
  }
  return high;
}

PartitionListPtr Consumer::Positions(const std::vector<const Task*>& tasks) const {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(tasks.size())));
  for (const Task* task : tasks) {
    rd_kafka_topic_partition_list_add(list.get(), TopicOf(task->id()).c_str(), task->id().partition)->offset =
        task->next();
  }
  return list;
}

TopicPartition Consumer::PartitionOf(const rd_kafka_message_t& message) {
  const char* const topic = message.rkt == nullptr ? "" : rd_kafka_topic_name(message.rkt);
  if (last_topic_ != topic) {
    const Flow* const flow = flows_.Find(topic);
    last_topic_ = topic;
    last_flow_ = flow == nullptr ? -1 : flow->number;
  }
  return {last_flow_, message.partition};
}

void Consumer::Assign(const std::vector<const Task*>& tasks) {
  rebalance_.reset();
  for (const Task* task : tasks) asides_.Drop(task->id());
  const PartitionListPtr list = Positions(tasks);
  if (cooperative_) {
    Log("assigning", ErrorPtr(rd_kafka_incremental_assign(client(), list.get())));
    return;
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(client(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::error("lane {}: assigning: {}", lane_, rd_kafka_err2str(code));
  }
}

void Consumer::Reassign(const Task& task, const Tasks& all) {
  std::vector<const Task*> tasks;
  if (cooperative_) {
    tasks = {&task};
    if (!Log("unassigning", ErrorPtr(rd_kafka_incremental_unassign(client(), Positions(tasks).get())))) {
      return;
    }
  } else {
    // The others' records are fetched again, and skipped if they were judged meanwhile.
    for (const auto& [id, each] : all) {
      if (each->phase() != Phase::kFailed) tasks.push_back(each.get());
    }
  }
  Assign(tasks);
}

void Consumer::Unassign(const std::vector<TopicPartition>& partitions) {
  rebalance_.reset();
  for (const TopicPartition& partition : partitions) asides_.Forget(partition);
  if (!cooperative_) {
    rd_kafka_assign(client(), nullptr);
    return;
  }
  // The client refuses the whole list, and keeps waiting, if one of it was never assigned: a failed
  // partition.
  rd_kafka_topic_partition_list_t* all = nullptr;
  rd_kafka_assignment(client(), &all);
  const PartitionListPtr owner(all);
  const PartitionListPtr assigned(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const TopicPartition& each : partitions) {
    const char* const topic = TopicOf(each).c_str();
    if (all == nullptr || rd_kafka_topic_partition_list_find(all, topic, each.partition) == nullptr) continue;
    rd_kafka_topic_partition_list_add(assigned.get(), topic, each.partition);
  }
  Log("unassigning", ErrorPtr(rd_kafka_incremental_unassign(client(), assigned.get())));
}

bool Consumer::Log(const char* doing, const ErrorPtr& error) const {
  if (error == nullptr) return true;
  spdlog::error("lane {}: {}: {}", lane_, doing, rd_kafka_error_string(error.get()));
  return false;
}

void Consumer::OnRebalance(rd_kafka_t* consumer, rd_kafka_resp_err_t code, PartitionList* partitions,
                           void* opaque) {
  auto* const self = static_cast<Consumer*>(opaque);
  SourceEvent& event = self->rebalance_.emplace();
  event.kind = code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? SourceEvent::Kind::kAssigned
               : rd_kafka_assignment_lost(consumer) != 0    ? SourceEvent::Kind::kLost
                                                            : SourceEvent::Kind::kRevoked;
  for (int i = 0; i < partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& each = partitions->elems[i];
    // The group assigns only topics that this member has asked for.
    if (const Flow* flow = self->flows_.Find(each.topic)) {
      event.partitions.push_back({flow->number, each.partition});
    }
  }
  if (self->is_closing_) return self->AnswerAtOnce();
  self->is_new_rebalance_ = true;
  rd_kafka_yield(consumer);  // the poll returns
}

bool Consumer::TakeGeneration() {
  group_metadata_.reset(rd_kafka_consumer_group_metadata(client()));
  const std::string id = MemberId();
  if (!id.empty()) member_id_ = id;
  // Without a member id the broker takes a commit for an operator's, and checks no generation.
  return !id.empty();
}

std::string Consumer::MemberId() const {
  char* id = rd_kafka_memberid(client());
  std::string copy = id == nullptr ? "" : id;
  rd_kafka_mem_free(client(), id);
  return copy;
}

void Consumer::StayAlive() {
  // An empty queue of the client.
  const QueuePtr nothing(rd_kafka_queue_new(client()));
  const MessagePtr none(rd_kafka_consume_queue(nothing.get(), 0));
}

}  // namespace lethe::kafka
