// A worker, and what it works with.
#ifndef LETHE_SRC_PIPELINE_DAEMON_LANE_H_
#define LETHE_SRC_PIPELINE_DAEMON_LANE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/daemon/connector.h"
#include "src/pipeline/worker.h"

namespace lethe {

// A member of the group, in one thread.
//
// Thread safety: Run() belongs to one thread; const functions may be called from any.
class Lane {
 public:
  Lane(const Shared& shared, int lane, const StopFlag& stop, Connector& connector, const Clock& clock)
      : shared_(shared), state_(lane, stop, clock), streams_(connector.MakeStreams(shared_, state_, [this] {
          return worker_.membership().MayRecreateProducer();
        })) {}

  // Runs until the stop. Not OK: an error that it cannot handle, in words for the operator.
  absl::Status Run() {
    worker_.Run();
    return state_.fatal;
  }

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
  const Streams streams_;
  const Workplace place_{shared_, state_, tasks_, *streams_.source, *streams_.sink, *streams_.cluster};
  Worker worker_{place_};
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_LANE_H_
