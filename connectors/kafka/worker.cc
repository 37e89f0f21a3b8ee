#include "connectors/kafka/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// Messages that are judged together: enough to hide the latency of memory, and to take each lock rarely.
constexpr size_t kBatch = 512;
// No batch takes much more: while it is judged there are copies of what it counts, and all of it is written
// before the worker looks at the time again.
constexpr size_t kBatchBytes = size_t{1} << 20;
// Never longer, so that a request to stop is seen also while a long interval's transaction is open.
constexpr absl::Duration kIdleWait = absl::Milliseconds(100);

}  // namespace

Worker::Worker(const DaemonOptions& options, int lane, const Topics& topics, DedupStage& stage,
               KeptPartitions& kept, Snapshots* snapshots, const LogEnds& ends, const StopFlag& stop)
    : options_(options),
      state_(lane, stop),
      tuning_(options),
      source_(options, lane,
              {[this](const PartitionList& partitions) {
                 ownership_.Assign(partitions);
                 publisher_.Publish();
               },
               [this](const PartitionList& partitions, bool lost) {
                 ownership_.Revoke(partitions, lost);
                 publisher_.Publish();
               }}),
      output_(options, lane, stop, state_.heartbeat,
              [this](const std::string& why) { state_.SetWaiting(why); }),
      held_(topics.least_partitions, source_, output_),
      snapshots_(options, IdFingerprint(options, topics.output_partitions), snapshots),
      warnings_(options, lane, topics.partitions),
      transactions_(options, topics, tuning_, state_, source_, owned_, output_, held_, snapshots_, warnings_),
      membership_(options, state_, source_),
      ownership_(options, topics, stage, kept, snapshots, state_, source_, owned_, membership_, held_,
                 snapshots_, transactions_),
      phases_(options, topics, tuning_, state_, source_, held_, transactions_, ownership_, warnings_),
      input_watch_(options, topics.partitions, state_, source_, owned_, ownership_.assigner()),
      publisher_(options, topics, tuning_, ends, state_, source_, owned_, membership_, transactions_, output_,
                 warnings_) {}

absl::Status Worker::Run() {
  state_.heartbeat.Beat();
  publisher_.Publish();
  state_.is_running = true;
  const absl::Cleanup ended = [this] { state_.is_running = false; };
  if (absl::Status opened = Open(); !opened.ok()) {
    return absl::IsCancelled(opened) ? absl::OkStatus() : opened;
  }
  while (!state_.ends()) Step();
  Close();
  publisher_.Publish();
  return state_.fatal;
}

absl::Status Worker::Open() {
  // Before any record is read: this fences every earlier owner of the transactional id.
  if (absl::Status opened = transactions_.Open(); !opened.ok()) return opened;
  membership_.SetJoined(false);
  return source_.Open();
}

void Worker::Step() {
  state_.heartbeat.Beat();
  if (!transactions_.is_open()) TakeTuning();
  source_.Poll(std::clamp(transactions_.time_left(), absl::ZeroDuration(), kIdleWait),
               std::min(kBatch, transactions_.room_records()),
               std::min(kBatchBytes, transactions_.room_bytes()));
  const bool processed = Process().ok();
  if (!state_.fatal.ok()) return;  // Close() aborts what is open
  const bool failed = output_.Poll() != Failure::kNone;
  if (transactions_.is_open() && (failed || !processed)) {
    transactions_.Abort();  // a batch that was carried out in part must not be committed
  } else if (transactions_.IsDue()) {
    transactions_.Commit();
  }
  if (state_.fatal.ok() && membership_.TakeNewConsumer()) RecreateConsumer();
  if (!state_.fatal.ok()) return;  // there may be no client to ask anything
  if (ownership_.TakeRejoin()) state_.fatal = source_.Rejoin();
  membership_.LookAtWait();
  held_.Look(owned_);
  input_watch_.Look();
  if (!publisher_.IsDue()) return;
  // Of all lanes: what this one keeps, another's filter may need.
  ownership_.assigner().GiveUpForMemory(SteadyNow());
  publisher_.Publish();
}

absl::Status Worker::Process() {
  transactions_.figures().BatchRead(source_.batch().size());
  const absl::Cleanup clear = [this] {
    source_.ClearBatch();
    phases_.GiveBack();
  };
  const Messages& batch = source_.batch();
  for (size_t begin = 0; begin < batch.size() && state_.fatal.ok();) {
    if (batch[begin]->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      HandleEvent(*batch[begin++]);
      continue;
    }
    size_t end = begin + 1;
    while (end < batch.size() && batch[end]->err == RD_KAFKA_RESP_ERR_NO_ERROR &&
           batch[end]->partition == batch[begin]->partition) {
      ++end;
    }
    OwnedPartition* owned = Find(owned_, batch[begin]->partition);
    if (owned != nullptr && owned->phase != Phase::kFailed && !source_.IsStale(*owned)) {
      const MessageRun run = absl::MakeConstSpan(batch).subspan(begin, end - begin);
      if (absl::Status done = phases_.Advance(*owned, run); !done.ok()) {
        source_.ReadAgainFrom(begin, owned_);
        return done;
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

void Worker::HandleEvent(const rd_kafka_message_t& event) {
  OwnedPartition* owned = event.rkt == nullptr ? nullptr : Find(owned_, event.partition);
  const bool is_end = event.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
  if (is_end || (owned != nullptr && Phases::IsUnreadable(event.err))) {
    if (owned == nullptr || source_.IsStale(*owned)) return;  // as the batch's records are
    if (is_end) return phases_.ReachEnd(*owned, event.offset);
    return phases_.MeetUnreadable(*owned, event.offset, rd_kafka_message_errstr(&event));
  }
  const std::string why = source_.Describe(event);
  if (event.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && owned != nullptr) {
    return ownership_.LoseUnread(*owned, why);
  }
  membership_.MeetError(event, why);
}

void Worker::TakeTuning() {
  if (!tuning_.Take()) return;
  transactions_.writer().SetPolicies(tuning_.current().policies);
  // Those that stand in front of a record by policy ask the new one.
  for (auto& [id, owned] : owned_) {
    if (!std::exchange(owned->stopped_by_policy, false)) continue;
    owned->phase = Phase::kActive;
    owned->problem.clear();
    owned->unreadable_times = 0;
    if (owned->paused) source_.SetPaused(*owned, false);
    spdlog::info("{}: goes on at offset {}, by the policies as they are now", source_.Name(*owned),
                 owned->next);
    source_.Seek(*owned);
  }
}

void Worker::RecreateConsumer() {
  if (!transactions_.AbortForNewConsumer()) return;
  source_.Close();  // which revokes what is left
  membership_.SetJoined(false);
  if (absl::Status opened = source_.Open(); !opened.ok()) {
    // Its properties were good when the worker started, so they are not to blame.
    state_.fatal = absl::UnavailableError(
        absl::StrCat("lane ", state_.lane, ": the consumer cannot be made anew: ", opened.message()));
  }
}

void Worker::Close() {
  // Not in the revocation that closing brings: in the middle of a rebalance that may take long.
  transactions_.End(state_.fatal.ok());
  // Asked before it closes, after which nothing is owned any more.
  state_.leaves_unfinished = transactions_.IsUnfinished();
  state_.only_leaves = state_.fatal.ok() && !state_.leaves_unfinished;
  if (source_.is_open()) source_.Leave();
  // What that has not revoked: a client that has failed for good revokes nothing.
  for (auto& [id, owned] : owned_) snapshots_.Drop(*owned);
}

}  // namespace lethe::kafka
