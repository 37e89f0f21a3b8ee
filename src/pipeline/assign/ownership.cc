#include "src/pipeline/assign/ownership.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/pipeline/assign/totals.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// Topics with a line each in the log.
constexpr size_t kMostNamed = 10;
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
  if (options_.process.assignment == Assignment::kCooperative && absl::IsAborted(prepared))
    wants_to_rejoin_ = true;
  std::vector<const Task*> assigned;
  if (prepared.ok()) {
    for (const TopicPartition& partition : partitions) {
      const Task* task = Find(tasks_, partition);
      if (task != nullptr && task->phase() != Phase::kFailed) assigned.push_back(task);
    }
  }
  source_.Assign(assigned);
  if (prepared.ok()) return;
  if (absl::IsCancelled(prepared)) return;  // by the stop
  spdlog::warn("lane {}: {}", state_.lane, std::string(prepared.message()));
  if (!absl::IsAborted(prepared)) state_.fatal = prepared;
}

void Ownership::Revoke(const std::vector<TopicPartition>& partitions, bool lost) {
  if (lost && !partitions.empty()) {
    spdlog::warn("lane {}: lost {} before revoking them; the next owner replays their uncommitted records",
                 state_.lane, Several(static_cast<int64_t>(partitions.size()), "partition"));
  }
  // The group is in its next generation, and no other member owns the partitions before this one releases
  // them: it may still commit. (Lost partitions were taken away before.)
  if (options_.process.assignment == Assignment::kCooperative && !lost) lost = !source_.TakeGeneration();
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
  LETHE_ASSERT(!transactions_.is_open());
  for (const TopicPartition& partition : partitions) {
    const auto found = tasks_.find(partition);
    if (found == tasks_.end()) continue;
    snapshots_.Drop(*found->second);
    held_.Release(*found->second);
    if (found->second->phase() != Phase::kFailed) kept_.Put(std::move(found->second), state_.clock.Steady());
    tasks_.erase(found);
  }
  // A lane without partitions before the next assignment is not at their end.
  if (tasks_.empty()) membership_.SetJoined(false);
}

absl::Status Ownership::Prepare(const std::vector<TopicPartition>& partitions) {
  std::map<int32_t, std::vector<int32_t>> by_flow;
  for (const TopicPartition& each : partitions) by_flow[each.flow].push_back(each.partition);
  std::vector<AssignedTopic> topics;
  for (auto& [number, of_flow] : by_flow) {
    const Flow& flow = flows_.at(number);
    Assigner& assigner = AssignerOf(flow);
    assigner.SetNamed(AreNamed(partitions.size()));
    assigner.SetPartitions(*std::max_element(of_flow.begin(), of_flow.end()) + 1);
    topics.push_back({&flow, std::move(of_flow), assigner.partitions(), assigner.has_begun()});
    without_answer_.erase(number);
  }
  absl::Status asked = AssignmentQuestions(state_, cluster_)
                           .Ask(topics, !flows_.are_several() ? AssignmentQuestions::OfOnlyTopic()
                                                              : AssignmentQuestions::OfOneOfMany());
  if (!asked.ok()) return asked;
  AskLogTimes(topics);
  std::vector<Task*> fresh;
  for (AssignedTopic& topic : topics) {
    if (topic.problem.ok()) topic.problem = Prepare(topic, fresh);
    if (topic.problem.ok()) continue;
    if (absl::Status failed = FailFlow(topic, topic.problem); !failed.ok()) return failed;
  }
  SayNew(topics);
  SayLackOfMemory();
  // Before the first verdict, and of all topics in one transaction: the others stand meanwhile.
  if (!fresh.empty()) asked = transactions_.CommitStart(fresh);
  if (!asked.ok()) return asked;
  for (const AssignedTopic& topic : topics) {
    // Of a topic whose filters had no memory nothing is committed yet.
    const bool has_begun =
        HasBegun(topic.committed) || std::any_of(fresh.begin(), fresh.end(), [&](auto* task) {
          return task->flow() == topic.flow && task->phase() != Phase::kFailed;
        });
    if (topic.problem.ok() && has_begun) AssignerOf(*topic.flow).SetBegun();
  }
  return absl::OkStatus();
}

absl::Status Ownership::Prepare(AssignedTopic& topic, std::vector<Task*>& fresh) {
  const Flow& flow = *topic.flow;
  Assigner& assigner = AssignerOf(flow);
  assigner.SetTopicId(topic.topic_id);
  std::vector<Task*> prepared;
  const UncommittedReason reason(topic.committed, assigner.has_begun());
  for (const int32_t partition : topic.partitions) {
    const CommittedOffset& there = topic.committed[static_cast<size_t>(partition)];
    const Uncommitted why = reason.Of(partition);
    auto task = PrepareOne(topic, partition, why);
    if (!task.ok()) return task.status();
    if (there.offset < 0 && why == Uncommitted::kNew) ++topic.new_partitions;
    prepared.push_back(task->get());
    tasks_[prepared.back()->id()] = *std::move(task);
  }
  if (absl::Status restored = AwaitTotals(prepared); !restored.ok()) return restored;
  std::copy_if(prepared.begin(), prepared.end(), std::back_inserter(fresh), [&](const Task* task) {
    return Assigner::NeedsFirstCommit(*task, topic.committed[static_cast<size_t>(task->id().partition)]);
  });
  return absl::OkStatus();
}

void Ownership::SayNew(const std::vector<AssignedTopic>& topics) const {
  std::map<Start, std::vector<const AssignedTopic*>> by_start;
  for (const AssignedTopic& topic : topics) {
    if (topic.new_partitions > 0) by_start[topic.flow->options.start].push_back(&topic);
  }
  for (const auto& [start, of_start] : by_start) {
    const char* const where = start == Start::kLatest ? "latest" : "earliest";
    if (of_start.size() > kMostNamed) {
      int partitions = 0;
      for (const AssignedTopic* topic : of_start) partitions += topic->new_partitions;
      spdlog::info(
          "lane {}: no committed offsets for {} partitions of {} topics, {} and others; starting at {}",
          state_.lane, partitions, of_start.size(), of_start.front()->flow->options.input, where);
      continue;
    }
    for (const AssignedTopic* topic : of_start) {
      spdlog::info("lane {}: no committed offsets for {} of {} partitions of {}; starting at {}", state_.lane,
                   topic->new_partitions, topic->partitions.size(), topic->flow->options.input, where);
    }
  }
}

absl::Status Ownership::FailFlow(const AssignedTopic& topic, const absl::Status& why) {
  if (!flows_.are_several() || absl::IsAborted(why) || absl::IsCancelled(why) || !state_.fatal.ok())
    return why;
  const Flow& flow = *topic.flow;
  if (topic.has_no_answer) without_answer_[flow.number] = topic.partitions;
  for (const int32_t partition : topic.partitions) {
    std::unique_ptr<Task>& task = tasks_[{flow.number, partition}];
    if (task == nullptr) {
      task = std::make_unique<Task>(TopicPartition{flow.number, partition}, &flow);
    }
    task->Fail(absl::StrCat(flow.options.input, " is not read: ", why.message()));
  }
  spdlog::error("lane {}: {} is not read: {}", state_.lane, flow.options.input, std::string(why.message()));
  return absl::OkStatus();
}

void Ownership::LookForAnswers() {
  std::map<std::string, std::vector<int32_t>> wanted;
  for (auto each = without_answer_.begin(); each != without_answer_.end();) {
    const auto& [flow, partitions] = *each;
    if (Find(tasks_, {flow, partitions.front()}) == nullptr) {
      each = without_answer_.erase(each);
      continue;
    }
    wanted[flows_.at(flow).options.input] = partitions;
    ++each;
  }
  if (wanted.empty()) return;
  for (const auto& [topic, logs] : cluster_.AskLogs(wanted)) {
    if (!logs.ok()) continue;
    spdlog::info("lane {}: the brokers answer for {} by now: rejoining the group", state_.lane, topic);
    wants_to_rejoin_ = true;
  }
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
    if (task->lacks_memory()) lacking.push_back(task.get());
  }
  if (lacking.empty()) return;
  spdlog::error("lane {}: {}{}", state_.lane, lacking[0]->problem(),
                lacking.size() == 1 ? "" : absl::StrCat(" (and ", lacking.size() - 1, " more partitions)"));
}

void Ownership::LookForMemory() {
  const absl::Time now = state_.clock.Steady();
  if (now < next_memory_look_) return;
  next_memory_look_ = now + kLookForMemoryEvery;
  std::vector<std::pair<const Flow*, int64_t>> lacking_of;  // in the order of the tasks
  for (const auto& [id, task] : tasks_) {
    if (!task->lacks_memory()) continue;
    if (lacking_of.empty() || lacking_of.back().first != task->flow())
      lacking_of.emplace_back(task->flow(), 0);
    ++lacking_of.back().second;
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

absl::StatusOr<std::unique_ptr<Task>> Ownership::PrepareOne(const AssignedTopic& topic, int32_t partition,
                                                            Uncommitted uncommitted) {
  state_.heartbeat.Beat();
  auto task = AssignerOf(*topic.flow)
                  .Prepare(partition, topic.committed[static_cast<size_t>(partition)],
                           topic.logs.at(partition), uncommitted, state_.clock.Wall());
  LoadingEnds();
  return task;
}

absl::Status Ownership::AwaitTotals(const std::vector<Task*>& partitions) {
  if (partitions.empty()) return absl::OkStatus();
  const TopicPartition first = partitions.front()->id();
  const absl::Status restored = state_.Await([&] {
    return RestoreTotals(partitions, cluster_, state_.clock,
                         [&] { return GoOnLoading(first, "counter state"); });
  });
  LoadingEnds();
  return restored;
}

void Ownership::AskLogTimes(std::vector<AssignedTopic>& topics) {
  std::vector<LogPlace> places;  // of each log the first record, and the next
  std::vector<LogState*> logs;
  for (AssignedTopic& topic : topics) {
    if (!topic.problem.ok()) continue;
    for (auto& [partition, log] : topic.logs) {
      const CommittedOffset& committed = topic.committed[static_cast<size_t>(partition)];
      if (!AssignerOf(*topic.flow).NeedsLogTimes(committed, log)) continue;
      logs.push_back(&log);
      places.push_back({topic.flow->options.input, partition, log.start});
      places.push_back({topic.flow->options.input, partition, committed.offset});
    }
  }
  if (places.empty()) return;
  state_.heartbeat.Beat();
  const auto times = cluster_.AskTimes(places);
  state_.heartbeat.Beat();
  if (!times.ok()) return;
  for (size_t i = 0; i < logs.size(); ++i) {
    logs[i]->times = LogTimesOf((*times)[2 * i], (*times)[2 * i + 1], state_.clock.Wall());
  }
}

void Ownership::Rebuild(Task& task) {
  spdlog::warn(
      "{}: the log is not the one that the filter was built from (truncated or recreated): rebuilding the "
      "filter",
      task.Name());
  if (task.snapshot()) AssignerOf(*task.flow()).Refuse(*task.snapshot());
  PrepareAgain(task);
}

void Ownership::LoseUnread(Task& task, const std::string& why) {
  held_.Release(task);
  // Below the committed offset the history is short, and no record was lost unread.
  const bool is_history = task.phase() == Phase::kChecking || task.phase() == Phase::kRestoring;
  if (is_history || task.flow()->options.policies.on_unread_deleted == OnUnreadDeleted::kContinue) {
    spdlog::warn("{}: offset {} is not in the log any more; going on where the log starts", why, task.next());
    // The records before it must be committed before the partition starts over.
    transactions_.End(/*may_commit=*/true);
    PrepareAgain(task);
    if (task.phase() != Phase::kFailed) source_.Reassign(task, tasks_);
    return;
  }
  FailPartition(
      task,
      absl::StrCat(why, ": offset ", task.next(),
                   " is not in the log any more: records were deleted unread, or the topic was recreated; "
                   "restart to see which, or set on_unread_deleted to continue"));
}

void Ownership::PrepareAgain(Task& task) {
  snapshots_.Drop(task);
  task.DropFilter();  // its memory goes back before the new one asks for some
  std::vector<AssignedTopic> topics(1);
  AssignedTopic& topic = topics.front();
  topic.flow = task.flow();
  topic.partitions = {task.id().partition};
  topic.all_partitions = task.id().partition + 1;
  topic.has_begun = true;  // by the scope that it has
  absl::Status asked = AssignmentQuestions(state_, cluster_).Ask(topics, AssignmentQuestions::None());
  if (asked.ok()) asked = topic.problem;
  if (asked.ok()) {
    AskLogTimes(topics);
    AssignerOf(*task.flow()).SetTopicId(topic.topic_id);
    auto prepared = PrepareOne(topic, task.id().partition, Uncommitted::kRecreated);
    asked = prepared.status();
    if (asked.ok()) {
      (*prepared)->ContinueCounts(task);
      (*prepared)->AddUnreadDeleted(task.unread_deleted());
      task = std::move(**prepared);
      asked = AwaitTotals({&task});
    }
  }
  if (asked.ok()) {
    if (task.lacks_memory()) SayLackOfMemory();
    if (task.phase() != Phase::kFailed) source_.Seek(task);
    return;
  }
  if (!absl::IsCancelled(asked) && !flows_.are_several()) state_.fatal = asked;
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
