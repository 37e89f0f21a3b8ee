#include "src/pipeline/assign/assigner.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/pipeline/assign/topic_id_watch.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/stage/missing_bytes.h"

namespace lethe {
namespace {

// A revoked partition may come back to the process: members hear with their next heartbeat (3 s) that the
// group rebalances again, and some protocols take two rounds. After that another member owns it.
constexpr absl::Duration kMayComeBackFor = absl::Seconds(10);

}  // namespace

bool HasBegun(const std::vector<CommittedOffset>& committed) {
  return std::any_of(committed.begin(), committed.end(),
                     [](const CommittedOffset& each) { return each.offset >= 0; });
}

absl::StatusOr<CommitMetadata> ReadCommitMetadata(const DaemonOptions& options,
                                                  const std::string& id_fingerprint, int32_t partition,
                                                  const CommittedOffset& committed) {
  absl::StatusOr<CommitMetadata> metadata = CommitMetadata::Parse(committed.metadata);
  if (absl::IsNotFound(metadata.status())) return metadata;
  const std::string name = absl::StrCat(options.input, "-", partition);
  if (!metadata.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " at offset ", committed.offset, ": ", metadata.status().message()));
  }
  if (metadata->restart.offset > committed.offset || metadata->last.offset >= committed.offset) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": group ", options.process.group, " has committed offset ", committed.offset,
                     ", and its commit metadata speaks of records beyond it (restart offset ",
                     metadata->restart.offset, "): a copy of a group from another cluster can be like that. ",
                     ResetOrReadAgain(options.process, absl::StrCat(options.input, ":", partition))));
  }
  if (!metadata->output.empty() && metadata->output != options.output) {
    return absl::FailedPreconditionError(absl::StrCat(name, ": group ", options.process.group,
                                                      " writes to topic ", metadata->output, ", not to ",
                                                      options.output,
                                                      ": two pipelines on one group would each get a part of "
                                                      "the records. Use another group, or set output to ",
                                                      metadata->output));
  }
  if (metadata->id_fingerprint == id_fingerprint) return metadata;
  return absl::FailedPreconditionError(absl::StrCat(name, ": ", OtherId(options)));
}

absl::Status CheckScope(const DaemonOptions& options, int32_t partitions, const AskCommittedOf& ask) {
  for (const std::string& other : TopicsOfOtherScope(options)) {
    const auto committed = ask(other, partitions);
    if (absl::IsUnavailable(committed.status())) return committed.status();
    if (!committed.ok()) continue;
    for (const CommittedOffset& each : *committed) {
      if (each.offset < 0 || absl::IsNotFound(CommitMetadata::Parse(each.metadata).status())) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "group ", options.process.group, " has judged ", other,
          " so far: with another scope, or with inputs merged or not, it would write the same records again. "
          "Use the former scope and inputs, or another group and a new output, for example ",
          StartOver(options)));
    }
  }
  return absl::OkStatus();
}

std::string RecreatedUnread(const DaemonOptions& options, int32_t partition, int64_t committed) {
  return absl::StrCat(options.input, "-", partition,
                      ": the input was deleted and created again: its records before offset ", committed,
                      " may not have been judged. ", kCostOfReset, "Stop every instance, then ",
                      ResetOffsets(options.process, options.process.group,
                                   {absl::StrCat(options.input, ":", partition)}, "--to-earliest"),
                      ": it reads the whole log, and writes records of the new topic again that are in the "
                      "output already; with "
                      "--to-current in the place of --to-earliest it skips the unread records");
}

void FailPartition(Task& task, std::string problem) {
  task.Fail(std::move(problem));
  spdlog::error("{}", task.problem());
}

UncommittedReason::UncommittedReason(const std::vector<CommittedOffset>& committed, bool begun)
    : is_recreated_(begun && !HasBegun(committed)) {
  for (const CommittedOffset& each : committed) {
    const auto metadata = CommitMetadata::Parse(each.metadata);
    if (metadata.ok()) first_added_ = std::min(first_added_, metadata->origin.partitions);
  }
}

Uncommitted UncommittedReason::Of(int32_t partition) const {
  if (partition >= first_added_) return Uncommitted::kAdded;
  return is_recreated_ ? Uncommitted::kRecreated : Uncommitted::kNew;
}

Assigner::Assigner(const Flow& flow, KeptPartitions& kept, GoOnLoading go_on)
    : flow_(flow),
      options_(flow.options),
      partitions_(flow.topics.partitions),
      stage_(*flow.stage),
      kept_(kept),
      go_on_(std::move(go_on)) {}

bool Assigner::NeedsFirstCommit(const Task& task, const CommittedOffset& committed) {
  return task.phase() != Phase::kFailed && !CommitMetadata::Parse(committed.metadata).ok();
}

bool Assigner::GiveUpKept(absl::Time since) {
  const std::unique_ptr<Task> given_up = kept_.TakeOldest(since);
  if (given_up == nullptr) return false;
  spdlog::info("{}: the filter kept for its return is dropped: others need the memory", given_up->Name());
  return true;
}

void Assigner::GiveUpForMemory(absl::Time now) {
  int64_t missing = TakeMissingBytes(stage_);
  while (missing > 0) {
    const int64_t before = stage_.memory().used_bytes();
    if (!GiveUpKept(now - kMayComeBackFor)) return;
    missing -= before - stage_.memory().used_bytes();
  }
}

void Assigner::OpenFilter(Task& task, RestartPoint start) {
  const std::string name = task.Name();
  for (;;) {
    auto filter = stage_.Open(name);
    if (filter.ok()) {
      task.SetFilter(*std::move(filter));
      break;
    }
    if (absl::IsResourceExhausted(filter.status())) {
      if (GiveUpKept()) continue;
      // Logged with its like, by the caller.
      task.FailForMemory(
          absl::StrCat(name, ": no memory for its filter: ", LeastMemoryText(options_, partitions_),
                       "; raise memory and start lethe again. It tries again when there is some"));
      return;
    }
    FailPartition(task, absl::StrCat(name, ": ", filter.status().message()));
    return;
  }
  if (absl::Status started = task.filter()->StartAt(start.stream_time); !started.ok()) {
    FailPartition(task, absl::StrCat(name, ": ", started.message()));
    return;
  }
  task.StartFilter(options_.stage.horizon, start);
}

bool Assigner::MakeRoomForFilters(int64_t partitions, absl::Time now) {
  const MemoryBudget& memory = stage_.memory();
  const int64_t needed = SmallestLimitBytes(options_.stage, LimitsOf(options_.stage.engine), partitions);
  while (memory.limit_bytes() - memory.used_bytes() < needed) {
    if (!GiveUpKept(now - kMayComeBackFor)) return false;
  }
  return true;
}

void Assigner::StartEmpty(Task& task, int64_t origin) {
  task.StartEmpty({origin, partitions_});
  OpenFilter(task, {origin, absl::InfinitePast()});
}

bool Assigner::AcceptShortHistory(Task& task, const std::string& missing, const std::string& remedy) const {
  const std::string what =
      absl::StrCat(task.Name(), ": short history: ", missing, ": retries of events before that");
  if (options_.policies.on_short_history == OnShortHistory::kContinue) {
    spdlog::warn("{} pass until the horizon of {} has gone by; {}", what,
                 absl::FormatDuration(options_.stage.horizon), remedy);
    return true;
  }
  FailPartition(task, absl::StrCat(what, " would pass; ", remedy,
                                   ". To run without those ids, set on_short_history to continue until one "
                                   "horizon has passed (lethe_short_history is 0 then)"));
  return false;
}

void Assigner::Rebuild(Task& task, const CommitMetadata& metadata, const RestorePlan& plan) {
  task.StartRestore(metadata.origin, plan.covered_since);
  if (!plan.missing.empty() && !AcceptShortHistory(task, plan.missing, plan.remedy)) return;
  task.RestoreFrom(plan.log_from.offset);
  OpenFilter(task, plan.log_from);
}

bool Assigner::NeedsLogTimes(const CommittedOffset& committed, const LogState& log) const {
  const auto metadata = CommitMetadata::Parse(committed.metadata);
  if (!metadata.ok() || log.start > committed.offset) return false;
  RestoreFacts facts;
  facts.metadata = *metadata;
  facts.log_start = log.start;
  facts.horizon = options_.known_horizon();
  return lethe::NeedsLogTimes(facts);
}

absl::StatusOr<RestoredPartition> Assigner::LoadSnapshot(const Task& task, SnapshotId id,
                                                         const LogState& log) {
  absl::StatusOr<RestoredPartition> restored;
  do {
    restored =
        flow_.snapshots->store().Restore(task.id().partition, id, stage_, [&] { return go_on_(task.id()); });
  } while (absl::IsResourceExhausted(restored.status()) && GiveUpKept());
  if (!restored.ok()) return restored.status();
  const SnapshotPoint& point = restored->point;
  const std::optional<SnapshotNotes> notes = SnapshotNotes::Parse(point.notes);
  if (!notes || point.offset != id.offset || !RestartPoints::Parse(options_.stage.horizon, notes->points)) {
    return absl::DataLossError("it does not say at which offset to continue");
  }
  if (notes->mark_offset < log.start) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the log starts at ", log.start,
        ", so whether it is the same as the snapshot's cannot be seen at offset ", notes->mark_offset));
  }
  // The commit that names it came after it, unless an operator has reset the group's offsets.
  if (std::max(point.offset, point.end_offset) > task.committed()) {
    return absl::FailedPreconditionError(
        absl::StrCat("it holds ids after the committed offset ", task.committed()));
  }
  return restored;
}

absl::StatusOr<bool> Assigner::FromSnapshot(Task& task, const CommitMetadata& metadata, const LogState& log) {
  const std::optional<SnapshotId> id = SnapshotId::Parse(metadata.snapshot);
  absl::StatusOr<RestoredPartition> restored = LoadSnapshot(task, *id, log);
  if (absl::IsCancelled(restored.status())) return restored.status();
  absl::Status usable = restored.status();
  const SnapshotNotes notes =
      usable.ok() ? *SnapshotNotes::Parse(restored->point.notes) : SnapshotNotes{.points = ""};
  if (usable.ok() && notes.origin != metadata.origin.offset) {
    usable = absl::FailedPreconditionError(
        absl::StrCat("it begins at offset ", notes.origin, ", and the group at ", metadata.origin.offset));
  }
  if (!usable.ok()) {
    spdlog::warn("{}: snapshot {} is not used: {}; the filter is rebuilt from the log", task.Name(),
                 metadata.snapshot, std::string(usable.message()));
    return false;
  }
  if (IsShort(notes.covered_since, metadata.committed_time, options_.stage.horizon) &&
      !AcceptShortHistory(task, MissingSince(notes.covered_since), kKeepLog)) {
    return true;
  }
  task.StartRestore(metadata.origin, notes.covered_since);
  task.StartSnapshot(*std::move(restored), *id, *RestartPoints::Parse(options_.stage.horizon, notes.points),
                     notes);
  if (are_named_) {
    spdlog::info("{}: snapshot {} is loaded, with {} ids; {} offsets to replay", task.Name(),
                 metadata.snapshot, task.filter()->Status().filter.ids, task.restore().left());
  }
  return true;
}

absl::StatusOr<bool> Assigner::FromYoungestSnapshot(Task& task, const LogState& log) {
  if (flow_.snapshots == nullptr) return false;
  const auto found = flow_.snapshots->store().FindYoungest(task.id().partition, task.committed(),
                                                           [&] { return go_on_(task.id()); });
  if (absl::IsCancelled(found.status())) return found.status();
  if (found.ok() && (!*found || refused_.contains((*found)->ToString()))) return false;
  absl::StatusOr<RestoredPartition> restored =
      found.ok() ? LoadSnapshot(task, **found, log) : absl::StatusOr<RestoredPartition>(found.status());
  if (absl::IsCancelled(restored.status())) return restored.status();
  absl::Status usable = restored.status();
  const SnapshotNotes notes =
      usable.ok() ? *SnapshotNotes::Parse(restored->point.notes) : SnapshotNotes{.points = ""};
  // A commit would say so.
  if (usable.ok() && notes.output != options_.output) {
    usable =
        absl::FailedPreconditionError("its ids have passed to another output, or it does not say to which");
  }
  if (!usable.ok()) {
    spdlog::warn("{}: no snapshot is used: {}{}", task.Name(),
                 found.ok() ? absl::StrCat((*found)->ToString(), ": ") : "", std::string(usable.message()));
    return false;
  }
  task.StartRestore({notes.origin, partitions_}, notes.covered_since);
  task.StartSnapshot(*std::move(restored), **found,
                     *RestartPoints::Parse(options_.stage.horizon, notes.points), notes);
  return true;
}

absl::StatusOr<std::unique_ptr<Task>> Assigner::StartOver(std::unique_ptr<Task> task,
                                                          std::unique_ptr<Task> kept,
                                                          const CommittedOffset& committed,
                                                          const LogState& log, absl::Time wall_now) {
  const int64_t begin = task->committed();
  // Before offset 0 there is no record, and routers remember none.
  if (begin == 0 || options_.known_horizon() == absl::ZeroDuration()) {
    spdlog::warn("{}: another program committed offset {}: starting there", task->Name(), committed.offset);
    kept.reset();
    StartEmpty(*task, begin);
    return task;
  }
  // Its ids have passed. But the filter must not be ahead, and be of the same log, which the record before
  // its end shows.
  bool is_complete = false;
  if (kept != nullptr && kept->mark().offset >= log.start && kept->filter_end() <= begin) {
    kept->ComeBack(*task, committed.offset, std::nullopt);
    task = std::move(kept);
    is_complete = task->filter_end() == begin;
  } else {
    kept.reset();  // frees its memory before the new filter asks for some
    const absl::StatusOr<bool> loaded = FromYoungestSnapshot(*task, log);
    if (!loaded.ok())
      return absl::CancelledError(absl::StrCat(task->Name(), ": ", loaded.status().message()));
  }
  if (is_complete) {
    spdlog::warn("{}: another program committed offset {}: the filter knows the ids before it", task->Name(),
                 committed.offset);
    return task;
  }
  // Records between the end of the filter and the committed offset were judged by another instance, or
  // skipped by the operator, and then they have not passed: no replay may remember them.
  const bool has_filter = task->filter() != nullptr;
  const std::string missing = absl::StrCat(
      "another program, or a reset, has set the offset of group ", options_.process.group, " to ",
      committed.offset,
      has_filter ? absl::StrCat(", and the filter has the ids before offset ", task->filter_end(), " alone")
                 : ", and the filter has no ids");
  if (!AcceptShortHistory(*task, missing, "nothing is to be done if that was meant")) {
    task->DropFilter();
    return task;
  }
  if (has_filter) {
    task->StartOver(partitions_, options_.stage.horizon, wall_now);
  } else {
    StartEmpty(*task, begin);
    task->SetCoveredSince(wall_now);
  }
  return task;
}

bool Assigner::HasGrownFor(const Task& task) const {
  return options_.scope == Scope::kPartition && task.phase() != Phase::kFailed &&
         std::max(task.origin().partitions, task.growth().partitions) < partitions_;
}

void Assigner::NoteGrowth(Task& task, int64_t end) {
  task.SetGrowth({partitions_, end, absl::InfinitePast()});
  WarnOfGrowth(task);
}

void Assigner::WarnOfGrowth(const Task& task) {
  if (task.growth().offset < 0 || task.growth().partitions <= warned_of_partitions_) return;
  warned_of_partitions_ = task.growth().partitions;
  spdlog::warn(
      "{}: partitions were added, it has {} now: keys may have moved to other partitions. lethe cannot match "
      "copies of earlier records there until the horizon of {} has passed (lethe_keys_moved); scope: topic "
      "matches them",
      options_.input, task.growth().partitions, absl::FormatDuration(options_.stage.horizon));
}

absl::StatusOr<std::unique_ptr<Task>> Assigner::Prepare(int32_t partition, const CommittedOffset& committed,
                                                        const LogState& log, Uncommitted uncommitted,
                                                        absl::Time wall_now) {
  auto task = PrepareFilter(partition, committed, log, uncommitted, wall_now);
  if (task.ok()) {
    (*task)->sums().assign(options_.counters.size(), CounterSums());
    (*task)->SetTopicId(topic_id_);
  }
  TakeMissingBytes(stage_);  // the new filter copes with a refusal; others will ask again
  if (!task.ok() || (*task)->phase() == Phase::kFailed || options_.scope == Scope::kTopic) return task;
  if (committed.offset < 0 && uncommitted == Uncommitted::kAdded) {
    // All its records were sent after it was added.
    (*task)->SetGrowth({partitions_, (*task)->origin().offset, absl::InfinitePast()});
    spdlog::warn("{} was added to the topic after the group had begun to read it", (*task)->Name());
  } else if (auto metadata = CommitMetadata::Parse(committed.metadata); metadata.ok()) {
    metadata->DropTimesAfter(wall_now + options_.max_future);
    (*task)->SetGrowth(metadata->growth);
  }
  if (HasGrownFor(**task)) {
    NoteGrowth(**task, log.end);
  } else {
    WarnOfGrowth(**task);
  }
  return task;
}

absl::StatusOr<std::unique_ptr<Task>> Assigner::PrepareFilter(int32_t partition,
                                                              const CommittedOffset& committed,
                                                              const LogState& log, Uncommitted uncommitted,
                                                              absl::Time wall_now) {
  std::unique_ptr<Task> kept = kept_.Take({flow_.number, partition});
  auto task = std::make_unique<Task>(TopicPartition{flow_.number, partition}, &flow_);
  task->SetLog(committed.offset, log.end);
  if (kept != nullptr) task->ContinueCounts(*kept);
  // What it knows of a former topic of this name, such as records that were rejected, is not true of this
  // one.
  if (kept != nullptr && IsOfAnotherTopic(kept->topic_id(), topic_id_)) kept.reset();
  const std::string name = task->Name();

  if (committed.offset < 0) {
    if (uncommitted == Uncommitted::kRecreated && !options_.half.routed_from.empty()) {
      FailPartition(*task, absl::StrCat(name, ": ", LostRepartitionTopic(options_)));
      return task;
    }
    kept.reset();  // frees its memory before the new filter asks for some
    const bool latest = options_.start == Start::kLatest && uncommitted == Uncommitted::kNew;
    StartEmpty(*task, latest ? log.end : log.start);
    return task;
  }
  task->SetCommitted(committed.offset);
  auto fail = [&](std::string problem) {
    FailPartition(*task, std::move(problem));
    return std::move(task);
  };
  if (log.start > committed.offset) {
    const std::string unread =
        absl::StrCat(name, ": records ", committed.offset, " to ", log.start - 1,
                     " were deleted before lethe read them (the log starts at ", log.start, ")");
    if (options_.policies.on_unread_deleted == OnUnreadDeleted::kFail) {
      return fail(absl::StrCat(unread,
                               ": to skip them, set on_unread_deleted to continue, which keeps what lethe "
                               "knows of earlier events"));
    }
    spdlog::warn("{}: skipping them", unread);
    task->SkipDeleted(log.start);
  }
  if (log.end < committed.offset) {
    return fail(
        absl::StrCat(name, ": the group has committed offset ", committed.offset, ", the log ends at ",
                     log.end, ": the topic was truncated or recreated. ",
                     ResetOrReadAgain(options_.process, absl::StrCat(options_.input, ":", partition))));
  }
  auto metadata = ReadCommitMetadata(options_, flow_.id_fingerprint, partition, committed);
  if (absl::IsNotFound(metadata.status())) {
    return StartOver(std::move(task), std::move(kept), committed, log, wall_now);
  }
  if (!metadata.ok()) return metadata.status();
  task->ExpectTotals(metadata->totals);
  if (IsOfAnotherTopic(metadata->topic_id, topic_id_))
    return fail(RecreatedUnread(options_, partition, committed.offset));
  const absl::Time stated = metadata->committed_time;
  if (metadata->DropTimesAfter(wall_now + options_.max_future)) {
    kept.reset();
    spdlog::warn(
        "{}: the commit of offset {} gives stream time {}, more than {} ahead of this machine's clock: it is "
        "not believed, and the filter is rebuilt from offset {}; many records were dated ahead, or this "
        "machine's clock is behind",
        name, committed.offset, absl::FormatTime(absl::RFC3339_sec, stated, absl::UTCTimeZone()),
        absl::FormatDuration(options_.max_future), metadata->restart.offset);
  }
  const absl::Time time_at_committed =
      metadata->committed_time == absl::InfinitePast() ? absl::InfiniteFuture() : metadata->committed_time;
  // Earlier versions did not write when it was judged.
  task->SetTimes(time_at_committed, metadata->wall_time == absl::InfinitePast()
                                        ? time_at_committed
                                        : std::max(metadata->wall_time, metadata->committed_time));
  // A kept filter that is at the committed offset must have the same record before it.
  const auto is_of_same_log = [&](const Task& each) {
    return metadata->last.offset < 0 || metadata->last.offset >= each.filter_end() ||
           each.mark().offset < 0 ||
           (each.mark().offset == metadata->last.offset && each.mark().hash == metadata->last.hash);
  };
  RestoreFacts facts;
  facts.metadata = *metadata;
  facts.committed = task->committed();
  facts.log_start = log.start;
  facts.horizon = options_.known_horizon();
  facts.times = log.times;
  if (kept != nullptr && kept->origin().offset == metadata->origin.offset && is_of_same_log(*kept) &&
      (kept->mark().offset < 0 ? kept->filter_end() : kept->mark().offset) >= log.start) {
    facts.kept = kept->filter_end();
  }
  const std::optional<SnapshotId> snapshot = SnapshotId::Parse(metadata->snapshot);
  if (flow_.snapshots != nullptr && snapshot && !refused_.contains(metadata->snapshot)) {
    facts.snapshot = snapshot->offset;
  }
  const RestorePlan plan = PlanRestore(facts);
  if (plan.source == RestoreSource::kKept) {
    kept->ComeBack(*task, committed.offset, snapshot);
    kept->TakeHistory(*metadata, log.start);
    return kept;
  }
  kept.reset();
  if (plan.source == RestoreSource::kSnapshot) {
    const absl::StatusOr<bool> loaded = FromSnapshot(*task, *metadata, log);
    if (!loaded.ok()) return absl::CancelledError(absl::StrCat(name, ": ", loaded.status().message()));
    if (*loaded) {
      task->TakeHistory(*metadata, log.start);
      return task;
    }
  }
  Rebuild(*task, *metadata, plan);
  task->TakeHistory(*metadata, log.start);
  return task;
}

}  // namespace lethe
