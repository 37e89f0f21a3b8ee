#include "src/pipeline/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

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

bool IsActive(const Tasks::value_type& task) { return task.second->phase() == Phase::kActive; }

}  // namespace

Worker::Worker(const Workplace& place)
    : state_(place.state),
      tasks_(place.tasks),
      source_(place.source),
      sink_(place.sink),
      all_flows_(place.shared.flows),
      flows_(place),
      held_(place, flows_),
      snapshots_(state_.clock),
      transactions_(place, flows_, held_, snapshots_),
      pace_(place),
      membership_(place),
      ownership_(place, membership_, held_, snapshots_, transactions_),
      input_watch_(place, ownership_),
      publisher_(place, flows_, membership_, transactions_, pace_, input_watch_),
      phases_(place, flows_, held_, transactions_, ownership_, pace_) {}

void Worker::Run() {
  state_.heartbeat.Beat();
  state_.is_running = true;
  const absl::Cleanup ended = [this] {
    state_.is_running = false;
    publisher_.Publish();
  };
  if (absl::Status opened = Open(); !opened.ok()) {
    if (!absl::IsCancelled(opened)) state_.fatal = opened;
    return;
  }
  while (!state_.ends()) Step();
  Close();
}

absl::Status Worker::Open() {
  membership_.SetJoined(false);
  publisher_.Publish();
  // Before any record is read: this fences every earlier owner of the transactional id.
  if (absl::Status opened = transactions_.Open(); !opened.ok()) return opened;
  subscribed_ = all_flows_.size();
  return source_.Open();
}

void Worker::Step() {
  state_.heartbeat.Beat();
  const absl::Duration longest = pace_.is_blocked() || held_.ExpectsSchema() ? kShortWait : kIdleWait;
  size_t records = std::min(kBatch, transactions_.room_records());
  // A replay writes nothing: what made the last transactions small must not make it slow.
  if (records < kBatch && std::none_of(tasks_.begin(), tasks_.end(), IsActive)) records = kBatch;
  source_.Poll(std::clamp(transactions_.time_left(), absl::ZeroDuration(), longest), records,
               std::min(kBatchBytes, transactions_.room_bytes()));
  const bool is_drained = source_.batch().size() < records;
  const bool processed = Process().ok();
  if (!state_.fatal.ok()) return;  // Close() aborts what is open
  const bool failed = sink_.Poll() != Failure::kNone;
  if (transactions_.is_open() && (failed || !processed)) {
    transactions_.Abort();  // half a batch must not be committed
  } else if (transactions_.IsDue(is_drained) || (transactions_.is_open() && pace_.is_blocked())) {
    transactions_.Commit();
  }
  HandlePostponed();
  if (!state_.fatal.ok()) return;
  held_.Look(tasks_);
  pace_.Look();
  Look();
}

void Worker::Look() {
  if (sink_.NeedsNewMember()) {
    spdlog::info(
        "lane {}: the brokers did not answer a commit of offsets and may apply it late: rejoining the group "
        "as another member",
        state_.lane);
    Reopen();
  } else if (membership_.TakeReopen()) {
    Reopen();
  }
  if (!state_.fatal.ok()) return;  // there may be no source to ask anything
  if (const int32_t flows = all_flows_.size(); flows > std::exchange(subscribed_, flows)) {
    state_.fatal = source_.Resubscribe();
  }
  if (ownership_.TakeRejoin()) state_.fatal = source_.Rejoin();
  ownership_.LookForMemory();
  input_watch_.Look();
  if (all_flows_.size() > 0 && !input_watch_.AreAllAbsent()) membership_.LookAtWait();
  if (!publisher_.IsDue()) return;
  // A filter of any lane may need the memory of one that this lane keeps.
  ownership_.GiveUpForMemory();
  publisher_.Publish();
}

void Worker::Reopen() {
  if (!transactions_.AbortForReopening()) return;
  ownership_.ReleaseAll();
  if (absl::Status opened = source_.Reopen(); !opened.ok()) {
    // Its properties were good when the worker started, so they are not to blame.
    state_.fatal = absl::UnavailableError(
        absl::StrCat("lane ", state_.lane, ": the consumer cannot be recreated: ", opened.message()));
  }
  sink_.OnNewMember();
  membership_.SetJoined(false);
}

absl::Status Worker::Process() {
  const std::vector<InputRecord>& batch = source_.batch();
  const absl::Cleanup clear = [this] { source_.ClearBatch(); };
  const auto records = std::count_if(batch.begin(), batch.end(),
                                     [](const InputRecord& each) { return each.event == nullptr; });
  transactions_.figures().BatchRead(static_cast<size_t>(records));
  for (size_t begin = 0; begin < batch.size() && state_.fatal.ok();) {
    if (batch[begin].event != nullptr) {
      HandleEvent(batch[begin++]);
      continue;
    }
    size_t end = begin + 1;
    while (end < batch.size() && batch[end].event == nullptr && batch[end].from() == batch[begin].from()) {
      ++end;
    }
    Task* task = Find(tasks_, batch[begin].from());
    input_watch_.NoteRead(batch[begin].flow);
    if (task != nullptr && task->phase() != Phase::kFailed && !source_.IsStale(*task)) {
      const RecordRun run = absl::MakeConstSpan(batch).subspan(begin, end - begin);
      if (absl::Status done = phases_.Advance(*task, run); !done.ok()) {
        source_.ReadAgainFrom(begin, tasks_);
        PostponeEvents(end);
        return done;
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

void Worker::PostponeEvents(size_t begin) {
  const std::vector<InputRecord>& batch = source_.batch();
  for (size_t i = begin; i < batch.size(); ++i) {
    const SourceEvent* const event = batch[i].event;
    // After a seek the source says again where a log ends, and which batch cannot be read.
    if (event == nullptr || event->kind == SourceEvent::Kind::kEnd ||
        event->kind == SourceEvent::Kind::kUnreadable) {
      continue;
    }
    postponed_.emplace_back(batch[i], *event);
  }
}

// Half a batch would be committed if this came before the abort.
void Worker::HandlePostponed() {
  for (auto& [at, event] : std::exchange(postponed_, {})) {
    if (!state_.fatal.ok()) return;
    at.event = &event;
    HandleEvent(at);
  }
}

void Worker::HandleEvent(const InputRecord& at) {
  const SourceEvent& event = *at.event;
  Task* task = Find(tasks_, at.from());
  switch (event.kind) {
    case SourceEvent::Kind::kAssigned:
      ownership_.Assign(event.partitions);
      return publisher_.Publish();
    case SourceEvent::Kind::kRevoked:
    case SourceEvent::Kind::kLost:
      ownership_.Revoke(event.partitions, event.kind == SourceEvent::Kind::kLost);
      return publisher_.Publish();
    case SourceEvent::Kind::kEnd:
      input_watch_.NoteRead(at.flow);
      if (task != nullptr && !source_.IsStale(*task)) phases_.ReachEnd(*task, at);
      return;
    case SourceEvent::Kind::kUnreadable:
      if (task != nullptr && !source_.IsStale(*task)) phases_.MeetUnreadable(*task, at.offset, event.why);
      return;
    case SourceEvent::Kind::kUnreadDeleted:
      if (task != nullptr) ownership_.LoseUnread(*task, event.why);
      return;
    case SourceEvent::Kind::kError:
      if (event.problem == SourceEvent::Problem::kMayNotReadTopic && at.flow >= 0 && all_flows_.are_several())
        return input_watch_.MeetDenial(at.flow, event.why);
      return membership_.MeetError(event);
  }
}

void Worker::Close() {
  // Before it leaves: in the middle of a rebalance a commit may take long.
  transactions_.End(state_.fatal.ok());
  // While partitions are still owned.
  state_.leaves_unfinished = transactions_.IsUnfinished();
  state_.only_leaves = state_.fatal.ok() && !state_.leaves_unfinished;
  ownership_.ReleaseAll();
  publisher_.Publish();
  source_.Leave();
}

}  // namespace lethe
