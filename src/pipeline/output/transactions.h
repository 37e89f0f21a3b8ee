// The transactions of a worker: one at a time, over all partitions with new records.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/output/held_partitions.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/output/snapshot_cycle.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "src/pipeline/report/lane_figures.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Invariant: between transactions the filter of every restored partition is a function of the log up to its
// committed offset, and no output beyond it is visible. Not thread-safe: it belongs to the worker's thread.
class Transactions {
 public:
  Transactions(const Workplace& place, LaneFlows& flows, HeldPartitions& held, SnapshotCycle& snapshots);

  // Creates the producer, and fences every earlier one of the same name.
  absl::Status Open();
  bool is_open() const { return open_; }
  // At least one record.
  size_t room_records() const;
  size_t room_bytes() const { return static_cast<size_t>(backoff_.max_bytes()); }
  // Until IsDue() is to be asked again at the latest; infinite if none is open.
  absl::Duration time_left() const;
  // Whether to commit: it is full, or was open for long enough. `is_drained`: there is nothing more to read
  // at this moment. Then what is current is committed at once, unless it changes counters, or commits would
  // take more than a tenth of the time. While all of it is behind, it may last for ten commit intervals.
  bool IsDue(bool is_drained);

  // Takes the partition into the open transaction; opens one if there is none.
  absl::Status Begin(Task& task);
  // How many of the records, from the front, it has room for: a slow topic has little. With the rest the
  // partition awaits the next transaction.
  size_t RoomFor(const Task& task, RecordRun run);
  void AwaitRoom(Task& task, RecordRun rest);
  // Carries out the judged records of a partition in it. Not OK: the transaction must be aborted.
  absl::Status Write(Task& task, const JudgedRun& run);
  // Skips the offsets before `end`, which cannot be read.
  void PassOver(Task& task, int64_t end);

  // If the commit fails, aborts.
  void Commit();
  // Rolls back to the committed offsets and reads from there again, unless it turns out to be committed.
  void Abort() { RollBack(sink_.Abort()); }
  void End(bool may_commit) {
    if (open_) may_commit ? Commit() : Abort();
  }
  // As Abort(), but the source is reopened, too, so nothing is sought. False: the producer is lost.
  bool AbortForReopening();
  // Commits the starting offsets with their metadata. Partitions of a topic that is deleted meanwhile fail
  // alone. Not OK: this assignment is over.
  absl::Status CommitStart(std::vector<Task*> fresh);

  // Why several transactions in a row have failed; empty if they have not.
  std::string WhyNothingIsCommitted() const;
  // Whether the last transaction of an owned partition was aborted.
  bool IsUnfinished() const;

  // Sets the counts since the start.
  void AddTo(LaneReport& report) const;
  LaneFigures& figures() { return figures_; }

 private:
  bool IsFull() const;
  // Whether each partition in it has more to read than it holds of the partition: a longer transaction then
  // at most doubles the delay that there is.
  bool IsBehind() const;
  void RollBack(Outcome aborted);
  // Those of topics that are not there any more: their offsets would be refused, with all others.
  void FailDeleted(std::vector<Task*>& fresh);
  // Of all flows.
  OutputLimits Limits() const;
  // After a failure, with this outcome, asks the group for its committed offsets: kCommitted, kAborted, or
  // kStopped on stop.
  Outcome Resolve(Outcome known);
  void Finish(bool committed);
  // The producer cannot be recreated: fatal, unless a stop is requested.
  void LoseProducer();
  // The same for the records that one flow's topics refused. False: none of them is known to be to blame.
  bool Blame(const std::vector<Refusal>& refusals, LaneFlow& flow);
  void AskRules(LaneFlow& flow);
  // After a refusal: finds the records to blame, and halves the transaction, until one is alone.
  void NarrowDown(const std::string& why);
  TransactionSize Size() const;
  std::vector<Position> Positions(const std::vector<Task*>& tasks) const;

  const DaemonOptions& options_;
  WorkerState& state_;
  Source& source_;
  Tasks& tasks_;
  Sink& sink_;
  Cluster& cluster_;
  const Flows& all_flows_;
  OutputLimits limits_;  // that the sink was opened with
  LaneFlows& flows_;
  HeldPartitions& held_;
  SnapshotCycle& snapshots_;
  TransactionBackoff backoff_;
  LaneFigures figures_;

  bool open_ = false;
  std::vector<TopicPartition> awaiting_room_;
  std::map<TopicPartition, std::string> tried_;  // the metadata of its commit, if one was tried
  // By Clock::Steady(), like the next: when it is due unless it is behind, and then.
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Time last_deadline_ = absl::InfiniteFuture();
  absl::Time look_at_ = absl::InfiniteFuture();
  absl::Time quiet_from_ = absl::InfinitePast();  // from then on a drained source is committed at once
  absl::Duration commit_takes_;                   // a mean that follows the last few
  size_t carried_out_ = 0;                        // records in it
  TransactionCounts counts_;
  RecordCounts totals_;
  std::string aborted_because_;  // the last transaction that failed
  Repeats aborted_;
  Repeats refused_starts_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_TRANSACTIONS_H_
