// Puts a task into the state that a test begins with.
#ifndef LETHE_TESTS_SUPPORT_TASK_PEER_H_
#define LETHE_TESTS_SUPPORT_TASK_PEER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "src/pipeline/task/task.h"

namespace lethe {

class TaskPeer {
 public:
  static void SetId(Task& task, TopicPartition id) { task.id_ = id; }
  // Everything before `end` is committed, and in the filter.
  static void SetEnd(Task& task, int64_t end) { task.next_ = task.filter_end_ = task.committed_ = end; }
  static void SetMark(Task& task, const LogMark& mark) { task.mark_ = task.committed_mark_ = mark; }
  static void SetTimedRecords(Task& task, int64_t records) {
    task.timed_records_ = task.committed_timed_records_ = records;
  }
  static void SetPoints(Task& task, const RestartPoints& points) { task.points_ = points; }
  static void SetCoveredSince(Task& task, absl::Time time) { task.covered_since_ = time; }
  // As after its return: the record before F is compared first.
  static void Check(Task& task) {
    task.phase_ = Phase::kChecking;
    task.next_ = task.mark_.offset;
  }
  static std::unique_ptr<Partition> TakeFilter(Task& task) { return std::move(task.filter_); }
  static void KnowsSinceStreamTime(Task& task) { task.KnowsSinceStreamTime(); }
};

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_TASK_PEER_H_
