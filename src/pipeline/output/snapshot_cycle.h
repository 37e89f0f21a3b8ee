// Begins the snapshots of partitions, and names them in commits.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_

#include <vector>

#include "src/pipeline/task/task.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class SnapshotCycle {
 public:
  explicit SnapshotCycle(const Clock& clock) : clock_(clock) {}

  // Before a commit of these: names the snapshots that were written since.
  void Name(const std::vector<Task*>& partitions);
  // After a commit: looks after the snapshots that were begun, and begins those that are due.
  void Take(const Tasks& tasks);
  // No commit of this worker will name the snapshot that is being taken.
  void Drop(Task& task);

 private:
  void Begin(Task& task);

  const Clock& clock_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_
