#include "src/pipeline/phases.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/router.h"

namespace lethe {
namespace {

// A batch that was damaged on its way is sound when it is fetched again.
constexpr int kUnreadableTimes = 3;
// Before the end of a replay, what is fetched ahead may already be new: more than a source has in its queue.
constexpr int64_t kCarefulOffsets = 100'000;

std::unique_ptr<Judge> MakeJudge(const Workplace& place) {
  if (place.options().half.routing) return std::make_unique<Router>(place.state.clock);
  return std::make_unique<Judge>(place.state.clock);
}

}  // namespace

Phases::Phases(const Workplace& place, LaneFlows& flows, HeldPartitions& held, Transactions& transactions,
               Ownership& ownership, SourcePaces& pace)
    : state_(place.state),
      all_flows_(place.shared.flows),
      source_(place.source),
      flows_(flows),
      held_(held),
      transactions_(transactions),
      ownership_(ownership),
      pace_(pace),
      tasks_(place.tasks),
      judge_(MakeJudge(place)) {}

absl::Status Phases::Advance(Task& task, RecordRun run) {
  LETHE_ASSERT(!source_.IsStale(task));
  if (task.schema_wait().is_on()) {
    held_.Keep(task, run);
    return absl::OkStatus();
  }
  if (task.unreadable()) {
    task.unreadable()->Readable();
    SearchReadable(task);
    return absl::OkStatus();
  }
  while (!run.empty()) {
    // The client may repeat records after a seek.
    if (run.front().offset < task.next()) {
      run.remove_prefix(1);
      continue;
    }
    switch (task.phase()) {
      case Phase::kHeld:  // it was polled before that
      case Phase::kFailed:
        return absl::OkStatus();
      case Phase::kChecking:
        if (!Recognizes(task, run.front())) {
          ownership_.Rebuild(task);
          return absl::OkStatus();
        }
        run.remove_prefix(1);
        break;
      case Phase::kRestoring:
        run = Restore(task, run);
        break;
      case Phase::kActive:
        return JudgeRun(task, run);
    }
  }
  return absl::OkStatus();
}

bool Phases::Recognizes(Task& task, const InputRecord& input) {
  if (input.offset != task.mark().offset || input.Hash() != task.mark().hash) return false;
  const bool skips = task.Recognize(input.time());
  if (task.next() >= task.committed()) Activate(task);
  if (skips) source_.Seek(task);
  return true;
}

RecordRun Phases::Restore(Task& task, RecordRun run) {
  const auto active = std::find_if(
      run.begin(), run.end(), [&](const InputRecord& input) { return input.offset >= task.committed(); });
  const RecordRun replayed = run.first(static_cast<size_t>(active - run.begin()));
  if (const auto awaited = Replay(task, replayed)) {
    held_.AwaitSchema(task, awaited->schema, run.subspan(awaited->before));
    return {};
  }
  run.remove_prefix(replayed.size());
  if (task.committed() - task.next() < kCarefulOffsets) source_.ReadCarefully();
  if (task.phase() != Phase::kFailed && (!run.empty() || task.next() >= task.committed())) Activate(task);
  return task.phase() == Phase::kFailed ? RecordRun() : run;
}

void Phases::Activate(Task& task) {
  if (task.to_compare()) return StopOnOtherLog(task);
  task.Activate();
  const int64_t replayed = task.restore().to() - task.restore().from();
  ++state_.ready_partitions;
  state_.replayed_offsets += replayed;
  if (AreNamed(tasks_) && (replayed > 0 || all_flows_.size() == 1)) {
    spdlog::info("{}: ready at offset {} after replaying {} offsets", task.Name(), task.committed(),
                 replayed);
  }
  task.NoteProgress(state_.clock.Steady());
}

std::optional<Phases::Awaited> Phases::Replay(Task& task, RecordRun run) {
  if (run.empty()) return std::nullopt;
  if (!IsLogOfCommit(task, run)) {
    StopOnOtherLog(task);
    return std::nullopt;
  }
  LaneFlow& flow = flows_.Of(task);
  replayed_.clear();
  const auto replay = [&] {
    if (absl::Status replayed = task.filter()->Replay(replayed_); !replayed.ok()) state_.fatal = replayed;
    replayed_.clear();
  };
  // The wall clock has moved on since these records were judged: it would accept timestamps that were too far
  // ahead then.
  task.filter()->LimitStreamTime(task.time_at_committed());
  const absl::Time latest = std::min(state_.clock.Wall(), task.judged_by()) + flow.flow.options.max_future;
  std::optional<Awaited> awaited;
  for (const InputRecord& input : run) {
    const RecordFields& fields = flow.replay_reader.Read(input.view());
    if (fields.waits_for) {
      awaited = {*fields.waits_for, static_cast<size_t>(&input - run.data())};
      run = run.first(awaited->before);
      break;
    }
    const absl::Time time = input.time() > latest ? absl::InfinitePast() : input.time();
    task.NoteTime(time);
    if (judge_->IsJudged(fields) && !task.IsPassedOver(input.offset)) {
      replayed_.push_back({task.filter()->Hash(fields.id), time, input.payload()});
    } else {
      replay();
      if (absl::Status observed = task.filter()->Observe(time); !observed.ok()) state_.fatal = observed;
    }
  }
  replay();
  if (run.empty()) return awaited;
  task.Replayed(run.back(), run.size());
  if (task.NoteProgress(state_.clock.Steady()) && AreNamed(tasks_)) {
    spdlog::info("{}: restoring: {}", task.Name(), task.restore().ToString());
  }
  return awaited;
}

bool Phases::IsLogOfCommit(Task& task, RecordRun run) {
  if (!task.to_compare() || run.back().offset < task.to_compare()->offset) return true;
  const auto found = std::find_if(run.begin(), run.end(), [&](const InputRecord& input) {
    return input.offset == task.to_compare()->offset;
  });
  if (found == run.end() || found->Hash() != task.to_compare()->hash) return false;
  task.TakeToCompare();
  return true;
}

void Phases::StopOnOtherLog(Task& task) {
  const LogMark judged = *task.TakeToCompare();
  const ProcessOptions& process = task.flow()->options.process;
  task.Fail(absl::StrCat(
      task.Name(), " offset ", judged.offset,
      ": this is not the record that lethe judged: the log was truncated (by an unclean leader election, for "
      "example) or recreated, and has grown since. Records before offset ",
      task.committed(), " may be new and not judged. ", kCostOfReset, "Stop every instance, then ",
      ResetOffsets(process, process.group,
                   {absl::StrCat(task.flow()->options.input, ":", task.id().partition)},
                   absl::StrCat("--to-offset ", task.committed())),
      " to skip them; a lower offset judges them, and lethe writes all records from there to the output "
      "again"));
  spdlog::error("{}", task.problem());
}

absl::Status Phases::JudgeRun(Task& task, RecordRun run) {
  if (!held_.HasOutput(task)) return absl::OkStatus();
  if (!task.stop_before_next().empty()) return absl::OkStatus();
  run = pace_.Admit(task, run);
  // A partition that waits says so with its next commit.
  if (run.empty() && !task.pace().waits()) return absl::OkStatus();
  if (task.awaits_room()) {
    transactions_.AwaitRoom(task, run);
    return absl::OkStatus();
  }
  if (absl::Status begun = transactions_.Begin(task); !begun.ok()) return begun;
  if (run.empty()) return absl::OkStatus();
  const size_t fits = transactions_.RoomFor(task, run);
  const JudgedRun judged = judge_->Run(task, flows_.Of(task), run.first(fits));
  if (judged.waits_for) {
    held_.AwaitSchema(task, *judged.waits_for, run.subspan(judged.records.size()));
  } else if (fits < run.size()) {
    transactions_.AwaitRoom(task, run.subspan(fits));
  }
  // The filter may lack an id that passed, so nothing may be written. The next process restores all committed
  // ids from the log.
  if (absl::Status known = task.transaction().status(); !known.ok()) {
    state_.fatal = absl::Status(known.code(), absl::StrCat(task.Name(), ": ", known.message()));
    return state_.fatal;
  }
  return judged.records.empty() ? absl::OkStatus() : transactions_.Write(task, judged);
}

void Phases::SayThatItWaits(Task& task) {
  if (!task.pace().waits() || task.phase() != Phase::kActive || !task.stop_before_next().empty()) return;
  // What keeps it from beginning is told and handled where records are judged.
  static_cast<void>(transactions_.Begin(task).ok());
}

void Phases::ReachEnd(Task& task, const InputRecord& at) {
  const int64_t end = at.offset;
  if (task.schema_wait().is_on()) return held_.Keep(task, {&at, 1});  // there is a record before it
  if (task.unreadable()) {
    task.unreadable()->Readable();
    return SearchReadable(task);
  }
  if (pace_.ReachEnd(task, at)) return SayThatItWaits(task);
  if (task.awaits_room()) return transactions_.AwaitRoom(task, {&at, 1});
  task.ReachEndOfLog(end);
  // The record to compare with is not in the log.
  if (task.phase() == Phase::kChecking) return ownership_.Rebuild(task);
  if (task.phase() == Phase::kRestoring && end >= task.committed()) Activate(task);
  // Its first record would wait for the output, so it is said before that comes.
  if (task.phase() == Phase::kActive && !held_.HasOutput(task)) return;
  if (task.phase() != Phase::kActive || !task.stop_before_next().empty()) return;
  const bool is_in_group = task.in_transaction() || task.next() == task.in_group();
  if (end <= task.next() && is_in_group) return;
  // Commits the end: once retention removes these offsets, the log would start beyond the committed one.
  // Where it did, what was deleted unread would count as lag until the next record, and as lost at each
  // restart.
  if (transactions_.Begin(task).ok()) task.SkipTo(std::max(end, task.next()));
}

void Phases::MeetUnreadable(Task& task, int64_t base, const std::string& why) {
  if (task.phase() == Phase::kFailed || task.phase() == Phase::kHeld || !task.stop_before_next().empty())
    return;
  if (task.schema_wait().is_on() || task.awaits_room()) return;  // the reader meets it again
  if (pace_.MeetUnreadable(task)) return SayThatItWaits(task);
  if (task.unreadable()) {
    task.unreadable()->Unreadable(base);
    return SearchReadable(task);
  }
  const int64_t at = std::max(base, task.next());
  if (task.MeetUnreadable(at) < kUnreadableTimes) {
    // Records before `next` need not be read, and the batch may end there. If it is met again, it does not.
    if (base < task.next()) source_.Seek(task);
    return;
  }
  // The record to compare with cannot be read.
  if (task.phase() == Phase::kChecking) return ownership_.Rebuild(task);
  const bool is_replay = task.phase() == Phase::kRestoring;
  // What was committed is judged; but the filter will lack the ids of the batch, so copies of them may pass.
  const DaemonOptions& options = task.flow()->options;
  const bool stops = is_replay ? options.policies.on_short_history == OnShortHistory::kFail
                               : options.policies.on_unreadable == Action::kFail;
  if (!stops) {
    task.SearchEnd(base, why);
    return SearchReadable(task);
  }
  const std::string problem = absl::StrCat(
      task.Name(), " offset ", at, ": the batch cannot be read: ", why,
      is_replay ? "; the filter needs its ids, and on_short_history is fail, so the partition is stopped. To "
                  "run without those ids, set on_short_history to continue and restart lethe"
                : "; on_unreadable is fail, so the partition is stopped at this offset. To skip the batch, "
                  "set on_unreadable to drop and restart lethe",
      "; if it only decompresses to more than the client takes, raise receive.message.max.bytes under kafka");
  if (task.in_transaction()) {
    task.StopBeforeNext(problem);
    return;
  }
  task.Fail(problem);
  spdlog::error("{}", problem);
  source_.SetPaused(task, true);
}

void Phases::SearchReadable(Task& task) {
  if (const auto end = task.unreadable()->end()) {
    task.unreadable().reset();
    return PassOver(task, *end);
  }
  source_.SeekTo(task, task.unreadable()->Probe(source_.HighWatermark(task.id())));
}

void Phases::PassOver(Task& task, int64_t end) {
  const int64_t begin = task.next();
  if (task.phase() == Phase::kActive) {
    if (!held_.HasOutput(task) || !transactions_.Begin(task).ok()) return;
    transactions_.PassOver(task, end);
  } else {
    task.SkipInReplay(end, std::min(task.time_at_committed(), state_.clock.Wall()));
    spdlog::warn(
        "{}: short history: copies of events at offsets {} to {} pass until the horizon of {} has "
        "gone by",
        task.Name(), begin, task.next() - 1, absl::FormatDuration(task.flow()->options.stage.horizon));
  }
  spdlog::error("{}: offsets {} to {} cannot be read, and are skipped: {}", task.Name(), begin, end - 1,
                task.unreadable_why());
  if (task.phase() == Phase::kRestoring && task.next() >= task.committed()) Activate(task);
  source_.Seek(task);
}

}  // namespace lethe
