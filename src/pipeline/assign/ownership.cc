#include "src/pipeline/assign/ownership.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/totals.h"

namespace lethe {
namespace {

// How long an assigned partition may be unknown: the member that assigns it may learn of a new one first.
constexpr absl::Duration kNewPartitionPatience = absl::Seconds(30);
constexpr absl::Duration kLookForMemoryEvery = absl::Seconds(1);
// Each attempt is a rebalance of the group.
constexpr absl::Duration kRejoinForMemoryEvery = absl::Minutes(1);

}  // namespace

Ownership::Ownership(const Workplace& place, Membership& membership, HeldPartitions& held,
                     SnapshotCycle& snapshots, Transactions& transactions)
    : options_(place.options()),
      topics_(place.topics()),
      kept_(place.shared.kept),
      state_(place.state),
      source_(place.source),
      cluster_(place.cluster),
      tasks_(place.tasks),
      membership_(membership),
      held_(held),
      snapshots_(snapshots),
      transactions_(transactions),
      assigner_(options_, topics_, place.shared.stage, kept_, place.shared.snapshots,
                [this](int32_t partition) { return GoOnLoading(partition, "snapshot"); }) {}

void Ownership::Assign(const std::vector<int32_t>& partitions) {
  // Of this assignment, not of a later one: a lane that stalls over a rebalance must not commit, with the new
  // generation, what it judged in the old one.
  const bool is_member = source_.TakeGeneration();
  // Cooperative: partitions that stay go on under the new generation.
  transactions_.End(is_member);
  membership_.SetJoined(true);
  absl::Status prepared = state_.fatal;
  if (prepared.ok()) {
    prepared = is_member ? Prepare(partitions)
                         : absl::AbortedError("the group has moved on before the assignment came");
  }
  // A cooperative client counts these as assigned, and would not offer them again.
  if (options_.assignment == Assignment::kCooperative && absl::IsAborted(prepared)) wants_to_rejoin_ = true;
  std::vector<const Task*> assigned;
  if (prepared.ok()) {
    for (const int32_t partition : partitions) {
      const Task* task = Find(tasks_, partition);
      if (task != nullptr && task->phase != Phase::kFailed) assigned.push_back(task);
    }
  }
  source_.Assign(assigned);
  if (prepared.ok()) return;
  spdlog::warn("lane {}: {}", state_.lane, std::string(prepared.message()));
  if (!absl::IsAborted(prepared) && !absl::IsCancelled(prepared)) state_.fatal = prepared;
}

void Ownership::Revoke(const std::vector<int32_t>& partitions, bool lost) {
  if (lost && !partitions.empty()) {
    spdlog::warn(
        "lane {}: lost {} partition{} of {} before revoking them; the next owner replays their uncommitted "
        "records",
        state_.lane, partitions.size(), partitions.size() == 1 ? "" : "s", options_.input);
  }
  // The group is in its next generation, and no other member owns the partitions before this one releases
  // them: it may still commit. (Lost partitions were taken away before.)
  if (options_.assignment == Assignment::kCooperative && !lost) lost = !source_.TakeGeneration();
  transactions_.End(!lost);
  Release(partitions);
  source_.Unassign(partitions);
}

void Ownership::ReleaseAll() {
  std::vector<int32_t> all;
  for (const auto& [id, task] : tasks_) all.push_back(id);
  Release(all);
}

void Ownership::Release(const std::vector<int32_t>& partitions) {
  for (const int32_t partition : partitions) {
    const auto found = tasks_.find(partition);
    if (found == tasks_.end()) continue;
    snapshots_.Drop(*found->second);
    held_.Release(*found->second);
    if (found->second->phase != Phase::kFailed) kept_.Put(std::move(found->second), state_.clock.Steady());
    tasks_.erase(found);
  }
  // A lane without partitions before the next assignment is not at their end.
  if (tasks_.empty()) membership_.SetJoined(false);
}

absl::Status Ownership::Prepare(const std::vector<int32_t>& partitions) {
  int32_t count = topics_.partitions;
  for (const int32_t partition : partitions) count = std::max(count, partition + 1);
  assigner_.SetPartitions(count);
  std::vector<CommittedOffset> committed;
  absl::Status asked = state_.Await([&] {
    auto answer = cluster_.Committed(options_.input, count);
    if (answer.ok()) committed = std::move(*answer);
    return answer.status();
  });
  if (asked.ok() && !has_begun_) {
    asked = state_.Await([&] {
      return CheckScope(options_, count, [this](const std::string& topic, int32_t of_partitions) {
        return cluster_.Committed(topic, of_partitions);
      });
    });
  }
  if (!asked.ok()) return asked;

  assigner_.SetTopicId(cluster_.TopicId());
  std::vector<Task*> prepared;
  int begin = 0;
  for (const int32_t partition : partitions) {
    const CommittedOffset& there = committed[static_cast<size_t>(partition)];
    const Uncommitted why = Assigner::WhyUncommitted(partition, committed, has_begun_);
    const absl::Time give_up = state_.clock.Steady() + kNewPartitionPatience;
    auto task = PrepareOne(partition, there, why, give_up);
    if (!task.ok()) return task.status();
    if (there.offset < 0 && why == Uncommitted::kNew) ++begin;
    prepared.push_back(task->get());
    tasks_[partition] = *std::move(task);
  }
  SayLackOfMemory();
  asked = AwaitTotals(prepared);
  if (!asked.ok()) return asked;
  if (begin > 0) {
    spdlog::info("lane {}: no committed offsets for {} of {} partitions of {}; starting at {}", state_.lane,
                 begin, partitions.size(), options_.input,
                 options_.start == Start::kLatest ? "latest" : "earliest");
  }
  std::erase_if(prepared, [&](const Task* task) {
    return !Assigner::NeedsFirstCommit(*task, committed[static_cast<size_t>(task->id)]);
  });
  if (!prepared.empty()) asked = transactions_.CommitStart(prepared);
  if (asked.ok()) has_begun_ = has_begun_ || !partitions.empty();
  return asked;
}

void Ownership::SayLackOfMemory() const {
  std::vector<const Task*> lacking;
  for (const auto& [id, task] : tasks_) {
    if (task->lacks_memory) lacking.push_back(task.get());
  }
  if (lacking.empty()) return;
  spdlog::error("lane {}: {}{}", state_.lane, lacking[0]->problem,
                lacking.size() == 1 ? "" : absl::StrCat(" (and ", lacking.size() - 1, " more partitions)"));
}

void Ownership::LookForMemory() {
  const absl::Time now = state_.clock.Steady();
  if (now < next_memory_look_) return;
  next_memory_look_ = now + kLookForMemoryEvery;
  const auto lacking =
      std::count_if(tasks_.begin(), tasks_.end(), [](const auto& each) { return each.second->lacks_memory; });
  if (lacking == 0 || !assigner_.MakeRoomForFilters(lacking, now)) return;
  next_memory_look_ = now + kRejoinForMemoryEvery;
  spdlog::info("lane {}: there is memory for the filters of {} partitions that had none: rejoining the group",
               state_.lane, lacking);
  wants_to_rejoin_ = true;
}

absl::StatusOr<std::unique_ptr<Task>> Ownership::PrepareOne(int32_t partition,
                                                            const CommittedOffset& committed,
                                                            Uncommitted uncommitted, absl::Time give_up) {
  LogState log;
  const absl::Status asked = state_.Await([&] {
    auto answer = cluster_.Log(partition);
    if (answer.ok()) log = *answer;
    const bool wait = absl::IsNotFound(answer.status()) && state_.clock.Steady() < give_up;
    return wait ? absl::UnavailableError(answer.status().message()) : answer.status();
  });
  if (!asked.ok()) return asked;
  AskLogTimes(partition, committed, log);
  auto task = assigner_.Prepare(partition, committed, log, uncommitted, state_.clock.Wall());
  LoadingEnds();
  return task;
}

absl::Status Ownership::AwaitTotals(const std::vector<Task*>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  const int32_t first = partitions.front()->id;
  const absl::Status restored = state_.Await([&] {
    return RestoreTotals(options_, partitions, cluster_, state_.clock,
                         [&] { return GoOnLoading(first, "counter state"); });
  });
  LoadingEnds();
  return restored;
}

void Ownership::AskLogTimes(int32_t partition, const CommittedOffset& committed, LogState& log) {
  if (!assigner_.NeedsLogTimes(committed, log)) return;
  state_.heartbeat.Beat();
  const auto first = cluster_.TimeAt(partition, log.start);
  state_.heartbeat.Beat();
  const auto next = cluster_.TimeAt(partition, committed.offset);
  if (first.ok() && next.ok()) log.times = LogTimesOf(*first, *next, state_.clock.Wall());
}

void Ownership::Rebuild(Task& task) {
  spdlog::warn(
      "{}: the log is not the one that the filter was built from (truncated or recreated): rebuilding the "
      "filter",
      source_.Name(task));
  if (task.snapshot) assigner_.Refuse(*task.snapshot);
  PrepareAgain(task);
}

void Ownership::LoseUnread(Task& task, const std::string& why) {
  held_.Release(task);
  // Below the committed offset the history is short, and no record was lost unread.
  const bool is_history = task.phase == Phase::kChecking || task.phase == Phase::kRestoring;
  if (is_history || options_.on_unread_deleted == OnUnreadDeleted::kContinue) {
    spdlog::warn("{}: offset {} is not in the log any more; going on where the log starts", why, task.next);
    // The records before it must be committed before the partition starts over.
    transactions_.End(/*may_commit=*/true);
    PrepareAgain(task);
    if (task.phase != Phase::kFailed) source_.Reassign(task, tasks_);
    return;
  }
  FailPartition(
      task,
      absl::StrCat(why, ": offset ", task.next,
                   " is not in the log any more: records were deleted unread, or the topic was recreated; "
                   "restart to see which, reset the group's offsets, or set on_unread_deleted to continue"));
}

void Ownership::PrepareAgain(Task& task) {
  snapshots_.Drop(task);
  task.filter.reset();  // its memory goes back before the new one asks for some
  const absl::Status asked = state_.Await([&] {
    const auto committed = cluster_.Committed(options_.input, task.id + 1);
    if (!committed.ok()) return committed.status();
    assigner_.SetTopicId(cluster_.TopicId());
    auto prepared = PrepareOne(task.id, committed->back(), Uncommitted::kRecreated, absl::InfinitePast());
    if (!prepared.ok()) return prepared.status();
    (*prepared)->counts = task.counts;
    (*prepared)->unread_deleted += task.unread_deleted;
    task = std::move(**prepared);
    return AwaitTotals({&task});
  });
  if (asked.ok()) {
    if (task.lacks_memory) SayLackOfMemory();
    if (task.phase != Phase::kFailed) source_.Seek(task);
    return;
  }
  if (!absl::IsCancelled(asked)) state_.fatal = asked;
  task.Fail(std::string(asked.message()));
}

bool Ownership::GoOnLoading(int32_t partition, absl::string_view what) {
  state_.heartbeat.Beat();
  source_.StayAlive();
  if (std::exchange(loading_, partition) != partition) {
    state_.SetWaiting(absl::StrCat("the ", what, " of ", options_.input, "-", partition, " is being loaded"));
  }
  return !state_.stop.requested();
}

void Ownership::LoadingEnds() {
  if (std::exchange(loading_, std::nullopt)) state_.SetWaiting("");
}

}  // namespace lethe
