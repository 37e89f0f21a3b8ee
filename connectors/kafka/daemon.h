// All lanes of a process: what `lethe run` runs, and what an embedding program may run in its own process.
#ifndef LETHE_CONNECTORS_KAFKA_DAEMON_H_
#define LETHE_CONNECTORS_KAFKA_DAEMON_H_

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/lane.h"
#include "connectors/kafka/options.h"
#include "connectors/kafka/owned_partition.h"
#include "connectors/kafka/report.h"
#include "connectors/kafka/stop_flag.h"
#include "connectors/kafka/topics.h"
#include "lethe/stage.h"

namespace lethe::kafka {

// Thread-safe but for Run, which is called once.
class Daemon {
 public:
  // InvalidArgument: the options cannot be met. Asks nothing of the broker yet.
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(DaemonOptions options);
  ~Daemon();

  // Reads, judges and writes until Stop(), until the end that was read at the start (exit_at_end), or until
  // something makes it impossible to go on. Everything that was carried out is committed when it returns OK.
  absl::Status Run();

  // Ends Run() soon: the open transaction is committed, and the group is left. From any thread.
  void Stop() { stop_.Request(); }

  DaemonReport Report() const;

  // How long nothing has been heard of the lane that was last heard of: one that only waits is not silent.
  absl::Duration SilentFor() const;

  // How long transactions stay open from now on. From any thread.
  void SetCommitInterval(absl::Duration interval);

 private:
  explicit Daemon(DaemonOptions options) : options_(std::move(options)) {}
  absl::Status LockInstance();
  absl::Status RunLanes();
  // Whether every lane has reached the end; `problems` are those of partitions that could not be read.
  bool AllAtEnd(std::vector<std::string>& problems) const;

  const DaemonOptions options_;
  StopFlag stop_;
  int instance_lock_ = -1;
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Snapshots> snapshots_;  // null: none are taken
  KeptPartitions kept_;                   // their filters end before the stage, and before snapshots of them

  mutable std::mutex mutex_;
  Topics topics_;
  absl::Duration commit_interval_ = options_.commit_interval;  // guarded by mutex_
  std::vector<std::unique_ptr<Lane>> lanes_;                   // guarded by mutex_ while Run starts or ends
  absl::Status first_error_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_DAEMON_H_
