// What a partition does with what is read of it, by its phase: compared, replayed, judged, or passed over.
#ifndef LETHE_SRC_PIPELINE_PHASES_H_
#define LETHE_SRC_PIPELINE_PHASES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "src/pipeline/judge.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/replay.h"
#include "src/pipeline/task/group.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Phases {
 public:
  Phases(const DaemonOptions& options, const Topics& topics, const Tuning& tuning, WorkerState& state,
         Source& source, HeldPartitions& held, Transactions& transactions, Group& group, Warnings& warnings);

  // A run of its records. Not OK: the transaction must be aborted, and the rest of the batch is replayed.
  absl::Status Advance(Task& task, RecordRun run);
  // The client has come to the end of the log, perhaps over control records and aborted batches.
  void ReachEnd(Task& task, int64_t end);

  // The batch that begins at `base` cannot be read: by policy its partition stops in front of it, or passes
  // over it.
  void MeetUnreadable(Task& task, int64_t base, const std::string& why);

  // After a batch.
  void GiveBack() { judge_.GiveBack(); }

 private:
  absl::Status JudgeRun(Task& task, RecordRun run);
  // Reads where the search for the end of the unreadable batch wants to, or passes over the batch.
  void SearchReadable(Task& task);
  void PassOver(Task& task, int64_t end);

  const Tuning& tuning_;
  WorkerState& state_;
  Source& source_;
  HeldPartitions& held_;
  Transactions& transactions_;
  Group& group_;
  Replay replay_;
  Judge judge_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PHASES_H_
