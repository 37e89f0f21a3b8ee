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
      flows_(place.shared.flows),
      kept_(place.shared.kept),
      state_(place.state),
      source_(place.source),
      cluster_(place.cluster),
      tasks_(place.tasks),
      membership_(membership),
      held_(held),
      snapshots_(snapshots),
      transactions_(transactions) {}

void Ownership::Assign(const std::vector<TopicPartition>& partitions) {
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
    for (const TopicPartition& partition : partitions) {
      const Task* task = Find(tasks_, partition);
      if (task != nullptr && task->phase != Phase::kFailed) assigned.push_back(task);
    }
  }
  source_.Assign(assigned);
  if (prepared.ok()) return;
  spdlog::warn("lane {}: {}", state_.lane, std::string(prepared.message()));
  if (!absl::IsAborted(prepared) && !absl::IsCancelled(prepared)) state_.fatal = prepared;
}

void Ownership::Revoke(const std::vector<TopicPartition>& partitions, bool lost) {
  if (lost && !partitions.empty()) {
    spdlog::warn(
        "lane {}: lost {} partition{} before revoking them; the next owner replays their uncommitted records",
        state_.lane, partitions.size(), partitions.size() == 1 ? "" : "s");
  }
  // The group is in its next generation, and no other member owns the partitions before this one releases
  // them: it may still commit. (Lost partitions were taken away before.)
  if (options_.assignment == Assignment::kCooperative && !lost) lost = !source_.TakeGeneration();
  transactions_.End(!lost);
  Release(partitions);
  source_.Unassign(partitions);
}

void Ownership::ReleaseAll() {
  std::vector<TopicPartition> all;
  for (const auto& [id, task] : tasks_) all.push_back(id);
  Release(all);
}

void Ownership::Release(const std::vector<TopicPartition>& partitions) {
  for (const TopicPartition& partition : partitions) {
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

absl::Status Ownership::Prepare(const std::vector<TopicPartition>& partitions) {
  std::map<int32_t, std::vector<int32_t>> by_flow;
  for (const TopicPartition& each : partitions) by_flow[each.flow].push_back(each.partition);
  for (const auto& [number, of_flow] : by_flow) {
    const Flow& flow = flows_.at(number);
    absl::Status prepared = Prepare(flow, of_flow);
    if (!prepared.ok()) prepared = FailFlow(flow, of_flow, prepared);
    if (!prepared.ok()) return prepared;
  }
  SayLackOfMemory();
  return absl::OkStatus();
}

absl::Status Ownership::Prepare(const Flow& flow, const std::vector<int32_t>& partitions) {
  const std::string& input = flow.options.input;
  Assigner& assigner = AssignerOf(flow);
  assigner.SetPartitions(*std::max_element(partitions.begin(), partitions.end()) + 1);
  const int32_t count = assigner.partitions();
  std::vector<CommittedOffset> committed;
  absl::Status asked = state_.Await([&] {
    auto answer = cluster_.Committed(input, count);
    if (answer.ok()) committed = std::move(*answer);
    return answer.status();
  });
  if (asked.ok() && !assigner.has_begun()) {
    asked = state_.Await([&] {
      return CheckScope(flow.options, count, [this](const std::string& topic, int32_t of_partitions) {
        return cluster_.Committed(topic, of_partitions);
      });
    });
  }
  if (!asked.ok()) return asked;

  assigner.SetTopicId(cluster_.TopicId(input));
  std::vector<Task*> prepared;
  int begin = 0;
  for (const int32_t partition : partitions) {
    const CommittedOffset& there = committed[static_cast<size_t>(partition)];
    const Uncommitted why = Assigner::WhyUncommitted(partition, committed, assigner.has_begun());
    const absl::Time give_up = state_.clock.Steady() + kNewPartitionPatience;
    auto task = PrepareOne({flow.number, partition}, there, why, give_up);
    if (!task.ok()) return task.status();
    if (there.offset < 0 && why == Uncommitted::kNew) ++begin;
    prepared.push_back(task->get());
    tasks_[prepared.back()->id] = *std::move(task);
  }
  asked = AwaitTotals(prepared);
  if (!asked.ok()) return asked;
  if (begin > 0) {
    spdlog::info("lane {}: no committed offsets for {} of {} partitions of {}; starting at {}", state_.lane,
                 begin, partitions.size(), input,
                 flow.options.start == Start::kLatest ? "latest" : "earliest");
  }
  std::erase_if(prepared, [&](const Task* task) {
    return !Assigner::NeedsFirstCommit(*task, committed[static_cast<size_t>(task->id.partition)]);
  });
  if (!prepared.empty()) asked = transactions_.CommitStart(prepared);
  if (asked.ok()) assigner.SetBegun();
  return asked;
}

absl::Status Ownership::FailFlow(const Flow& flow, const std::vector<int32_t>& partitions,
                                 const absl::Status& why) {
  if (flows_.size() == 1 || absl::IsAborted(why) || absl::IsCancelled(why) || !state_.fatal.ok()) return why;
  for (const int32_t partition : partitions) {
    std::unique_ptr<Task>& task = tasks_[{flow.number, partition}];
    if (task == nullptr) {
      task = std::make_unique<Task>();
      task->id = {flow.number, partition};
      task->flow = &flow;
    }
    task->Fail(absl::StrCat(flow.options.input, " is not read: ", why.message()));
  }
  spdlog::error("lane {}: {} is not read: {}", state_.lane, flow.options.input, std::string(why.message()));
  return absl::OkStatus();
}

Assigner& Ownership::AssignerOf(const Flow& flow) {
  return assigners_
      .try_emplace(flow.number, flow, kept_,
                   [this](TopicPartition partition) { return GoOnLoading(partition, "snapshot"); })
      .first->second;
}

void Ownership::GiveUpForMemory() {
  for (auto& [flow, assigner] : assigners_) assigner.GiveUpForMemory(state_.clock.Steady());
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
  std::map<const Flow*, int64_t> lacking_of;
  for (const auto& [id, task] : tasks_) {
    if (task->lacks_memory) ++lacking_of[task->flow];
  }
  int64_t lacking = 0;
  for (const auto& [flow, partitions] : lacking_of) {
    if (AssignerOf(*flow).MakeRoomForFilters(partitions, now)) lacking += partitions;
  }
  if (lacking == 0) return;
  next_memory_look_ = now + kRejoinForMemoryEvery;
  spdlog::info("lane {}: there is memory for the filters of {} partitions that had none: rejoining the group",
               state_.lane, lacking);
  wants_to_rejoin_ = true;
}

absl::StatusOr<std::unique_ptr<Task>> Ownership::PrepareOne(TopicPartition id,
                                                            const CommittedOffset& committed,
                                                            Uncommitted uncommitted, absl::Time give_up) {
  const Flow& flow = flows_.at(id.flow);
  LogState log;
  const absl::Status asked = state_.Await([&] {
    auto answer = cluster_.Log(flow.options.input, id.partition);
    if (answer.ok()) log = *answer;
    const bool wait = absl::IsNotFound(answer.status()) && state_.clock.Steady() < give_up;
    return wait ? absl::UnavailableError(answer.status().message()) : answer.status();
  });
  if (!asked.ok()) return asked;
  AskLogTimes(id, committed, log);
  auto task = AssignerOf(flow).Prepare(id.partition, committed, log, uncommitted, state_.clock.Wall());
  LoadingEnds();
  return task;
}

absl::Status Ownership::AwaitTotals(const std::vector<Task*>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  const TopicPartition first = partitions.front()->id;
  const absl::Status restored = state_.Await([&] {
    return RestoreTotals(partitions, cluster_, state_.clock,
                         [&] { return GoOnLoading(first, "counter state"); });
  });
  LoadingEnds();
  return restored;
}

void Ownership::AskLogTimes(TopicPartition id, const CommittedOffset& committed, LogState& log) {
  const Flow& flow = flows_.at(id.flow);
  if (!AssignerOf(flow).NeedsLogTimes(committed, log)) return;
  state_.heartbeat.Beat();
  const auto first = cluster_.TimeAt(flow.options.input, id.partition, log.start);
  state_.heartbeat.Beat();
  const auto next = cluster_.TimeAt(flow.options.input, id.partition, committed.offset);
  if (first.ok() && next.ok()) log.times = LogTimesOf(*first, *next, state_.clock.Wall());
}

void Ownership::Rebuild(Task& task) {
  spdlog::warn(
      "{}: the log is not the one that the filter was built from (truncated or recreated): rebuilding the "
      "filter",
      task.Name());
  if (task.snapshot) AssignerOf(*task.flow).Refuse(*task.snapshot);
  PrepareAgain(task);
}

void Ownership::LoseUnread(Task& task, const std::string& why) {
  held_.Release(task);
  // Below the committed offset the history is short, and no record was lost unread.
  const bool is_history = task.phase == Phase::kChecking || task.phase == Phase::kRestoring;
  if (is_history || task.flow->options.on_unread_deleted == OnUnreadDeleted::kContinue) {
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
  const std::string& input = task.flow->options.input;
  const absl::Status asked = state_.Await([&] {
    const auto committed = cluster_.Committed(input, task.id.partition + 1);
    if (!committed.ok()) return committed.status();
    AssignerOf(*task.flow).SetTopicId(cluster_.TopicId(input));
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
  if (!absl::IsCancelled(asked) && flows_.size() == 1) state_.fatal = asked;
  task.Fail(std::string(asked.message()));
}

bool Ownership::GoOnLoading(TopicPartition partition, absl::string_view what) {
  state_.heartbeat.Beat();
  source_.StayAlive();
  if (std::exchange(loading_, partition) != partition) {
    state_.SetWaiting(absl::StrCat(
        "the ", what, " of ", flows_.at(partition.flow).NameOf(partition.partition), " is being loaded"));
  }
  return !state_.stop.requested();
}

void Ownership::LoadingEnds() {
  if (std::exchange(loading_, std::nullopt)) state_.SetWaiting("");
}

}  // namespace lethe
