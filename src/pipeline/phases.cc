#include "src/pipeline/phases.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/pipeline/output/disposition.h"

namespace lethe {
namespace {

// What was damaged on its way is there when it is fetched again.
constexpr int kUnreadableTimes = 3;

}  // namespace

Phases::Phases(const DaemonOptions& options, const Topics& topics, const Tuning& tuning, WorkerState& state,
               Source& source, HeldPartitions& held, Transactions& transactions, Group& group,
               Warnings& warnings)
    : tuning_(tuning),
      state_(state),
      source_(source),
      held_(held),
      transactions_(transactions),
      group_(group),
      replay_(options, state, source),
      judge_(options, topics, source, transactions.writer(), transactions.refusals(), warnings) {}

absl::Status Phases::Advance(Task& task, RecordRun run) {
  if (task.unreadable) {
    task.unreadable->Readable();
    SearchReadable(task);
    return absl::OkStatus();
  }
  while (!run.empty()) {
    // The client may repeat records after a seek.
    if (run.front().offset < task.next) {
      run.remove_prefix(1);
      continue;
    }
    switch (task.phase) {
      case Phase::kHeld:  // polled before it was
      case Phase::kFailed:
        return absl::OkStatus();
      case Phase::kChecking:
        if (!replay_.Recognizes(task, run.front())) {
          group_.Rebuild(task);
          return absl::OkStatus();
        }
        run.remove_prefix(1);
        break;
      case Phase::kRestoring:
        run = replay_.Restore(task, run);
        break;
      case Phase::kActive:
        return JudgeRun(task, run);
    }
  }
  return absl::OkStatus();
}

absl::Status Phases::JudgeRun(Task& task, RecordRun run) {
  if (!held_.HasOutput(task)) return absl::OkStatus();
  if (!task.stop_before_next.empty()) return absl::OkStatus();
  if (absl::Status begun = transactions_.Begin(task); !begun.ok()) return begun;
  const JudgedRun judged = judge_.Run(task, run);
  // What was passed may not be remembered, so nothing of it may go out. Whoever is started next has all that
  // is committed from the log.
  if (absl::Status known = task.transaction->status(); !known.ok()) {
    state_.fatal = absl::Status(known.code(), absl::StrCat(source_.Name(task), ": ", known.message()));
    return state_.fatal;
  }
  return judged.records.empty() ? absl::OkStatus() : transactions_.Write(task, judged);
}

void Phases::ReachEnd(Task& task, int64_t end) {
  if (task.unreadable) {
    task.unreadable->Readable();
    return SearchReadable(task);
  }
  task.end_of_log = std::max(task.end_of_log, end);
  // The record that is looked for would have come before. What follows is read again: it is not at its end.
  if (task.phase == Phase::kChecking) return group_.Rebuild(task);
  if (task.phase == Phase::kRestoring && end >= task.committed) replay_.Activate(task);
  if (task.phase != Phase::kActive || !task.stop_before_next.empty() || end <= task.next) return;
  // Not committed, it would be gone with the next segment: to the broker the log starts behind it then.
  if (transactions_.Begin(task).ok()) task.next = end;
}

void Phases::MeetUnreadable(Task& task, int64_t base, const std::string& why) {
  if (task.phase == Phase::kFailed || task.phase == Phase::kHeld || !task.stop_before_next.empty()) return;
  if (task.unreadable) {
    task.unreadable->Unreadable(base);
    return SearchReadable(task);
  }
  const int64_t at = std::max(base, task.next);
  task.unreadable_times = task.unreadable_at == at ? task.unreadable_times + 1 : 1;
  task.unreadable_at = at;
  if (task.unreadable_times < kUnreadableTimes) return;
  // The record to compare with is not to be had.
  if (task.phase == Phase::kChecking) return group_.Rebuild(task);
  const bool is_replay = task.phase != Phase::kActive;
  if (DisposeUnreadable(is_replay, tuning_.current().policies) != Action::kFail) {
    task.unreadable.emplace(base, task.next);
    task.unreadable_why = why;
    return SearchReadable(task);
  }
  const std::string problem = absl::StrCat(
      source_.Name(task), " offset ", at, ": the batch cannot be read: ", why,
      "; on_unreadable is fail: the partition is committed up to there, and stands still; set on_unreadable "
      "to drop to pass over it, then reload the configuration (SIGHUP) or start again; if it only "
      "decompresses to more than the client takes, raise receive.message.max.bytes under kafka");
  if (task.in_transaction()) {
    task.stop_before_next = problem;
    return;
  }
  task.phase = Phase::kFailed;
  task.stopped_by_policy = true;
  task.problem = problem;
  spdlog::error("{}", problem);
  source_.SetPaused(task, true);
}

void Phases::SearchReadable(Task& task) {
  if (const auto end = task.unreadable->end()) {
    task.unreadable.reset();
    return PassOver(task, *end);
  }
  source_.SeekTo(task, task.unreadable->Probe(source_.HighWatermark(task.id)));
}

void Phases::PassOver(Task& task, int64_t end) {
  const int64_t begin = task.next;
  if (task.phase == Phase::kActive) {
    if (!held_.HasOutput(task) || !transactions_.Begin(task).ok()) return;
    transactions_.PassOver(task, end);
  } else {
    task.next = task.filter_end = std::min(end, task.committed);
    task.counts.suppressed += task.next - begin;
  }
  spdlog::error("{}: offsets {} to {} cannot be read, and are passed over: {}", source_.Name(task), begin,
                end - 1, task.unreadable_why);
  if (task.phase == Phase::kRestoring && task.next >= task.committed) replay_.Activate(task);
  source_.Seek(task);
}

}  // namespace lethe
