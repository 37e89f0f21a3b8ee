#include "src/pipeline/replay.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe {

bool Replay::Recognizes(Task& task, const InputRecord& input) {
  if (input.offset != task.mark.offset || input.Hash() != task.mark.hash) return false;
  task.mark.time = task.committed_mark.time = input.time();  // a snapshot does not tell it
  task.next = task.filter_end;
  task.phase = Phase::kRestoring;
  if (task.next >= task.committed) Activate(task);
  return true;
}

RecordRun Replay::Restore(Task& task, RecordRun run) {
  const auto active = std::find_if(run.begin(), run.end(),
                                   [&](const InputRecord& input) { return input.offset >= task.committed; });
  Remember(task, run.first(static_cast<size_t>(active - run.begin())));
  run.remove_prefix(static_cast<size_t>(active - run.begin()));
  if (task.phase != Phase::kFailed && (!run.empty() || task.next >= task.committed)) Activate(task);
  return task.phase == Phase::kFailed ? RecordRun() : run;
}

void Replay::Activate(Task& task) {
  if (task.to_compare) return StopOnOtherLog(task);
  task.phase = Phase::kActive;
  task.filter->LimitStreamTime(absl::InfiniteFuture());
  task.KnowsSinceStreamTime();
  // There may be no record at all between the last one read and C: control records, compacted ones.
  task.next = task.filter_end = task.committed;
  task.committed_mark = task.mark;
  task.committed_timed_records = task.timed_records;
  spdlog::info("{}: ready at offset {} after replaying {} offsets", source_.Name(task), task.committed,
               task.restore.to() - task.restore.from());
  task.restore.At(task.restore.to(), SteadyNow());
}

void Replay::Remember(Task& task, RecordRun run) {
  if (run.empty()) return;
  if (!IsLogOfCommit(task, run)) return StopOnOtherLog(task);
  events_.clear();
  const auto replay = [&] {
    if (absl::Status replayed = task.filter->Replay(events_); !replayed.ok()) state_.fatal = replayed;
    events_.clear();
  };
  // The wall clock has moved on since these records were judged, and would now believe what it did not then.
  // Stream time at C is what is left of that time.
  task.filter->LimitStreamTime(task.time_at_committed);
  const absl::Time latest = std::min(absl::Now(), task.time_at_committed) + options_.max_future;
  for (const InputRecord& input : run) {
    const RecordFields& fields = reader_.Read(input.view());
    const absl::Time time = input.time() > latest ? absl::InfinitePast() : input.time();
    if (time != absl::InfinitePast()) ++task.timed_records;
    if (router_.IsJudged(fields) && !task.passed_over.contains(input.offset)) {
      events_.push_back({task.filter->Hash(fields.id), time, input.payload()});
    } else {
      replay();
      if (absl::Status observed = task.filter->Observe(time); !observed.ok()) state_.fatal = observed;
    }
  }
  replay();
  task.next = task.filter_end = run.back().offset + 1;
  const InputRecord& last = run.back();
  task.mark = task.committed_mark = {last.offset, last.Hash(), last.time()};
  task.committed_timed_records = task.timed_records;
  task.counts.suppressed += static_cast<int64_t>(run.size());
  task.points->Note(task.next, task.timed_records, task.filter->stream_time());
  if (task.restore.At(task.next, SteadyNow())) {
    spdlog::info("{}: restoring: {}", source_.Name(task), task.restore.ToString());
  }
}

bool Replay::IsLogOfCommit(Task& task, RecordRun run) {
  if (!task.to_compare || run.back().offset < task.to_compare->offset) return true;
  const auto found = std::find_if(run.begin(), run.end(), [&](const InputRecord& input) {
    return input.offset == task.to_compare->offset;
  });
  if (found == run.end() || found->Hash() != task.to_compare->hash) return false;
  task.to_compare.reset();
  return true;
}

void Replay::StopOnOtherLog(Task& task) {
  const LogMark judged = *std::exchange(task.to_compare, std::nullopt);
  task.Fail(absl::StrCat(
      source_.Name(task), " offset ", judged.offset,
      ": the log has another record here than the group has judged, or "
      "none: it was truncated (an unclean leader election, say) or recreated, and has grown again. Records "
      "before offset ",
      task.committed,
      " may be new and not judged. Reset the group's offsets with "
      "kafka-consumer-groups.sh --reset-offsets: to ",
      task.committed,
      " to go on without them; further back to judge them, where all that is read again is "
      "written to the output once more"));
  spdlog::error("{}", task.problem);
}

}  // namespace lethe
