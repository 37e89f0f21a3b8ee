// Which partitions a worker owns: those that its group assigns, until it revokes or loses them.
#ifndef LETHE_CONNECTORS_KAFKA_OWNERSHIP_H_
#define LETHE_CONNECTORS_KAFKA_OWNERSHIP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/group/assignment.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/group/membership.h"
#include "lethe/stage.h"
#include "src/pipeline/task/worker_state.h"
#include "src/pipeline/worker.h"

namespace lethe::kafka {

// Invariant: offsets are committed only of partitions that were owned without a break since they were judged.
//
// Not thread-safe: it belongs to the worker's thread.
class Ownership {
 public:
  Ownership(const DaemonOptions& options, const Topics& topics, DedupStage& stage, KeptPartitions& kept,
            Snapshots* snapshots, WorkerState& state, Consumer& consumer, Tasks& tasks,
            Membership& membership, Worker& worker);

  // Within a rebalance.
  void Assign(const PartitionList& partitions);
  void Revoke(const PartitionList& partitions, bool lost);

  // The log differs from the one that the filter was made of: the filter is rebuilt.
  void Rebuild(Task& task);
  // The log has no record at `next` any more.
  void LoseUnread(Task& task, const std::string& why);
  // Whether an assignment failed in a way that only a new one mends.
  bool TakeRejoin() { return std::exchange(wants_to_rejoin_, false); }

  Assigner& assigner() { return assigner_; }

 private:
  absl::Status Prepare(const PartitionList& partitions);
  // Waits until `give_up` for a partition that this client does not know yet.
  absl::StatusOr<std::unique_ptr<Task>> PrepareOne(int32_t partition, const CommittedOffset& committed,
                                                   Uncommitted uncommitted, absl::Time give_up);
  // Asks where the partition starts, as if it had just been assigned.
  void PrepareAgain(Task& task);
  // What their counters have come to, once the broker says it.
  absl::Status AwaitTotals(const std::vector<Task*>& partitions);
  // Fills in the times of the log where they matter. If the broker does not tell them, they are not known.
  void AskLogTimes(int32_t partition, const CommittedOffset& committed, LogState& log);
  // While a snapshot is loaded, or totals are, which may take minutes: the worker neither hangs nor has left,
  // unless it is stopped.
  bool GoOnLoading(int32_t partition, absl::string_view what);
  void LoadingEnds();

  const DaemonOptions& options_;
  const Topics& topics_;
  KeptPartitions& kept_;
  WorkerState& state_;
  Consumer& consumer_;
  Tasks& tasks_;
  Membership& membership_;
  HeldPartitions& held_;
  SnapshotCycle& snapshots_;
  Transactions& transactions_;
  Assigner assigner_;
  bool has_begun_ = false;  // it was given partitions, and what the group has committed of them stood
  bool wants_to_rejoin_ = false;
  std::optional<int32_t> loading_;  // the partition that is being loaded
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OWNERSHIP_H_
