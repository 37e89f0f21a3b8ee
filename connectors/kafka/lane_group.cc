// The lane's part in the group: what is assigned, revoked and lost.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/lane.h"
#include "connectors/kafka/preflight/log_sample.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(100);
// How long a partition that was assigned may be unknown: who assigns it may hear first of one that was added.
constexpr absl::Duration kNewPartitionPatience = absl::Seconds(30);
// What a lane asks about while it has nothing to do.
constexpr absl::Duration kLookForInputEvery = absl::Seconds(5);
constexpr int kLookTimeoutMs = 500;
constexpr absl::Duration kLookAtHeldEvery = absl::Seconds(1);
// So many, each so soon after the one before, are no accident.
constexpr int kMostNamesakes = 3;
constexpr absl::Duration kNamesakesInARow = absl::Minutes(5);
constexpr absl::Duration kPublishEvery = absl::Milliseconds(250);
// What asking filters for their figures may take of the lane's time at once.
constexpr absl::Duration kRenewFor = absl::Milliseconds(5);

// How long a group may take before it is worth a line in the log: an empty one waits 3 s for more members.
constexpr absl::Duration kSayUnassignedAfter = absl::Seconds(5);
// What a broker may take to notice that a session has timed out.
constexpr absl::Duration kDeadMemberSlack = absl::Seconds(2);
// To leave takes a request, unless the group is in the middle of a rebalance.
constexpr absl::Duration kLeavePatience = absl::Seconds(1);
constexpr int kLeavePollMs = 20;

// What the broker says to a member that is no longer one, or not of this generation.
bool IsGroupMovedOn(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Lane::OnRebalance(rd_kafka_t* /*consumer*/, rd_kafka_resp_err_t code,
                       rd_kafka_topic_partition_list_t* partitions, void* opaque) {
  auto* lane = static_cast<Lane*>(opaque);
  if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    lane->Assign(partitions);
  } else {
    lane->Revoke(partitions, rd_kafka_assignment_lost(lane->consumer_.get()) != 0);
  }
}

bool Lane::TakeGroupMetadata() {
  group_metadata_.reset(rd_kafka_consumer_group_metadata(consumer_.get()));
  // Without a member's name the broker takes a commit for an operator's, and asks for no generation.
  return IsMember();
}

bool Lane::IsMember() const {
  char* member = rd_kafka_memberid(consumer_.get());
  const bool is_member = member != nullptr && *member != '\0';
  rd_kafka_mem_free(consumer_.get(), member);
  return is_member;
}

void Lane::LeaveGroup() {
  // Of the others, dynamic members leave when they close, and those that keep their place do not leave.
  if (options_.static_membership != StaticMembership::kAfterCrash) return;
  // A static member that closes says nothing; one that unsubscribes leaves, when its partitions are revoked.
  rd_kafka_unsubscribe(consumer_.get());
  const absl::Time give_up = SteadyNow() + kLeavePatience;
  while (IsMember() && SteadyNow() < give_up) {
    const MessagePtr ignored(rd_kafka_consumer_poll(consumer_.get(), kLeavePollMs));
  }
}

void Lane::SetJoined(bool joined) {
  if (joined) {
    if (std::exchange(said_unassigned_, false)) {
      spdlog::info("lane {}: group {} has assigned partitions after {}", number_, options_.group,
                   absl::FormatDuration(absl::Trunc(SteadyNow() - unassigned_since_, absl::Seconds(1))));
    }
    if (std::exchange(other_protocol_since_, absl::InfiniteFuture()) != absl::InfiniteFuture())
      SetWaiting("");
  } else if (joined_ || unassigned_since_ == absl::InfinitePast()) {
    unassigned_since_ = SteadyNow();
  }
  joined_ = joined;
}

void Lane::LookAtGroupWait() {
  if (joined_ || said_unassigned_ || SteadyNow() - unassigned_since_ < kSayUnassignedAfter) return;
  said_unassigned_ = true;
  spdlog::warn(
      "lane {}: waiting for group {} to assign partitions: after a crash the group waits for the member that "
      "is gone until its session times out, at most {} (session.timeout.ms){}",
      number_, options_.group, absl::FormatDuration(session_timeout_),
      options_.static_membership == StaticMembership::kNever
          ? "; with instance set, a restarted process takes its own place again at once"
          : "");
}

void Lane::MeetOtherProtocol(const std::string& why) {
  const std::string what = absl::StrCat(
      why, ": group ", options_.group,
      " has members that do not take assignment: ", cooperative_ ? "cooperative" : "eager",
      "; the protocol cannot change while one of them is in the group. First stop every instance, then start "
      "them all with the new assignment");
  const absl::Time now = SteadyNow();
  if (other_protocol_since_ == absl::InfiniteFuture()) {
    other_protocol_since_ = now;
    const std::string waiting = absl::StrCat(what, "; waiting ", absl::FormatDuration(session_timeout_),
                                             " (session.timeout.ms) in case they have died");
    spdlog::warn("lane {}: {}", number_, waiting);
    SetWaiting(waiting);
  } else if (now - other_protocol_since_ > session_timeout_ + kDeadMemberSlack) {
    fatal_ = absl::FailedPreconditionError(what);
  }
}

PartitionListPtr Lane::Assigned(const rd_kafka_topic_partition_list_t* partitions) const {
  rd_kafka_topic_partition_list_t* all = nullptr;
  rd_kafka_assignment(consumer_.get(), &all);
  const PartitionListPtr owned(all);
  PartitionListPtr assigned(rd_kafka_topic_partition_list_new(partitions->cnt));
  for (int i = 0; all != nullptr && i < partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& each = partitions->elems[i];
    if (rd_kafka_topic_partition_list_find(all, each.topic, each.partition) == nullptr) continue;
    rd_kafka_topic_partition_list_add(assigned.get(), each.topic, each.partition);
  }
  return assigned;
}

// librdkafka 2.0.2 is its own namesake: when the session has timed out, it may send a heartbeat without its
// member's name, which a broker answers as if another had come.
void Lane::MeetNamesake(const std::string& why) {
  const absl::Time now = SteadyNow();
  met_namesakes_ = now - std::exchange(last_namesake_, now) < kNamesakesInARow ? met_namesakes_ + 1 : 1;
  if (met_namesakes_ <= kMostNamesakes) {
    spdlog::warn("lane {}: {}; making the consumer anew", number_, why);
    wants_new_consumer_ = true;
    return;
  }
  fatal_ = absl::AlreadyExistsError(absl::StrCat(
      why, ": another joins group ", options_.group, " as ", InstanceName(),
      ", which is this lane's name by static_membership, again and again: give each process its own "
      "--instance"));
}

void Lane::RemakeConsumer() {
  if (open_) {
    const Outcome aborted = output_.Abort();
    FinishTransaction(/*committed=*/false);
    if (aborted == Outcome::kStopped) return LoseProducer();
  }
  rd_kafka_consumer_close(consumer_.get());  // which revokes what is left
  consumer_.reset();
  if (absl::Status opened = OpenConsumer(); !opened.ok()) {
    // Its properties were good when the lane started, so they are not to blame.
    fatal_ = absl::UnavailableError(
        absl::StrCat("lane ", number_, ": the consumer cannot be made anew: ", opened.message()));
  }
}

void Lane::Rejoin() {
  rd_kafka_unsubscribe(consumer_.get());
  if (absl::Status subscribed = Subscribe(); !subscribed.ok()) fatal_ = subscribed;
}

void Lane::Assign(const rd_kafka_topic_partition_list_t* partitions) {
  rd_kafka_t* consumer = consumer_.get();
  // As of this assignment, not of a later one: a lane that stalls over a rebalance must not be able to
  // commit, with the new generation, what it judged in the old one.
  const bool is_member = TakeGroupMetadata();
  if (open_) {
    // Cooperative: what was kept goes on under the new generation.
    if (is_member) {
      Commit();
    } else {
      GiveUp(output_.Abort());
    }
  }
  SetJoined(true);
  absl::Status prepared = fatal_;
  if (prepared.ok()) {
    prepared = is_member ? PrepareAssigned(partitions)
                         : absl::AbortedError("the group has moved on before the assignment came");
  }
  // A cooperative client takes these for given from now on, and would not offer them again.
  if (cooperative_ && absl::IsAborted(prepared)) wants_to_rejoin_ = true;
  const PartitionListPtr assigned(rd_kafka_topic_partition_list_new(partitions->cnt));
  for (int i = 0; prepared.ok() && i < partitions->cnt; ++i) {
    const OwnedPartition* owned = Find(partitions->elems[i].partition);
    if (owned == nullptr || owned->phase == Phase::kFailed) continue;
    rd_kafka_topic_partition_list_add(assigned.get(), options_.input.c_str(), owned->id)->offset =
        owned->next;
  }
  if (cooperative_) {
    const ErrorPtr error(rd_kafka_incremental_assign(consumer, assigned.get()));
    if (error != nullptr)
      spdlog::error("lane {}: assigning: {}", number_, rd_kafka_error_string(error.get()));
  } else {
    const rd_kafka_resp_err_t code = rd_kafka_assign(consumer, assigned.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      spdlog::error("lane {}: assigning: {}", number_, rd_kafka_err2str(code));
    }
  }
  if (!prepared.ok()) {
    spdlog::warn("lane {}: {}", number_, std::string(prepared.message()));
    if (!absl::IsAborted(prepared) && !absl::IsCancelled(prepared)) fatal_ = prepared;
  }
  Publish();
}

absl::Status Lane::PrepareAssigned(const rd_kafka_topic_partition_list_t* partitions) {
  const GroupState group(consumer_.get(), options_.input);
  int32_t count = topics_.partitions;
  for (int i = 0; i < partitions->cnt; ++i) count = std::max(count, partitions->elems[i].partition + 1);
  assigner_.SetPartitions(count);
  std::vector<CommittedOffset> committed;
  absl::Status asked = Await([&] {
    auto answer = group.Committed(count);
    if (answer.ok()) committed = std::move(*answer);
    return answer.status();
  });
  if (asked.ok() && !has_begun_) {
    asked = Await([&] { return CheckScope(options_, consumer_.get(), count); });
  }
  if (!asked.ok()) return asked;

  std::vector<OwnedPartition*> prepared_now, fresh;
  int begin = 0;
  for (int i = 0; i < partitions->cnt; ++i) {
    const int32_t partition = partitions->elems[i].partition;
    GroupState::Log log;
    const absl::Time give_up = SteadyNow() + kNewPartitionPatience;
    asked = Await([&] {
      auto answer = group.LogOf(partition);
      if (answer.ok()) log = *answer;
      const bool wait = absl::IsNotFound(answer.status()) && SteadyNow() < give_up;
      return wait ? absl::UnavailableError(answer.status().message()) : answer.status();
    });
    if (!asked.ok()) return asked;
    const CommittedOffset& there = committed[static_cast<size_t>(partition)];
    AskLogTimes(partition, there, log);
    const Uncommitted why = Assigner::WhyUncommitted(partition, committed, has_begun_);
    if (there.offset < 0 && why == Uncommitted::kNew) ++begin;
    auto owned = assigner_.Prepare(partition, there, log, why);
    LoadingEnds();
    if (!owned.ok()) return owned.status();
    prepared_now.push_back(owned->get());
    owned_[partition] = *std::move(owned);
  }
  asked = AwaitTotals(prepared_now);
  if (!asked.ok()) return asked;
  for (OwnedPartition* owned : prepared_now) {
    if (Assigner::NeedsFirstCommit(*owned, committed[static_cast<size_t>(owned->id)])) fresh.push_back(owned);
  }
  if (begin > 0) {
    spdlog::info(
        "lane {}: of {} of {} partitions of {} the group has committed nothing: it begins at their {}",
        number_, begin, partitions->cnt, options_.input, options_.start == Start::kLatest ? "end" : "start");
  }
  if (absl::Status begun = fresh.empty() ? absl::OkStatus() : CommitStart(fresh); !begun.ok()) return begun;
  has_begun_ = has_begun_ || partitions->cnt > 0;
  return absl::OkStatus();
}

absl::Status Lane::AwaitTotals(const std::vector<OwnedPartition*>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  const int32_t first = partitions.front()->id;
  const absl::Status restored = Await([&] {
    return RestoreTotals(options_, partitions, [&] { return GoOnLoading(first, "counter state"); });
  });
  LoadingEnds();
  return restored;
}

void Lane::AskLogTimes(int32_t partition, const CommittedOffset& committed, GroupState::Log& log) {
  if (!assigner_.NeedsLogTimes(committed, log)) return;
  heartbeat_.Beat();
  // The lane's own client is in the middle of its assignment.
  ClientErrors errors;
  auto client = MakeAskingClient(options_, errors);
  if (!client.ok()) return;
  std::vector<int64_t> from(static_cast<size_t>(partition) + 1, -1);
  from.back() = log.start;
  const auto first = AskTimes(client->get(), options_.input, from);
  heartbeat_.Beat();
  from.back() = committed.offset;
  const auto next = AskTimes(client->get(), options_.input, from);
  if (first.ok() && next.ok()) log.times = LogTimesOf(first->back(), next->back(), absl::Now());
}

absl::Status Lane::CommitStart(const std::vector<OwnedPartition*>& fresh) {
  const PartitionListPtr offsets = Offsets(fresh);
  while (!stop_.requested()) {
    if (absl::Status begun = output_.Begin(); !begun.ok()) return begun;
    switch (output_.Commit(offsets.get(), group_metadata_.get(), consumer_.get())) {
      case Outcome::kCommitted:
        for (OwnedPartition* owned : fresh) owned->in_group = owned->committed;
        return absl::OkStatus();
      case Outcome::kStopped:
        LoseProducer();
        return fatal_.ok() ? absl::CancelledError("stopped before the starting offsets were committed")
                           : fatal_;
      case Outcome::kAborted:
      case Outcome::kUnknown:
        break;
    }
    if (IsGroupMovedOn(output_.last_error_code()) || rd_kafka_assignment_lost(consumer_.get()) != 0) break;
    if (const auto like_it = refused_starts_.Next()) {
      spdlog::warn("lane {}: committing where partitions start: {}{}", number_, output_.last_error(),
                   *like_it);
    }
    if (stop_.WaitFor(kAskAgainAfter)) break;
  }
  for (const OwnedPartition* owned : fresh) owned_.erase(owned->id);
  return absl::AbortedError("the group has moved on before the starting offsets were committed");
}

void Lane::Revoke(const rd_kafka_topic_partition_list_t* partitions, bool lost) {
  rd_kafka_t* consumer = consumer_.get();
  if (lost && partitions->cnt > 0) {
    spdlog::warn(
        "lane {}: the group took {} partition{} of {} away before they were given back; what was not "
        "committed "
        "of them is replayed by the next owner",
        number_, partitions->cnt, partitions->cnt == 1 ? "" : "s", options_.input);
  }
  // The group is in its next generation already, and nobody else has any of the partitions until we say that
  // we let them go: what was judged is still ours to commit. (Lost is what the group took away unasked.)
  if (cooperative_ && !lost) lost = !TakeGroupMetadata();
  if (open_) {
    if (lost) {
      GiveUp(output_.Abort());
    } else {
      Commit();
    }
  }
  for (int i = 0; i < partitions->cnt; ++i) {
    const auto found = owned_.find(partitions->elems[i].partition);
    if (found == owned_.end()) continue;
    DropSnapshot(*found->second);
    Unhold(*found->second);
    if (found->second->phase != Phase::kFailed) kept_.Put(std::move(found->second));
    owned_.erase(found);
  }
  // What was polled of them and not judged yet is the next owner's.
  std::erase_if(batch_, [this](const MessagePtr& message) {
    return message->rkt != nullptr && Find(message->partition) == nullptr;
  });
  if (cooperative_) {
    // The client refuses all of them, and goes on waiting, if one was never assigned: what must not be read.
    const ErrorPtr error(rd_kafka_incremental_unassign(consumer, Assigned(partitions).get()));
    if (error != nullptr)
      spdlog::warn("lane {}: unassigning: {}", number_, rd_kafka_error_string(error.get()));
  } else {
    rd_kafka_assign(consumer, nullptr);
  }
  // To be without partitions until the next assignment is not to be at their end.
  if (owned_.empty()) SetJoined(false);
  Publish();
}

void Lane::Recheck(OwnedPartition& owned) {
  spdlog::warn(
      "{}: the log differs from the one that the filter was made of (truncated, or made anew): the "
      "filter is rebuilt",
      Name(owned));
  if (owned.snapshot) assigner_.Refuse(*owned.snapshot);
  PrepareAnew(owned);
}

void Lane::LoseUnread(OwnedPartition& owned, const std::string& why) {
  Unhold(owned);
  // Below the committed offset it is history that is short, and nothing was unread.
  const bool is_history = owned.phase == Phase::kChecking || owned.phase == Phase::kRestoring;
  if (is_history || options_.on_unread_deleted == OnUnreadDeleted::kContinue) {
    spdlog::warn("{}: offset {} is not in the log any more; going on where the log starts", why, owned.next);
    if (open_) Commit();  // what was carried out before is to be out before the partition begins anew
    PrepareAnew(owned);
    if (owned.phase != Phase::kFailed) AssignAnew(owned);
    return;
  }
  owned.phase = Phase::kFailed;
  owned.problem = absl::StrCat(why, ": offset ", owned.next,
                               " is not in the log any more: records were deleted unread, or the topic was "
                               "made anew; restart to see which, reset the group's offsets, or set "
                               "on_unread_deleted to continue");
  spdlog::error("{}", owned.problem);
}

void Lane::StopOnOtherLog(OwnedPartition& owned) {
  const LogMark judged = *std::exchange(owned.to_compare, std::nullopt);
  owned.phase = Phase::kFailed;
  owned.problem = absl::StrCat(
      Name(owned), " offset ", judged.offset,
      ": the log has another record here than the group has judged, or "
      "none: it was truncated (an unclean leader election, say) or recreated, and has grown again. Records "
      "before offset ",
      owned.committed,
      " may be new and not judged. Reset the group's offsets with "
      "kafka-consumer-groups.sh --reset-offsets: to ",
      owned.committed,
      " to go on without them; further back to judge them, where all that is read again is "
      "written to the output once more");
  spdlog::error("{}", owned.problem);
}

void Lane::AssignAnew(const OwnedPartition& owned) {
  rd_kafka_t* consumer = consumer_.get();
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(owned_.size())));
  const auto add = [&](const OwnedPartition& each) {
    rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), each.id)->offset = each.next;
  };
  if (cooperative_) {
    add(owned);
    ErrorPtr error(rd_kafka_incremental_unassign(consumer, list.get()));
    if (error == nullptr) error.reset(rd_kafka_incremental_assign(consumer, list.get()));
    if (error != nullptr) spdlog::error("{}: assigning: {}", Name(owned), rd_kafka_error_string(error.get()));
    return;
  }
  // What is fetched of the others is fetched again, and ignored where it was judged meanwhile.
  for (const auto& [id, each] : owned_) {
    if (each->phase != Phase::kFailed) add(*each);
  }
  const rd_kafka_resp_err_t code = rd_kafka_assign(consumer, list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    spdlog::error("{}: assigning: {}", Name(owned), rd_kafka_err2str(code));
}

void Lane::PrepareAnew(OwnedPartition& owned) {
  const GroupState group(consumer_.get(), options_.input);
  std::unique_ptr<OwnedPartition> rebuilt;
  DropSnapshot(owned);
  owned.filter.reset();  // its memory goes back before the new one asks for some
  const absl::Status asked = Await([&] {
    auto committed = group.Committed(owned.id + 1);
    if (!committed.ok()) return committed.status();
    auto log = group.LogOf(owned.id);
    if (!log.ok()) return log.status();
    AskLogTimes(owned.id, committed->back(), *log);
    auto prepared = assigner_.Prepare(owned.id, committed->back(), *log, Uncommitted::kMadeAnew);
    LoadingEnds();
    if (prepared.ok()) rebuilt = std::move(*prepared);
    return prepared.status();
  });
  if (!asked.ok()) {
    if (!absl::IsCancelled(asked)) fatal_ = asked;
    owned.phase = Phase::kFailed;
    owned.problem = std::string(asked.message());
    return;
  }
  rebuilt->counts = owned.counts;
  rebuilt->unread_deleted += owned.unread_deleted;
  owned = std::move(*rebuilt);
  if (const absl::Status counted = AwaitTotals({&owned}); !counted.ok()) {
    if (!absl::IsCancelled(counted)) fatal_ = counted;
    owned.phase = Phase::kFailed;
    owned.problem = std::string(counted.message());
  }
  if (owned.phase != Phase::kFailed) Seek(owned);
}

absl::Status Lane::Await(const std::function<absl::Status()>& ask) {
  bool said = false;
  for (;;) {
    heartbeat_.Beat();
    absl::Status status = ask();
    if (!absl::IsUnavailable(status)) {
      if (said) SetWaiting("");
      return status;
    }
    SetWaiting(std::string(status.message()));
    if (!said) spdlog::warn("lane {}: waiting: {}", number_, std::string(status.message()));
    said = true;
    if (stop_.WaitFor(kAskAgainAfter)) return absl::CancelledError(status.message());
  }
}

void Lane::Seek(OwnedPartition& owned) {
  owned.unreadable.reset();
  SeekTo(owned, owned.next);
}

void Lane::SeekTo(OwnedPartition& owned, int64_t offset) {
  owned.end_of_log = 0;  // it is not there any more, and will be told again
  if (polling_) {
    // In a rebalance: what has been polled is stale, and what will be polled is not.
    std::erase_if(batch_, [&](const MessagePtr& message) {
      return message->rkt != nullptr && message->partition == owned.id;
    });
  } else {
    owned.sought_in_batch = batch_number_;
  }
  const TopicPtr topic(rd_kafka_topic_new(consumer_.get(), options_.input.c_str(), nullptr));
  // Without waiting: messages fetched before are outdated from the call on, and dropped by the client.
  const rd_kafka_resp_err_t code = rd_kafka_seek(topic.get(), owned.id, offset, 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}: seeking offset {}: {}", Name(owned), offset, rd_kafka_err2str(code));
  }
}

bool Lane::HasOutput(OwnedPartition& owned) {
  if (owned.id < output_partitions_) return true;
  const auto count = output_.CountPartitions();
  // If the broker does not say, the transaction will find out.
  if (!count.ok() && !absl::IsNotFound(count.status())) return true;
  output_partitions_ = count.value_or(0);
  if (owned.id < output_partitions_) return true;
  owned.phase = Phase::kHeld;
  owned.problem = absl::StrCat(
      Name(owned), " is held at offset ", owned.next, ": ",
      count.ok() ? absl::StrCat("records keep their partition, and the topics that are written to have only ",
                                output_partitions_,
                                "; add partitions there, and it goes on (kafka-topics.sh "
                                "--alter --partitions ",
                                owned.id + 1, ")")
                 : absl::StrCat(count.status().message(), "; create it, and it goes on"));
  spdlog::error("{}", owned.problem);
  SetPaused(owned, true);
  next_look_at_held_ = SteadyNow() + kLookAtHeldEvery;
  return false;
}

void Lane::LookAtHeld() {
  if (SteadyNow() < next_look_at_held_) return;
  next_look_at_held_ = absl::InfiniteFuture();
  absl::StatusOr<int32_t> count = absl::UnknownError("not asked yet");
  for (auto& [id, owned] : owned_) {
    if (owned->phase != Phase::kHeld) continue;
    if (absl::IsUnknown(count.status())) count = output_.CountPartitions();
    if (!count.ok() || id >= *count) {
      next_look_at_held_ = SteadyNow() + kLookAtHeldEvery;
      continue;
    }
    output_partitions_ = *count;
    spdlog::info("{}: goes on at offset {}: the output has its partition", Name(*owned), owned->next);
    Unhold(*owned);
    Seek(*owned);
  }
}

void Lane::Unhold(OwnedPartition& owned) {
  if (owned.paused) SetPaused(owned, false);
  if (owned.phase != Phase::kHeld) return;
  owned.phase = Phase::kActive;
  owned.problem.clear();
}

void Lane::LookForInput() {
  const absl::Time now = SteadyNow();
  if (!owned_.empty() || now < next_look_for_input_) {
    if (!owned_.empty()) next_look_for_input_ = now + kLookForInputEvery;
    return;
  }
  next_look_for_input_ = now + kLookForInputEvery;
  const bool gone =
      absl::IsNotFound(kafka::CountPartitions(consumer_.get(), options_.input, kLookTimeoutMs).status());
  if (gone == input_is_gone_) return;
  input_is_gone_ = gone;
  if (!gone) return SetWaiting("");
  const std::string why =
      absl::StrCat("input topic ", options_.input,
                   " is not there any more: what was read of it is out and stays; create it "
                   "anew and it is read from its start, or stop");
  spdlog::error("lane {}: {}", number_, why);
  SetWaiting(why);
}

void Lane::SetPaused(OwnedPartition& owned, bool paused) {
  owned.paused = paused;
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), owned.id);
  const rd_kafka_resp_err_t code = paused ? rd_kafka_pause_partitions(consumer_.get(), list.get())
                                          : rd_kafka_resume_partitions(consumer_.get(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    spdlog::warn("{}: {}: {}", Name(owned), paused ? "pausing" : "resuming", rd_kafka_err2str(code));
  }
}

OwnedPartition* Lane::Find(int32_t partition) {
  const auto found = owned_.find(partition);
  return found == owned_.end() ? nullptr : found->second.get();
}

std::string Lane::Name(const OwnedPartition& owned) const {
  return absl::StrCat(options_.input, "-", owned.id);
}

PartitionListPtr Lane::Offsets(const std::vector<OwnedPartition*>& partitions) const {
  PartitionListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const OwnedPartition* owned : partitions) {
    rd_kafka_topic_partition_t* element =
        rd_kafka_topic_partition_list_add(list.get(), options_.input.c_str(), owned->id);
    element->offset = owned->next;
    const std::string metadata = owned->Metadata(id_fingerprint_, options_).ToString();
    element->metadata = rd_kafka_mem_malloc(consumer_.get(), metadata.size());
    std::copy(metadata.begin(), metadata.end(), static_cast<char*>(element->metadata));
    element->metadata_size = metadata.size();
  }
  return list;
}

std::vector<OwnedPartition*> Lane::InTransaction() {
  std::vector<OwnedPartition*> partitions;
  for (auto& [id, owned] : owned_) {
    if (owned->in_transaction()) partitions.push_back(owned.get());
  }
  return partitions;
}

void Lane::SetWaiting(const std::string& why) {
  const std::lock_guard<std::mutex> lock(report_mutex_);
  waiting_ = why;
}

bool Lane::AtEnd() const {
  if (!joined_ || open_) return false;
  for (const auto& [id, owned] : owned_) {
    // The daemon says so when it ends.
    if (owned->phase == Phase::kFailed || owned->phase == Phase::kHeld) continue;
    if (owned->phase != Phase::kActive) return false;
    const auto index = static_cast<size_t>(id);
    if (index >= topics_.end_offsets.size()) continue;
    // The last offsets may be control records, which no one sees but as the end of the partition.
    if (std::max(owned->committed, owned->end_of_log) < topics_.end_offsets[index]) return false;
  }
  return true;
}

void Lane::SayWhenCaughtUp() {
  const bool has_all = !owned_.empty() && absl::c_all_of(owned_, [](const auto& each) {
    const OwnedPartition& owned = *each.second;
    return owned.phase == Phase::kActive && std::max(owned.committed, owned.end_of_log) >= owned.log_end;
  });
  if (has_all && !caught_up_) {
    spdlog::info(
        "lane {}: caught up with {}: all that its {} partition{} held when they were assigned is out",
        number_, options_.input, owned_.size(), owned_.size() == 1 ? "" : "s");
  }
  caught_up_ = has_all;
}

void Lane::Publish() {
  next_publish_ = SteadyNow() + kPublishEvery;
  SayWhenCaughtUp();
  if (counter_watch_ != nullptr && counter_watch_->Wants(number_)) counter_watch_->Answer(number_, owned_);
  LaneReport report;
  report.lane = number_;
  report.joined = joined_;
  report.unassigned_for = joined_ ? absl::ZeroDuration() : SteadyNow() - unassigned_since_;
  report.session_timeout = session_timeout_;
  report.waiting = WhyNothingIsCommitted();
  if (const std::string why = WhyItStands(); report.waiting.empty()) report.waiting = why;
  report.at_end = published_at_end_ = AtEnd();
  report.without_id = ids_.nearly_none();
  report.commits = commits_;
  report.totals = totals_;
  report.aborts = aborts_;
  report.fences = output_.fences();
  report.histograms = figures_.histograms();
  RenewStatus(owned_, kRenewFor, &next_renewed_);
  for (const auto& [id, owned] : owned_) {
    PartitionReport partition;
    partition.partition = id;
    partition.phase = owned->phase;
    partition.problem = owned->problem;
    partition.counts = owned->counts;
    partition.committed = owned->committed;
    partition.position = std::max(owned->next, owned->end_of_log);
    int64_t low = 0;
    if (consumer_ != nullptr) {
      rd_kafka_get_watermark_offsets(consumer_.get(), options_.input.c_str(), id, &low,
                                     &partition.high_watermark);
    }
    // Of what must not be read the client does not know it.
    if (owned->phase == Phase::kFailed) {
      partition.high_watermark = std::max(partition.high_watermark, owned->log_end);
    }
    partition.restore_from = owned->restore.from();
    partition.restore_to = owned->restore.to();
    const bool is_restoring = owned->phase == Phase::kRestoring || owned->phase == Phase::kChecking;
    partition.restore_left = is_restoring ? owned->restore.left() : 0;
    partition.restore_time_left =
        is_restoring ? owned->restore.time_left().value_or(absl::InfiniteDuration()) : absl::ZeroDuration();
    if (owned->snapshot) partition.snapshot_offset = owned->snapshot->offset;
    partition.unread_deleted = owned->unread_deleted;
    for (const CounterSums& sums : owned->sums) {
      partition.counted_keys += static_cast<int64_t>(sums.totals().size());
    }
    partition.short_history = owned->short_history(options_.stage.horizon);
    partition.keys_moved = owned->keys_moved(options_.stage.horizon);
    if (owned->points) partition.restart = owned->points->oldest().offset;
    partition.filter = owned->status;
    WarnAtMemoryLimit(*owned, partition);
    report.partitions.push_back(std::move(partition));
  }
  auto published = std::make_shared<const LaneReport>(std::move(report));
  const std::lock_guard<std::mutex> lock(report_mutex_);
  report_.swap(published);
  published_at_ = SteadyNow();
}

LaneReport Lane::Report() const {
  const ClientReport consumer = statistics_.Report();
  const ClientReport producer = output_.statistics().Report();
  std::shared_ptr<const LaneReport> published;
  std::string waiting;
  absl::Duration age;
  {
    // The lane waits for this lock: the copy, of a thousand partitions perhaps, is made outside.
    const std::lock_guard<std::mutex> lock(report_mutex_);
    published = report_;
    waiting = waiting_;
    age = SteadyNow() - published_at_;
  }
  LaneReport report = *published;
  // It publishes whenever it goes round: it has been within one round since.
  if (running_ && report.waiting.empty() && waiting.empty() && age > StallPatience()) {
    report.waiting =
        absl::StrCat("no progress for ", absl::FormatDuration(absl::Trunc(age, absl::Seconds(1))),
                     ": one batch or one call to the brokers has taken so long");
  }
  if (!waiting.empty()) report.waiting = std::move(waiting);
  report.consumer = consumer;
  report.producer = producer;
  return report;
}

}  // namespace lethe::kafka
