// The loop of the daemon, readable in one direction: poll -> id -> verdict -> write -> commit.
#ifndef LETHE_SRC_PIPELINE_WORKER_H_
#define LETHE_SRC_PIPELINE_WORKER_H_

#include "absl/status/status.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/output/held_partitions.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/output/snapshot_cycle.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/output/warnings.h"
#include "src/pipeline/phases.h"
#include "src/pipeline/task/source.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe {

// Sees the outside through its source, its sink and the group alone. Not thread-safe: it belongs to one
// thread.
class Worker {
 public:
  // The arguments outlive it; Run() makes the first call. `tasks` are the assigned partitions. `snapshots` is
  // null if none are taken.
  Worker(const DaemonOptions& options, const Topics& topics, WorkerState& state, Tasks& tasks, Source& source,
         Sink& sink, Group& group, Snapshots* snapshots);

  // Returns when a stop is requested or an error is fatal (WorkerState::fatal).
  void Run();

  HeldPartitions& held() { return held_; }
  SnapshotCycle& snapshots() { return snapshots_; }
  Transactions& transactions() { return transactions_; }
  const SourcePace& pace() const { return pace_; }
  Warnings& warnings() { return warnings_; }

 private:
  absl::Status Open();
  void Step();
  void Close();
  // Not OK: the transaction must be aborted; the rest of the batch is read again.
  absl::Status Process();
  void HandleEvent(const InputRecord& at);

  WorkerState& state_;
  Tasks& tasks_;
  Source& source_;
  Sink& sink_;
  Group& group_;
  HeldPartitions held_;
  SnapshotCycle snapshots_;
  Warnings warnings_;
  Transactions transactions_;
  SourcePace pace_;
  Phases phases_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_WORKER_H_
