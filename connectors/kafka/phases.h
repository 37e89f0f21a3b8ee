// What a partition does with what is read of it, by its phase: compared, replayed, judged, or passed over.
#ifndef LETHE_CONNECTORS_KAFKA_PHASES_H_
#define LETHE_CONNECTORS_KAFKA_PHASES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "connectors/kafka/judge.h"
#include "connectors/kafka/ownership.h"
#include "connectors/kafka/replay.h"

namespace lethe::kafka {

// Not thread-safe: it belongs to the worker's thread.
class Phases {
 public:
  Phases(const DaemonOptions& options, const Topics& topics, const Tuning& tuning, WorkerState& state,
         Source& source, HeldPartitions& held, Transactions& transactions, Ownership& ownership,
         Warnings& warnings);

  // A run of its messages. Not OK: the transaction must be aborted, and the rest of the batch is replayed.
  absl::Status Advance(OwnedPartition& owned, MessageRun run);
  // The client has come to the end of the log, perhaps over control records and aborted batches.
  void ReachEnd(OwnedPartition& owned, int64_t end);

  // Errors of one batch, which is fetched again and fails again: too large once decompressed, or broken.
  static bool IsUnreadable(rd_kafka_resp_err_t code);
  // The batch that begins at `base` cannot be read: by policy its partition stops in front of it, or passes
  // over it.
  void MeetUnreadable(OwnedPartition& owned, int64_t base, const std::string& why);

  // After a batch.
  void GiveBack() { judge_.GiveBack(); }

 private:
  absl::Status JudgeRun(OwnedPartition& owned, MessageRun run);
  // Reads where the search for the end of the unreadable batch wants to, or passes over the batch.
  void SearchReadable(OwnedPartition& owned);
  void PassOver(OwnedPartition& owned, int64_t end);

  const Tuning& tuning_;
  WorkerState& state_;
  Source& source_;
  HeldPartitions& held_;
  Transactions& transactions_;
  Ownership& ownership_;
  Replay replay_;
  Judge judge_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PHASES_H_
