#include "src/pipeline/assign/input_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(5);
// A broker that has just started may not know a topic yet, so one answer does not count.
constexpr int kAbsences = 2;
// A rebalance may wait for a member that does not answer; and there may be a cause that no rebalance cures.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kMostDoublings = 7;  // an hour

}  // namespace

InputWatch::InputWatch(const Workplace& place, Assigner& assigner)
    : options_(place.options()),
      state_(place.state),
      source_(place.source),
      cluster_(place.cluster),
      tasks_(place.tasks),
      assigner_(assigner),
      // A restarted static member gets its old assignment, even if partitions were added meanwhile.
      given_partitions_(options_.static_membership == StaticMembership::kNever ? place.topics().partitions
                                                                               : 0) {}

void InputWatch::Look() {
  const absl::Time now = state_.clock.Steady();
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  const auto partitions = cluster_.CountPartitions();
  NoteAbsence(absl::IsNotFound(partitions.status()));
  // The topic, and its committed offsets, may have been deleted meanwhile.
  if (tasks_.empty()) given_partitions_ = 0;
  if (!partitions.ok()) return;
  LookForAnotherTopic();
  NoteGrowth(*partitions);
  LookForUnassigned(*partitions, now);
}

void InputWatch::NoteAbsence(bool absent) {
  absences_ = absent ? absences_ + 1 : 0;
  const bool gone = absences_ >= kAbsences;
  if (std::exchange(is_gone_, gone) == gone) return;
  if (!gone) return state_.SetWaiting("");
  const std::string why = absl::StrCat(
      "input topic ", options_.input,
      " was deleted: records written so far stay; recreate it and it is read from its start, or stop");
  spdlog::error("lane {}: {}", state_.lane, why);
  state_.SetWaiting(why);
}

void InputWatch::LookForAnotherTopic() {
  const auto judged = std::find_if(tasks_.begin(), tasks_.end(),
                                   [](const auto& each) { return !each.second->topic_id.empty(); });
  if (judged == tasks_.end()) return;
  const std::string id = cluster_.TopicId();
  if (!topic_id_.IsRecreated(judged->second->topic_id, id)) return;
  for (auto& [partition, task] : tasks_) {
    if (task->phase == Phase::kFailed || !IsOfAnotherTopic(task->topic_id, id)) continue;
    std::string why = RecreatedUnread(source_.Name(*task), task->next);
    if (task->in_transaction()) {
      task->stop_before_next = std::move(why);  // what was judged was read, of either topic
      continue;
    }
    FailPartition(*task, std::move(why));
    source_.SetPaused(*task, true);
  }
}

void InputWatch::NoteGrowth(int32_t partitions) {
  assigner_.SetPartitions(partitions);
  for (auto& [id, task] : tasks_) {
    if (!assigner_.HasGrownFor(*task)) continue;
    const auto log = cluster_.Log(id);
    if (!log.ok()) return;  // at the next look
    assigner_.NoteGrowth(*task, log->end);
  }
}

void InputWatch::LookForUnassigned(int32_t count, absl::Time now) {
  if (count <= given_partitions_) return;
  const auto committed = cluster_.Committed(options_.input, count);
  if (!committed.ok()) return;
  int32_t unassigned = given_partitions_;
  while (unassigned < count &&
         ((*committed)[static_cast<size_t>(unassigned)].offset >= 0 || tasks_.contains(unassigned))) {
    ++unassigned;
  }
  if (unassigned == count) {
    given_partitions_ = count;
    unassigned_since_ = absl::InfiniteFuture();
    rejoined_ = 0;
    return;
  }
  unassigned_since_ = std::min(unassigned_since_, now);
  if (now - unassigned_since_ < kPatience * (1 << std::min(rejoined_, kMostDoublings))) return;
  spdlog::warn("lane {}: {}-{} has had no owner for {}: rejoining the group for a new assignment",
               state_.lane, options_.input, unassigned,
               absl::FormatDuration(absl::Trunc(now - unassigned_since_, absl::Seconds(1))));
  unassigned_since_ = now;
  ++rejoined_;
  if (absl::Status joined = source_.Rejoin(); !joined.ok()) state_.fatal = joined;
}

}  // namespace lethe
