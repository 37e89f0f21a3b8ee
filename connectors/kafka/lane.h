// One consumer and one producer, and the worker between them.
#ifndef LETHE_CONNECTORS_KAFKA_LANE_H_
#define LETHE_CONNECTORS_KAFKA_LANE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "connectors/kafka/cluster.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/output/output.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/worker.h"

namespace lethe::kafka {

// A member of the group, in one thread.
//
// Thread safety: Run() belongs to one thread; const functions and setters may be called from any.
class Lane {
 public:
  Lane(const Shared& shared, int lane, const StopFlag& stop);

  // Runs until the stop. Not OK: an error that it cannot handle, in words for the operator.
  absl::Status Run();

  LaneReport Report() const { return worker_.Report(); }
  std::vector<TopicPartition> ReportedPartitions() const { return worker_.ReportedPartitions(); }
  // The time since its thread's last heartbeat; zero if it is not running.
  absl::Duration SilentFor() const {
    return state_.is_running ? state_.heartbeat.SinceLast() : absl::ZeroDuration();
  }
  // After the stop: everything is committed, and only leaving the group remains.
  bool OnlyLeaves() const { return state_.only_leaves; }
  // After the stop: the last records could not be committed, and the next owner replays them.
  bool LeavesUnfinished() const { return state_.leaves_unfinished; }

 private:
  const Shared shared_;
  WorkerState state_;
  Tasks tasks_;
  Consumer consumer_;
  Output output_;
  BrokerCluster cluster_;
  const Workplace place_{shared_, state_, tasks_, consumer_, output_, cluster_};
  Worker worker_{place_};
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_LANE_H_
