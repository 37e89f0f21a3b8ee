// The loop of the daemon, readable in one direction: poll -> id -> verdict -> write -> commit.
#ifndef LETHE_SRC_PIPELINE_WORKER_H_
#define LETHE_SRC_PIPELINE_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/pipeline/assign/input_watch.h"
#include "src/pipeline/assign/membership.h"
#include "src/pipeline/assign/ownership.h"
#include "src/pipeline/output/held_partitions.h"
#include "src/pipeline/output/lane_flow.h"
#include "src/pipeline/output/snapshot_cycle.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/output/transactions.h"
#include "src/pipeline/phases.h"
#include "src/pipeline/publish/publisher.h"
#include "src/pipeline/task/workplace.h"

namespace lethe {

// A member of the group: sees the outside through a source, a sink and a cluster alone, and owns the protocol
// between them. Whatever happens outside is an event of the source, and is handled here, in one thread.
//
// Thread safety: Run() belongs to one thread; Report() may be called from any.
class Worker {
 public:
  // All that the workplace refers to outlives it; Run() makes the first call.
  explicit Worker(const Workplace& place);

  // Returns when a stop is requested or an error is fatal (WorkerState::fatal). The same in its parts:
  // Open(), Step() until WorkerState::ends(), Close().
  void Run();
  absl::Status Open();
  void Step();
  void Close();

  LaneReport Report() const { return publisher_.Report(); }
  std::vector<TopicPartition> ReportedPartitions() const { return publisher_.ReportedPartitions(); }

  HeldPartitions& held() { return held_; }
  Membership& membership() { return membership_; }
  Ownership& ownership() { return ownership_; }
  Transactions& transactions() { return transactions_; }
  const SourcePaces& pace() const { return pace_; }

 private:
  // Not OK: the transaction must be aborted; the rest of the batch is read again.
  absl::Status Process();
  void HandleEvent(const InputRecord& at);
  // Keeps what the source says only once of the batch from `begin` on, which is read again.
  void PostponeEvents(size_t begin);
  void HandlePostponed();
  // Between two batches: what is due now and then.
  void Look();
  // Becomes another member: another process has taken this one's name, or offsets that this one has sent may
  // come late.
  void Reopen();

  WorkerState& state_;
  Tasks& tasks_;
  Source& source_;
  Sink& sink_;
  const Flows& all_flows_;
  int32_t subscribed_ = 0;  // flows that the source has been told of
  LaneFlows flows_;
  HeldPartitions held_;
  SnapshotCycle snapshots_;
  Transactions transactions_;
  SourcePaces pace_;
  Membership membership_;
  Ownership ownership_;
  InputWatch input_watch_;
  Publisher publisher_;
  Phases phases_;
  std::vector<std::pair<InputRecord, SourceEvent>> postponed_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_WORKER_H_
