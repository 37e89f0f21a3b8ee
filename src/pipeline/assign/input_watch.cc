#include "src/pipeline/assign/input_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);
// The share of the worker's time that the looks of many topics may take: a tenth.
constexpr int kPauses = 9;
// A broker that has just started may not know a topic yet, so one answer does not count.
constexpr int kAbsences = 2;
// The owner may just have been given it; and there may be a cause that no rebalance cures.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr int kMostDoublings = 9;  // an hour and a half

std::string WhyGone(const Flow& flow) {
  if (!flow.options.half.routed_from.empty()) return LostRepartitionTopic(flow.options);
  return absl::StrCat(
      "input topic ", flow.options.input,
      " was deleted: records written so far stay; recreate it and it is read from its start, or stop");
}

}  // namespace

InputWatch::InputWatch(const Workplace& place, Ownership& ownership)
    : options_(place.options()),
      state_(place.state),
      source_(place.source),
      cluster_(place.cluster),
      tasks_(place.tasks),
      flows_(place.shared.flows),
      ownership_(ownership) {}

void InputWatch::Look() {
  const absl::Time now = state_.clock.Steady();
  const int32_t count = flows_.size();
  if (count == 0 || now < next_look_) return;
  std::vector<std::string> inputs;
  for (int32_t flow = 0; flow < count; ++flow) inputs.push_back(flows_.at(flow).options.input);
  const ByTopic<int32_t> counts = cluster_.CountPartitions(inputs);
  std::vector<Seen> seen;
  for (int32_t number = 0; number < count; ++number) {
    const Flow& flow = flows_.at(number);
    // A restarted static member gets its old assignment, even if partitions were added meanwhile.
    const bool is_static = options_.process.static_membership != StaticMembership::kNever;
    Watched& watched =
        watched_.try_emplace(number, Watched{is_static ? 0 : flow.topics.partitions}).first->second;
    const absl::StatusOr<int32_t>& partitions = counts.at(flow.options.input);
    NoteAbsence(flow, watched, absl::IsNotFound(partitions.status()));
    std::vector<Task*> tasks = TasksOf(flow);
    // The topic, and its committed offsets, may have been deleted meanwhile.
    if (tasks.empty()) watched.given_partitions = 0;
    // Without Describe the group assigns none of its partitions; with it another member may have them.
    if (absl::IsPermissionDenied(partitions.status())) {
      MeetDenial(number, std::string(partitions.status().message()));
    } else if (partitions.ok() && tasks.empty()) {
      denied_.erase(number);
    }
    if (partitions.ok()) seen.push_back({flow, watched, *partitions, std::move(tasks)});
  }
  are_all_absent_ = std::all_of(watched_.begin(), watched_.end(),
                                [](const auto& each) { return each.second.absences > 0; });
  TryDenied();
  LookForOtherTopics(seen);
  for (const Seen& each : seen) NoteGrowth(each);
  LookForUnassigned(seen, now);
  ownership_.LookForAnswers();
  const absl::Time end = state_.clock.Steady();
  next_look_ = std::max(now + kLookEvery, count == 1 ? now : end + kPauses * (end - now));
}

std::vector<Task*> InputWatch::TasksOf(const Flow& flow) const {
  std::vector<Task*> tasks;
  const auto end = tasks_.lower_bound({flow.number + 1, 0});
  for (auto each = tasks_.lower_bound({flow.number, 0}); each != end; ++each) {
    tasks.push_back(each->second.get());
  }
  return tasks;
}

void InputWatch::NoteAbsence(const Flow& flow, Watched& watched, bool absent) {
  watched.absences = absent ? watched.absences + 1 : 0;
  const bool gone = watched.absences >= kAbsences;
  if (std::exchange(watched.is_gone, gone) != gone && gone) spdlog::error("{}", WhyGone(flow));
}

void InputWatch::MeetDenial(int32_t flow, const std::string& why) {
  const std::string& input = flows_.at(flow).options.input;
  const auto [denial, is_new] = denied_.try_emplace(
      flow, absl::StrCat("input topic ", input, " may not be read: ", why, ": grant this user Read on topic ",
                         input, "; it is tried again every few seconds"));
  if (is_new) spdlog::error("{}", denial->second);
}

void InputWatch::EndDenial(int32_t flow) {
  if (denied_.erase(flow) > 0) spdlog::info("{} may be read again", flows_.at(flow).options.input);
}

void InputWatch::TryDenied() {
  for (const auto& [flow, why] : denied_) {
    for (Task* task : TasksOf(flows_.at(flow))) {
      const bool is_read = task->phase() == Phase::kActive || task->phase() == Phase::kRestoring;
      if (is_read && !task->paused() && !task->pace().waits() && !task->pace().peek) source_.Seek(*task);
    }
  }
}

std::map<std::string, std::string> InputWatch::Unreadable() const {
  std::map<std::string, std::string> unreadable;
  for (const auto& [flow, why] : denied_) unreadable.emplace(flows_.at(flow).options.input, why);
  for (const auto& [number, watched] : watched_) {
    const Flow& flow = flows_.at(number);
    const absl::Duration unassigned = state_.clock.Steady() - watched.unassigned_since;
    if (watched.is_gone) {
      unreadable.emplace(flow.options.input, WhyGone(flow));
    } else if (unassigned >= kLookEvery && flows_.are_several()) {
      unreadable.emplace(flow.options.input,
                         absl::StrCat(flow.options.input, " has partitions without an owner, for ",
                                      absl::FormatDuration(absl::Trunc(unassigned, absl::Seconds(1))),
                                      ": lethe rejoins the group for a new assignment"));
    }
  }
  return unreadable;
}

void InputWatch::LookForOtherTopics(const std::vector<Seen>& seen) {
  std::vector<const Seen*> asked;
  std::vector<std::string> inputs;
  for (const Seen& each : seen) {
    const bool has_id = std::any_of(each.tasks.begin(), each.tasks.end(),
                                    [](const Task* task) { return !task->topic_id().empty(); });
    if (!has_id) continue;
    asked.push_back(&each);
    inputs.push_back(each.flow.options.input);
  }
  if (inputs.empty()) return;
  const std::map<std::string, std::string> ids = cluster_.TopicIds(inputs);
  for (const Seen* each : asked) {
    const auto id = ids.find(each->flow.options.input);
    const std::string present = id == ids.end() ? "" : id->second;
    // Of a topic that was created again some partitions may have come after that.
    const auto other = std::find_if(each->tasks.begin(), each->tasks.end(), [&](const Task* task) {
      return task->phase() != Phase::kFailed && IsOfAnotherTopic(task->topic_id(), present);
    });
    const std::string judged = other == each->tasks.end() ? present : (*other)->topic_id();
    if (each->watched.topic_id.IsRecreated(judged, present)) StopOnOtherTopic(*each, present);
  }
}

void InputWatch::StopOnOtherTopic(const Seen& seen, const std::string& id) {
  for (Task* task : seen.tasks) {
    if (task->phase() == Phase::kFailed || !IsOfAnotherTopic(task->topic_id(), id)) continue;
    std::string why = RecreatedUnread(task->flow()->options, task->id().partition, task->next());
    if (task->in_transaction()) {
      task->StopBeforeNext(std::move(why));  // what was judged was read, of either topic
      continue;
    }
    FailPartition(*task, std::move(why));
    source_.SetPaused(*task, true);
  }
}

void InputWatch::NoteGrowth(const Seen& seen) {
  Assigner& assigner = ownership_.AssignerOf(seen.flow);
  assigner.SetPartitions(seen.partitions);
  std::vector<int32_t> grown;
  for (const Task* task : seen.tasks) {
    if (assigner.HasGrownFor(*task)) grown.push_back(task->id().partition);
  }
  if (grown.empty()) return;
  const std::string& input = seen.flow.options.input;
  const auto logs = std::move(cluster_.AskLogs({{input, std::move(grown)}}).at(input));
  if (!logs.ok()) return;  // at the next look
  for (Task* task : seen.tasks) {
    const auto log = logs->find(task->id().partition);
    if (log != logs->end()) assigner.NoteGrowth(*task, log->second.end);
  }
}

void InputWatch::LookForUnassigned(const std::vector<Seen>& seen, absl::Time now) {
  std::map<std::string, int32_t> wanted;
  for (const Seen& each : seen) {
    if (each.partitions > each.watched.given_partitions) wanted[each.flow.options.input] = each.partitions;
  }
  if (wanted.empty()) return;
  const auto committed = cluster_.AskCommitted(wanted);
  bool rejoins = false;
  for (const Seen& each : seen) {
    const auto answer = committed.find(each.flow.options.input);
    if (answer == committed.end() || !answer->second.ok()) continue;
    rejoins = IsUnassignedForLong(each, *answer->second, now) || rejoins;
  }
  if (!rejoins) return;
  if (absl::Status joined = source_.Rejoin(); !joined.ok()) state_.fatal = joined;
}

bool InputWatch::IsUnassignedForLong(const Seen& seen, const Cluster::CommittedOffsets& committed,
                                     absl::Time now) {
  Watched& watched = seen.watched;
  int32_t unassigned = watched.given_partitions;
  while (unassigned < seen.partitions && (committed[static_cast<size_t>(unassigned)].offset >= 0 ||
                                          tasks_.contains({seen.flow.number, unassigned}))) {
    ++unassigned;
  }
  // A topic that was refused at its assignment has no commits, although its partitions have an owner.
  const bool is_refused = std::any_of(seen.tasks.begin(), seen.tasks.end(),
                                      [](const Task* task) { return task->phase() == Phase::kFailed; });
  if (unassigned == seen.partitions || is_refused) {
    if (!is_refused) watched.given_partitions = seen.partitions;
    watched.unassigned_since = absl::InfiniteFuture();
    watched.rejoined = 0;
    return false;
  }
  watched.unassigned_since = std::min(watched.unassigned_since, now);
  const absl::Duration waited = now - watched.unassigned_since;
  if (waited < kPatience * (1 << std::min(watched.rejoined, kMostDoublings))) return false;
  spdlog::warn("lane {}: {} has had no owner for {}: rejoining the group for a new assignment", state_.lane,
               seen.flow.NameOf(unassigned), absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))));
  watched.unassigned_since = now;
  ++watched.rejoined;
  return true;
}

}  // namespace lethe
