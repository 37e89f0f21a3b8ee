// Which partitions a worker owns: those that its group assigns, until it revokes or loses them.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_OWNERSHIP_H_
#define LETHE_SRC_PIPELINE_ASSIGN_OWNERSHIP_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/pipeline/assign/assigned_topic.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/assign/membership.h"
#include "src/pipeline/output/held_partitions.h"
#include "src/pipeline/output/snapshot_cycle.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// Invariant: offsets are committed only of partitions that were owned without a break since they were judged
// (rule 11).
//
// Not thread-safe: it belongs to the worker's thread.
class Ownership {
 public:
  Ownership(const Workplace& place, Membership& membership, HeldPartitions& held, SnapshotCycle& snapshots,
            Transactions& transactions);

  // What the group has assigned; what it revokes, or has taken away.
  void Assign(const std::vector<TopicPartition>& partitions);
  void Revoke(const std::vector<TopicPartition>& partitions, bool lost);
  // The worker ends, or its source does: it owns nothing from now on. No transaction is open.
  void ReleaseAll();

  // The log is not the one that the filter was built from: rebuilds the filter.
  void Rebuild(Task& task);
  // The log has no record at `next` any more.
  void LoseUnread(Task& task, const std::string& why);
  // Between two batches: whether partitions that lacked memory for their filters may have some now. Then they
  // are assigned once more, with all others of the lane.
  void LookForMemory();
  // Whether an assignment failed in a way that only rejoining the group cures.
  bool TakeRejoin() { return std::exchange(wants_to_rejoin_, false); }

  // A filter of any flow may need the memory of one that is kept.
  void GiveUpForMemory();

  // Now and then: whether the brokers know and reach by now what they did not when it was assigned. Then the
  // worker rejoins the group.
  void LookForAnswers();

  Assigner& AssignerOf(const Flow& flow);

 private:
  absl::Status Prepare(const std::vector<TopicPartition>& partitions);
  // Its partitions become tasks; appends those whose start must be committed.
  absl::Status Prepare(AssignedTopic& topic, std::vector<Task*>& fresh);
  // Logs that partitions are new to the group: of many topics in one line.
  void SayNew(const std::vector<AssignedTopic>& topics) const;
  // Of several topics, one whose commits do not fit fails alone. Not OK: the worker cannot go on.
  absl::Status FailFlow(const AssignedTopic& topic, const absl::Status& why);
  // Keeps their filters in case they come back.
  void Release(const std::vector<TopicPartition>& partitions);
  absl::StatusOr<std::unique_ptr<Task>> PrepareOne(const AssignedTopic& topic, int32_t partition,
                                                   Uncommitted uncommitted);
  // Prepares it as if it had just been assigned.
  void PrepareAgain(Task& task);
  // Restores their totals, which are of one flow, once a broker answers.
  absl::Status AwaitTotals(const std::vector<Task*>& partitions);
  // Fills in the times of the logs where they matter; they stay unknown if no broker answers.
  void AskLogTimes(std::vector<AssignedTopic>& topics);
  // While a snapshot or totals are loaded, which may take minutes: shows that the worker is alive, and stays
  // in the group. False: stop.
  bool GoOnLoading(TopicPartition partition, absl::string_view what);
  void LoadingEnds();
  // Logs the partitions that lack memory, once for all of them.
  void SayLackOfMemory() const;

  const DaemonOptions& options_;
  const Flows& flows_;
  KeptPartitions& kept_;
  WorkerState& state_;
  Source& source_;
  Cluster& cluster_;
  Tasks& tasks_;
  Membership& membership_;
  HeldPartitions& held_;
  SnapshotCycle& snapshots_;
  Transactions& transactions_;
  std::map<int32_t, Assigner> assigners_;                   // by flow
  std::map<int32_t, std::vector<int32_t>> without_answer_;  // by flow: its partitions without a log
  bool wants_to_rejoin_ = false;
  absl::Time next_memory_look_ = absl::InfinitePast();
  std::optional<TopicPartition> loading_;  // the partition that is being loaded
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_OWNERSHIP_H_
