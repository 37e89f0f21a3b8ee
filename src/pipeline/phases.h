// The phases of a partition: its records are compared, replayed, judged or skipped.
#ifndef LETHE_SRC_PIPELINE_PHASES_H_
#define LETHE_SRC_PIPELINE_PHASES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lethe/event.h"
#include "src/pipeline/assign/ownership.h"
#include "src/pipeline/judge.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Not thread-safe: it belongs to the worker's thread.
class Phases {
 public:
  Phases(const Workplace& place, LaneFlows& flows, HeldPartitions& held, Transactions& transactions,
         Ownership& ownership, SourcePaces& pace);

  // Handles a run of the partition's records. Not OK: the worker must abort the transaction and read the rest
  // of the batch again.
  absl::Status Advance(Task& task, RecordRun run);
  // The client has reached the end of the log; control records or aborted batches may come before it.
  void ReachEnd(Task& task, const InputRecord& at);
  // The batch that begins at `base` cannot be read: by policy the partition stops before it or skips it.
  void MeetUnreadable(Task& task, int64_t base, const std::string& why);

 private:
  // kChecking: whether the record is the last one that the filter knows. If so, the restore goes on behind
  // it.
  bool Recognizes(Task& task, const InputRecord& input);
  // kRestoring: replays the records before C. Returns the rest of the run, which is to be judged.
  RecordRun Restore(Task& task, RecordRun run);
  // What the first record that was not replayed waits for, and how many were before it.
  struct Awaited {
    SchemaNeed schema;
    size_t before = 0;
  };
  std::optional<Awaited> Replay(Task& task, RecordRun run);
  // Everything before C was read: the partition is kActive, unless its log differs from the one judged.
  void Activate(Task& task);
  // Compares the record that the commit metadata names, once the run has reached it.
  bool IsLogOfCommit(Task& task, RecordRun run);
  void StopOnOtherLog(Task& task);

  // kActive.
  absl::Status JudgeRun(Task& task, RecordRun run);
  // Other instances learn from the next commit what a partition waits for.
  void SayThatItWaits(Task& task);

  // Seeks the next offset of the search for the end of the unreadable batch, or skips the batch.
  void SearchReadable(Task& task);
  void PassOver(Task& task, int64_t end);

  WorkerState& state_;
  const Flows& all_flows_;
  Source& source_;
  LaneFlows& flows_;
  HeldPartitions& held_;
  Transactions& transactions_;
  Ownership& ownership_;
  SourcePaces& pace_;
  const Tasks& tasks_;
  const std::unique_ptr<Judge> judge_;
  std::vector<Event> replayed_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PHASES_H_
