#include "connectors/kafka/group/source.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// To leave takes a request, unless the group is in the middle of a rebalance.
constexpr absl::Duration kLeavePatience = absl::Seconds(1);
constexpr int kLeavePollMs = 20;

}  // namespace

Source::Source(const DaemonOptions& options, int lane, Rebalance rebalance)
    : options_(options),
      lane_(lane),
      rebalance_(std::move(rebalance)),
      cooperative_(options.assignment == Assignment::kCooperative) {}

absl::Status Source::Open() {
  // What is fetched ahead, over all partitions, is enough to keep the lane busy, and little beside the memory
  // limit. librdkafka counts values alone, hence the records; and a fetch that compressed well is many times
  // larger in memory, hence its size. Twice or four times as much was no faster.
  ClientConfig config = BaseConfig(options_, FetchOn::Defaults({{"queued.min.messages", "25000"},
                                                                {"fetch.message.max.bytes", "262144"},
                                                                {"queued.max.messages.kbytes", "32768"},
                                                                ClientStatistics::Interval()}));
  config.Set("group.id", options_.group)
      .Set("isolation.level", "read_committed")
      .Set("enable.auto.commit", "false")
      .Set("enable.auto.offset.store", "false")
      .Set("auto.offset.reset", "error")
      .Set("enable.partition.eof", "true");
  config.Set("partition.assignment.strategy", cooperative_ ? "cooperative-sticky" : "range,roundrobin");
  // Each lane is a member, and two of one name would throw each other out.
  if (options_.static_membership != StaticMembership::kNever) {
    config.Set("group.instance.id", InstanceName());
  }
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_rebalance_cb(config.raw(), OnRebalance);
  rd_kafka_conf_set_stats_cb(config.raw(), [](rd_kafka_t*, char* json, size_t, void* opaque) {
    return static_cast<Source*>(opaque)->statistics_.Take(json);
  });
  auto consumer = config.MakeConsumer();
  if (!consumer.ok()) return consumer.status();
  consumer_ = *std::move(consumer);
  int64_t session_timeout_ms = 0;
  if (absl::SimpleAtoi(PropertyOf(client(), "session.timeout.ms"), &session_timeout_ms)) {
    session_timeout_ = absl::Milliseconds(session_timeout_ms);
  }
  fetch_on_.emplace(client());
  rd_kafka_poll_set_consumer(client());
  return Subscribe();
}

absl::Status Source::Subscribe() {
  const PartitionListPtr topics(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(topics.get(), options_.input.c_str(), RD_KAFKA_PARTITION_UA);
  return ErrorStatus(rd_kafka_subscribe(client(), topics.get()),
                     absl::StrCat("subscribing to ", options_.input));
}

absl::Status Source::Rejoin() {
  rd_kafka_unsubscribe(client());
  return Subscribe();
}

void Source::Leave() {
  // Dynamic members leave when they close, and those that keep their place do not leave. A static member that
  // closes says nothing; one that unsubscribes leaves, when its partitions are revoked.
  if (options_.static_membership == StaticMembership::kAfterCrash) {
    rd_kafka_unsubscribe(client());
    const absl::Time give_up = SteadyNow() + kLeavePatience;
    while (IsMember() && SteadyNow() < give_up) {
      const MessagePtr ignored(rd_kafka_consumer_poll(client(), kLeavePollMs));
    }
  }
  rd_kafka_consumer_close(client());
}

void Source::Close() {
  rd_kafka_consumer_close(client());
  consumer_.reset();
}

void Source::Poll(absl::Duration timeout, size_t limit, size_t most_bytes) {
  const absl::Time now = SteadyNow();
  batch_.clear();
  ++batch_number_;
  polling_ = true;
  const absl::Cleanup polled = [this] { polling_ = false; };
  int timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(timeout));
  size_t bytes = 0;
  while (batch_.size() < limit && bytes < most_bytes) {
    // Singly: librdkafka's batch consumption may skip or repeat messages after a seek.
    rd_kafka_message_t* message = rd_kafka_consumer_poll(client(), timeout_ms);
    if (message == nullptr) break;
    batch_.emplace_back(message);
    bytes += message->len + message->key_len;
    timeout_ms = 0;
  }
  fetch_on_->Polled(now, !batch_.empty());
}

void Source::DropUnowned(const OwnedPartitions& owned) {
  std::erase_if(batch_, [&](const MessagePtr& message) {
    return message->rkt != nullptr && !owned.contains(message->partition);
  });
}

void Source::ReadAgainFrom(size_t begin, const OwnedPartitions& owned_partitions) {
  for (size_t i = begin; i < batch_.size(); ++i) {
    OwnedPartition* owned =
        batch_[i]->rkt == nullptr ? nullptr : Find(owned_partitions, batch_[i]->partition);
    if (owned == nullptr || owned->phase == Phase::kFailed || owned->in_transaction()) continue;
    if (!IsStale(*owned)) Seek(*owned);
  }
}

void Source::Seek(OwnedPartition& owned) {
  owned.unreadable.reset();
  SeekTo(owned, owned.next);
}

void Source::SeekTo(OwnedPartition& owned, int64_t offset) {
  owned.end_of_log = 0;  // it is not there any more, and will be told again
  if (polling_) {
    // In a rebalance: what has been polled is stale, and what will be polled is not.
    std::erase_if(batch_, [&](const MessagePtr& message) {
      return message->rkt != nullptr && message->partition == owned.id;
    });
  } else {
    owned.sought_in_batch = batch_number_;
  }
  const TopicPtr topic(rd_kafka_topic_new(client(), options_.input.c_str(), nullptr));
  // Without waiting: messages fetched before are outdated from the call on, and dropped by the client.
  const rd_kafka_resp_err_t code = rd_kafka_seek(topic.get(), owned.id, offset, 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}: seeking offset {}: {}", Name(owned), offset, rd_kafka_err2str(code));
  }
}

void Source::SetPaused(OwnedPartition& owned, bool paused) {
  owned.paused = paused;
  const PartitionListPtr list = Positions({&owned});
  const rd_kafka_resp_err_t code = paused ? rd_kafka_pause_partitions(client(), list.get())
                                          : rd_kafka_resume_partitions(client(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}: {}: {}", Name(owned), paused ? "pausing" : "resuming", rd_kafka_err2str(code));
  }
}

int64_t Source::HighWatermark(int32_t partition) const {
  int64_t low = 0;
  int64_t high = 0;
  if (is_open()) rd_kafka_get_watermark_offsets(client(), options_.input.c_str(), partition, &low, &high);
  return high;
}

PartitionListPtr Source::Positions(const std::vector<const OwnedPartition*>& partitions) const {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const OwnedPartition* owned : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), owned->id)->offset = owned->next;
  }
  return list;
}

void Source::Assign(const std::vector<const OwnedPartition*>& partitions) {
  const PartitionListPtr list = Positions(partitions);
  if (cooperative_) {
    Log("assigning", ErrorPtr(rd_kafka_incremental_assign(client(), list.get())));
    return;
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(client(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::error("lane {}: assigning: {}", lane_, rd_kafka_err2str(code));
  }
}

void Source::Reassign(const OwnedPartition& owned, const OwnedPartitions& all) {
  std::vector<const OwnedPartition*> partitions;
  if (cooperative_) {
    partitions = {&owned};
    if (!Log("unassigning", ErrorPtr(rd_kafka_incremental_unassign(client(), Positions(partitions).get())))) {
      return;
    }
  } else {
    // What is fetched of the others is fetched again, and ignored where it was judged meanwhile.
    for (const auto& [id, each] : all) {
      if (each->phase != Phase::kFailed) partitions.push_back(each.get());
    }
  }
  Assign(partitions);
}

void Source::Unassign(const PartitionList& partitions) {
  if (!cooperative_) {
    rd_kafka_assign(client(), nullptr);
    return;
  }
  // The client refuses all of them, and goes on waiting, if one was never assigned: what must not be read.
  rd_kafka_topic_partition_list_t* all = nullptr;
  rd_kafka_assignment(client(), &all);
  const PartitionListPtr owned(all);
  const PartitionListPtr assigned(rd_kafka_topic_partition_list_new(partitions.cnt));
  for (int i = 0; all != nullptr && i < partitions.cnt; ++i) {
    const rd_kafka_topic_partition_t& each = partitions.elems[i];
    if (rd_kafka_topic_partition_list_find(all, each.topic, each.partition) == nullptr) continue;
    rd_kafka_topic_partition_list_add(assigned.get(), each.topic, each.partition);
  }
  Log("unassigning", ErrorPtr(rd_kafka_incremental_unassign(client(), assigned.get())));
}

bool Source::Log(const char* doing, const ErrorPtr& error) const {
  if (error == nullptr) return true;
  spdlog::error("lane {}: {}: {}", lane_, doing, rd_kafka_error_string(error.get()));
  return false;
}

void Source::OnRebalance(rd_kafka_t* consumer, rd_kafka_resp_err_t code, PartitionList* partitions,
                         void* opaque) {
  const auto* source = static_cast<Source*>(opaque);
  if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    source->rebalance_.assigned(*partitions);
  } else {
    source->rebalance_.revoked(*partitions, rd_kafka_assignment_lost(consumer) != 0);
  }
}

bool Source::TakeGroupMetadata() {
  group_metadata_.reset(rd_kafka_consumer_group_metadata(client()));
  // Without a member's name the broker takes a commit for an operator's, and asks for no generation.
  return IsMember();
}

bool Source::IsMember() const {
  char* member = rd_kafka_memberid(client());
  const bool is_member = member != nullptr && *member != '\0';
  rd_kafka_mem_free(client(), member);
  return is_member;
}

void Source::StayAlive() {
  // A queue of it in which nothing ever is.
  using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
  const QueuePtr nothing(rd_kafka_queue_new(client()));
  const MessagePtr none(rd_kafka_consume_queue(nothing.get(), 0));
}

std::string Source::InstanceName() const { return absl::StrCat(options_.instance, "-", lane_); }

std::string Source::Describe(const rd_kafka_message_t& event) const {
  return absl::StrCat(options_.input,
                      event.rkt != nullptr && event.partition >= 0 ? absl::StrCat("-", event.partition) : "",
                      ": ", rd_kafka_message_errstr(&event));
}

std::string Source::Name(const OwnedPartition& owned) const {
  return absl::StrCat(options_.input, "-", owned.id);
}

}  // namespace lethe::kafka
