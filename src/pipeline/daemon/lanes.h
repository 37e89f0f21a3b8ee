// The lanes of one kind: deduplicators, or routers.
#ifndef LETHE_SRC_PIPELINE_DAEMON_LANES_H_
#define LETHE_SRC_PIPELINE_DAEMON_LANES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/assign/foreign_members.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/daemon/connector.h"
#include "src/pipeline/daemon/lane.h"
#include "src/pipeline/publish/log_ends.h"
#include "src/pipeline/report/readiness.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/task.h"
#include "src/sync/mutex.h"

namespace lethe {

// Options stay the same once there are lanes, and topics as they were given.
//
// Thread safety: Start, Connect and AskEnds belong to one thread; const functions may be called from any.
class Lanes {
 public:
  // Connector and clock outlive them.
  Lanes(DaemonOptions options, Connector& connector, const Clock& clock);

  const DaemonOptions& options() const { return options_; }
  Flows& flows() { return flows_; }
  const Flows& flows() const { return flows_; }
  // How long this process waits before it ends, since another one has its instance.
  absl::Duration pause() const { return claim_.pause(); }

  // `ended` gets how each lane ended, in the lane's thread. The flag outlives the lanes.
  void Start(const StopFlag& stop, const std::function<void(const absl::Status&)>& ended);
  // After the stop.
  void Join();

  // A client of the lanes' group, with the ends of logs that their consumers see. Null before Connect().
  absl::Status Connect();
  Brokers* brokers() { return brokers_.get(); }
  // Asks for the ends of the lanes' partitions; true if the brokers answered, and says so if that changes.
  // Else the last answers stay.
  bool AskEnds();

  // Members of the group that are not lethe's.
  std::vector<std::string> ForeignMembers() const;
  std::vector<LaneReport> Reports() const;
  // The partitions of a flow, in all lanes.
  std::vector<int32_t> Partitions(int32_t flow) const;
  // Why they are not ready, by their reports.
  void AddReasons(const std::vector<LaneReport>& reports, std::vector<std::string>& reasons,
                  std::vector<TopicProblem>& problems) const;
  // Of the most silent lane.
  absl::Duration SilentFor() const;
  // Whether the brokers tell where logs end.
  bool AreAnswered() const;
  // Whether that is true of all lanes, which have started; and of any.
  bool OnlyLeave() const;
  bool LeaveUnfinished() const;

 private:
  absl::Status AskEndsOnce();
  void LookForForeignMembers();

  const DaemonOptions options_;
  Connector& connector_;
  const Clock& clock_;
  InstanceClaim claim_;
  Flows flows_;
  KeptPartitions kept_;  // their filters end before their flows
  LogEnds ends_;
  std::unique_ptr<Brokers> brokers_;
  lethe::ForeignMembers foreign_;
  std::vector<std::unique_ptr<StartedThread>> threads_;

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> foreign_members_ ABSL_GUARDED_BY(mutex_);
  // Why the brokers do not tell the ends, the last two times and for how long.
  absl::Status unanswered_ ABSL_GUARDED_BY(mutex_);
  absl::Time unanswered_since_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_LANES_H_
