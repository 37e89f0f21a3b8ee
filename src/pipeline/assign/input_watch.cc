#include "src/pipeline/assign/input_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);
// The share of the worker's time that the looks may take: a tenth.
constexpr int kPauses = 9;
// A broker that has just started may not know a topic yet, so one answer does not count.
constexpr int kAbsences = 2;
// A rebalance may wait for a member that does not answer; and there may be a cause that no rebalance cures.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kMostDoublings = 7;  // an hour

std::string WhyGone(const Flow& flow) {
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
  // They take turns, since the worker waits for each answer.
  const int32_t number = next_flow_++ % count;
  const Flow& flow = flows_.at(number);
  // A restarted static member gets its old assignment, even if partitions were added meanwhile.
  const bool is_static = options_.static_membership != StaticMembership::kNever;
  const auto [watched, is_new] =
      watched_.try_emplace(number, Watched{is_static ? 0 : flow.topics.partitions});
  Look(flow, watched->second, now);
  const absl::Time end = state_.clock.Steady();
  next_look_ = std::max(now + kLookEvery / count, count == 1 ? now : end + kPauses * (end - now));
}

void InputWatch::Look(const Flow& flow, Watched& watched, absl::Time now) {
  const auto partitions = cluster_.CountPartitions(flow.options.input);
  NoteAbsence(flow, watched, absl::IsNotFound(partitions.status()));
  // The topic, and its committed offsets, may have been deleted meanwhile.
  if (TasksOf(flow).empty()) watched.given_partitions = 0;
  if (!partitions.ok()) return;
  LookForAnotherTopic(flow, watched);
  NoteGrowth(flow, *partitions);
  LookForUnassigned(flow, watched, *partitions, now);
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

std::map<std::string, std::string> InputWatch::Gone() const {
  std::map<std::string, std::string> gone;
  for (const auto& [number, watched] : watched_) {
    if (!watched.is_gone) continue;
    const Flow& flow = flows_.at(number);
    gone.emplace(flow.options.input, WhyGone(flow));
  }
  return gone;
}

void InputWatch::LookForAnotherTopic(const Flow& flow, Watched& watched) {
  const std::vector<Task*> tasks = TasksOf(flow);
  const auto judged =
      std::find_if(tasks.begin(), tasks.end(), [](const Task* each) { return !each->topic_id.empty(); });
  if (judged == tasks.end()) return;
  const std::string id = cluster_.TopicId(flow.options.input);
  if (!watched.topic_id.IsRecreated((*judged)->topic_id, id)) return;
  for (Task* task : tasks) {
    if (task->phase == Phase::kFailed || !IsOfAnotherTopic(task->topic_id, id)) continue;
    std::string why = RecreatedUnread(task->Name(), task->next);
    if (task->in_transaction()) {
      task->stop_before_next = std::move(why);  // what was judged was read, of either topic
      continue;
    }
    FailPartition(*task, std::move(why));
    source_.SetPaused(*task, true);
  }
}

void InputWatch::NoteGrowth(const Flow& flow, int32_t partitions) {
  Assigner& assigner = ownership_.AssignerOf(flow);
  assigner.SetPartitions(partitions);
  for (Task* task : TasksOf(flow)) {
    if (!assigner.HasGrownFor(*task)) continue;
    const auto log = cluster_.Log(flow.options.input, task->id.partition);
    if (!log.ok()) return;  // at the next look
    assigner.NoteGrowth(*task, log->end);
  }
}

void InputWatch::LookForUnassigned(const Flow& flow, Watched& watched, int32_t count, absl::Time now) {
  if (count <= watched.given_partitions) return;
  const auto committed = cluster_.Committed(flow.options.input, count);
  if (!committed.ok()) return;
  int32_t unassigned = watched.given_partitions;
  while (unassigned < count && ((*committed)[static_cast<size_t>(unassigned)].offset >= 0 ||
                                tasks_.contains({flow.number, unassigned}))) {
    ++unassigned;
  }
  if (unassigned == count) {
    watched.given_partitions = count;
    watched.unassigned_since = absl::InfiniteFuture();
    watched.rejoined = 0;
    return;
  }
  watched.unassigned_since = std::min(watched.unassigned_since, now);
  const absl::Duration waited = now - watched.unassigned_since;
  if (waited < kPatience * (1 << std::min(watched.rejoined, kMostDoublings))) return;
  spdlog::warn("lane {}: {} has had no owner for {}: rejoining the group for a new assignment", state_.lane,
               flow.NameOf(unassigned), absl::FormatDuration(absl::Trunc(waited, absl::Seconds(1))));
  watched.unassigned_since = now;
  ++watched.rejoined;
  if (absl::Status joined = source_.Rejoin(); !joined.ok()) state_.fatal = joined;
}

}  // namespace lethe
