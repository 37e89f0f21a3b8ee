// Begins the snapshots of partitions, and names them in commits.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_

#include <string>
#include <vector>

#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class SnapshotCycle {
 public:
  // `snapshots` is null if none are taken: then nothing happens.
  SnapshotCycle(const DaemonOptions& options, std::string id_fingerprint, Snapshots* snapshots,
                const Clock& clock)
      : options_(options), id_fingerprint_(std::move(id_fingerprint)), snapshots_(snapshots), clock_(clock) {}

  // Before a commit of these: names the snapshots that were written since.
  void Name(const std::vector<Task*>& partitions);
  // After a commit: looks after the snapshots that were begun, and begins those that are due.
  void Take(const Tasks& tasks);
  // No commit of this worker will name the snapshot that is being taken.
  void Drop(Task& task);

 private:
  void Begin(Task& task);

  const DaemonOptions& options_;
  const std::string id_fingerprint_;
  Snapshots* const snapshots_;
  const Clock& clock_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SNAPSHOT_CYCLE_H_
