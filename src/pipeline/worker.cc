#include "src/pipeline/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace lethe {
namespace {

// Records that are judged together: enough to hide the latency of memory, and to take each lock rarely.
constexpr size_t kBatch = 512;
// A batch hardly exceeds this: the worker copies its counter keys, and writes all of it before it looks at
// the time again.
constexpr size_t kBatchBytes = size_t{1} << 20;
// Bounds the wait, so that the worker sees a request to stop within a long commit interval.
constexpr absl::Duration kIdleWait = absl::Milliseconds(100);
// The same while a schema or news of other routers is expected, after which there is more to read.
constexpr absl::Duration kShortWait = absl::Milliseconds(5);

}  // namespace

Worker::Worker(const DaemonOptions& options, const Topics& topics, WorkerState& state, Tasks& tasks,
               Source& source, Sink& sink, Group& group, Snapshots* snapshots)
    : state_(state),
      tasks_(tasks),
      source_(source),
      sink_(sink),
      group_(group),
      held_(topics.least_partitions, source, sink, options.record.schemas),
      snapshots_(options, IdFingerprint(options, topics.output_partitions), snapshots),
      warnings_(options, state.lane, topics.partitions),
      transactions_(options, topics, state, source, tasks, sink, held_, snapshots_, warnings_),
      pace_(options, state, tasks, source),
      phases_(options, topics, state, source, held_, transactions_, group, warnings_, pace_) {}

void Worker::Run() {
  if (absl::Status opened = Open(); !opened.ok()) {
    if (!absl::IsCancelled(opened)) state_.fatal = opened;
    return;
  }
  while (!state_.ends()) Step();
  Close();
}

absl::Status Worker::Open() {
  // Before any record is read: this fences every earlier owner of the transactional id.
  if (absl::Status opened = transactions_.Open(); !opened.ok()) return opened;
  return source_.Open();
}

void Worker::Step() {
  state_.heartbeat.Beat();
  const absl::Duration longest = pace_.is_blocked() || held_.ExpectsSchema() ? kShortWait : kIdleWait;
  source_.Poll(std::clamp(transactions_.time_left(), absl::ZeroDuration(), longest),
               std::min(kBatch, transactions_.room_records()),
               std::min(kBatchBytes, transactions_.room_bytes()));
  const bool processed = Process().ok();
  if (!state_.fatal.ok()) return;  // Close() aborts what is open
  const bool failed = sink_.Poll() != Failure::kNone;
  if (transactions_.is_open() && (failed || !processed)) {
    transactions_.Abort();  // half a batch must not be committed
  } else if (transactions_.IsDue() || (transactions_.is_open() && pace_.is_blocked())) {
    transactions_.Commit();
  }
  if (!state_.fatal.ok()) return;
  held_.Look(tasks_);
  pace_.Look();
  group_.Look();
}

absl::Status Worker::Process() {
  transactions_.figures().BatchRead(source_.batch().size());
  const absl::Cleanup clear = [this] { source_.ClearBatch(); };
  const std::vector<InputRecord>& batch = source_.batch();
  for (size_t begin = 0; begin < batch.size() && state_.fatal.ok();) {
    if (batch[begin].event != nullptr) {
      HandleEvent(batch[begin++]);
      continue;
    }
    size_t end = begin + 1;
    while (end < batch.size() && batch[end].event == nullptr &&
           batch[end].partition == batch[begin].partition) {
      ++end;
    }
    Task* task = Find(tasks_, batch[begin].partition);
    if (task != nullptr && task->phase != Phase::kFailed && !source_.IsStale(*task)) {
      const RecordRun run = absl::MakeConstSpan(batch).subspan(begin, end - begin);
      if (absl::Status done = phases_.Advance(*task, run); !done.ok()) {
        source_.ReadAgainFrom(begin, tasks_);
        return done;
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

void Worker::HandleEvent(const InputRecord& at) {
  const SourceEvent& event = *at.event;
  Task* task = Find(tasks_, at.partition);
  switch (event.kind) {
    case SourceEvent::Kind::kAssigned:
      return group_.Assign(event.partitions);
    case SourceEvent::Kind::kRevoked:
    case SourceEvent::Kind::kLost:
      return group_.Revoke(event.partitions, event.kind == SourceEvent::Kind::kLost);
    case SourceEvent::Kind::kEnd:
      if (task != nullptr && !source_.IsStale(*task)) phases_.ReachEnd(*task, at);
      return;
    case SourceEvent::Kind::kUnreadable:
      if (task != nullptr && !source_.IsStale(*task)) phases_.MeetUnreadable(*task, at.offset, event.why);
      return;
    case SourceEvent::Kind::kUnreadDeleted:
      if (task != nullptr) group_.LoseUnread(*task, event.why);
      return;
    case SourceEvent::Kind::kError:
      return group_.MeetError(event);
  }
}

void Worker::Close() {
  // Before it leaves: in the middle of a rebalance a commit may take long.
  transactions_.End(state_.fatal.ok());
  // While partitions are still owned.
  state_.leaves_unfinished = transactions_.IsUnfinished();
  state_.only_leaves = state_.fatal.ok() && !state_.leaves_unfinished;
  group_.Release();
  source_.Leave();
}

}  // namespace lethe
