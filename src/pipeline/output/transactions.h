// The transactions of a worker: one at a time, over all partitions that have carried something out since the
// last.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/options/tuning.h"
#include "src/pipeline/output/held_partitions.h"
#include "src/pipeline/output/record_writer.h"
#include "src/pipeline/output/refusal_search.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/output/snapshot_cycle.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "src/pipeline/output/warnings.h"
#include "src/pipeline/report/lane_figures.h"
#include "src/pipeline/task/source.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe {

// Invariant: between transactions every owned partition's filter is a function of the log up to its committed
// offset (but while it is being restored), and nothing is out beyond it.
//
// Not thread-safe: it belongs to the worker's thread.
class Transactions {
 public:
  Transactions(const DaemonOptions& options, const Topics& topics, const Tuning& tuning, WorkerState& state,
               Source& source, Tasks& tasks, Sink& sink, HeldPartitions& held, SnapshotCycle& snapshots,
               Warnings& warnings);

  // Makes the producer, and fences every earlier one of the same name.
  absl::Status Open();
  bool is_open() const { return open_; }
  // What it has room for yet, at least one record.
  size_t room_records() const;
  size_t room_bytes() const { return static_cast<size_t>(backoff_.max_bytes()); }
  // Until it is to be committed; infinite if none is open.
  absl::Duration time_left() const;
  // Whether it is full, or has been open for the commit interval.
  bool IsDue() const;

  // Takes the partition into the open transaction, or one that is opened for it.
  absl::Status Begin(Task& task);
  // Carries out what was judged of a partition in it. Not OK: the transaction must be aborted.
  absl::Status Write(Task& task, const JudgedRun& run);
  // So many offsets in front of `end` cannot be read, and count as carried out.
  void PassOver(Task& task, int64_t end);

  // Commits what is open; if that fails, aborts it.
  void Commit();
  // Aborts it: rolls back to the committed offsets and reads from there again, unless it turns out to be
  // committed.
  void Abort() { RollBack(sink_.Abort()); }
  // Whichever of the two it may be, if one is open.
  void End(bool may_commit) {
    if (open_) may_commit ? Commit() : Abort();
  }
  // As Abort() where the consumer is dropped, too. False: there is no producer any more.
  bool AbortForNewConsumer();
  // Commits where partitions start, with their metadata. Not OK: this assignment is over.
  absl::Status CommitStart(const std::vector<Task*>& fresh);

  // What such transactions fail for, one after the other, in words; empty: they do not.
  std::string WhyNothingIsCommitted() const;
  // Whether a partition is owned of which the last transaction was not committed.
  bool IsUnfinished() const;

  RecordWriter& writer() { return writer_; }
  RefusalSearch& refusals() { return refusal_search_; }
  // Fills in the counts since the start.
  void AddTo(LaneReport& report) const;
  LaneFigures& figures() { return figures_; }

 private:
  void RollBack(Outcome aborted);
  // Asks the group what it has committed, after a failure: the transaction is out or it is not. kStopped only
  // if the program is to stop.
  Outcome Resolve();
  void Finish(bool committed);
  // The producer cannot be recreated: nor does the worker go on, unless it is to stop anyway.
  void LoseProducer();
  // After a refusal: finds the records to blame. Where none is known, the transaction is halved until one
  // stands alone.
  void NarrowDown(const std::string& why);
  TransactionSize Size() const;
  std::vector<Position> Positions(const std::vector<Task*>& tasks) const;

  const DaemonOptions& options_;
  const Topics& topics_;
  const Tuning& tuning_;
  const std::string id_fingerprint_;
  WorkerState& state_;
  Source& source_;
  Tasks& tasks_;
  Sink& sink_;
  HeldPartitions& held_;
  SnapshotCycle& snapshots_;
  Warnings& warnings_;
  RecordWriter writer_;
  RefusalSearch refusal_search_;
  TransactionBackoff backoff_;
  LaneFigures figures_;

  bool open_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();  // by SteadyNow()
  size_t carried_out_ = 0;                        // records in it
  int64_t commits_ = 0;
  int64_t aborts_ = 0;
  RecordCounts totals_;
  std::string aborted_because_;  // the last transaction that failed
  Repeats aborted_;
  Repeats refused_starts_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_
