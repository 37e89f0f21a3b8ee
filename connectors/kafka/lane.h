// One consumer and one producer, and the worker between them.
#ifndef LETHE_CONNECTORS_KAFKA_LANE_H_
#define LETHE_CONNECTORS_KAFKA_LANE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/group/input_watch.h"
#include "connectors/kafka/group/membership.h"
#include "connectors/kafka/output/output.h"
#include "connectors/kafka/ownership.h"
#include "connectors/kafka/publisher.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/worker.h"

namespace lethe::kafka {

// A member of the group, in one thread.
//
// Thread safety: Run() belongs to one thread; const functions and setters may be called from any.
class Lane final : public Group {
 public:
  // `snapshots` is null where none are taken.
  Lane(const DaemonOptions& options, int lane, const Topics& topics, DedupStage& stage, KeptPartitions& kept,
       Snapshots* snapshots, const LogEnds& ends, InstanceClaim& claim, const StopFlag& stop);

  // Runs until the stop. Not OK: an error that it cannot handle, in words for the operator.
  absl::Status Run();

  LaneReport Report() const { return publisher_.Report(); }
  // The time since its thread's last heartbeat; zero if it is not running.
  absl::Duration SilentFor() const {
    return state_.is_running ? state_.heartbeat.SinceLast() : absl::ZeroDuration();
  }
  // After the stop: everything is committed, and only leaving the group remains.
  bool OnlyLeaves() const { return state_.only_leaves; }
  // After the stop: the last records could not be committed, and the next owner replays them.
  bool LeavesUnfinished() const { return state_.leaves_unfinished; }
  // Before Run().
  void SetCounterWatch(CounterWatch* watch) { publisher_.SetCounterWatch(watch); }
  // Before Run(), of a router.
  void SetSources(RoutedSources* sources) { state_.sources = sources; }

  // For the worker.
  void Assign(const std::vector<int32_t>& partitions) override;
  void Revoke(const std::vector<int32_t>& partitions, bool lost) override;
  void Release() override;
  void Rebuild(Task& task) override { ownership_.Rebuild(task); }
  void LoseUnread(Task& task, const std::string& why) override { ownership_.LoseUnread(task, why); }
  void MeetError(const SourceEvent& event) override { membership_.MeetError(event); }
  void Look() override;

 private:
  void RecreateConsumer();

  WorkerState state_;
  Tasks tasks_;
  Consumer consumer_;
  Output output_;
  Worker worker_;
  Membership membership_;
  Ownership ownership_;
  InputWatch input_watch_;
  Publisher publisher_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_LANE_H_
