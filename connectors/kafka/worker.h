// The loop of the daemon, readable in one direction: poll -> id -> verdict -> write -> commit.
#ifndef LETHE_CONNECTORS_KAFKA_WORKER_H_
#define LETHE_CONNECTORS_KAFKA_WORKER_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/log_ends.h"
#include "connectors/kafka/group/input_watch.h"
#include "connectors/kafka/ownership.h"
#include "connectors/kafka/phases.h"
#include "connectors/kafka/publisher.h"
#include "src/pipeline/stop_flag.h"

namespace lethe::kafka {

// One consumer and one producer, in one thread: a lane.
//
// Thread safety: Run() belongs to one thread; what is const, or changes options, may be called from any.
class Worker {
 public:
  // `snapshots` is null where none are taken.
  Worker(const DaemonOptions& options, int lane, const Topics& topics, DedupStage& stage,
         KeptPartitions& kept, Snapshots* snapshots, const LogEnds& ends, const StopFlag& stop);

  // Until the stop is requested. Not OK: what makes it impossible to go on, in words for the operator.
  absl::Status Run();

  LaneReport Report() const { return publisher_.Report(); }
  // How long nothing has been heard of its thread; zero if it is not running.
  absl::Duration SilentFor() const {
    return state_.is_running ? state_.heartbeat.SinceLast() : absl::ZeroDuration();
  }
  // It was stopped, has committed what it had carried out, and only leaves the group.
  bool OnlyLeaves() const { return state_.only_leaves; }
  // It was stopped, and what it judged last could not be committed: the next owner replays it.
  bool LeavesUnfinished() const { return state_.leaves_unfinished; }
  // Before Run().
  void SetCounterWatch(CounterWatch* watch) { publisher_.SetCounterWatch(watch); }
  // From the next transaction on.
  void SetCommitInterval(absl::Duration interval) { tuning_.SetCommitInterval(interval); }
  void Tune(const LaneTuning& tuning) { tuning_.Set(tuning); }

 private:
  absl::Status Open();
  void Step();
  void Close();
  // Not OK: the transaction must be aborted, and the rest of the batch is read again.
  absl::Status Process();
  // What the client says instead of a message.
  void HandleEvent(const rd_kafka_message_t& event);
  void RecreateConsumer();
  void TakeTuning();

  const DaemonOptions& options_;
  WorkerState state_;
  Tuning tuning_;
  OwnedPartitions owned_;
  Source source_;
  Output output_;
  HeldPartitions held_;
  SnapshotCycle snapshots_;
  Warnings warnings_;
  Transactions transactions_;
  Membership membership_;
  Ownership ownership_;
  Phases phases_;
  InputWatch input_watch_;
  Publisher publisher_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_WORKER_H_
