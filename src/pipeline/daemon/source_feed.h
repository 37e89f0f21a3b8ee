// What routers of other instances have routed, by the commits of their group.
#ifndef LETHE_SRC_PIPELINE_DAEMON_SOURCE_FEED_H_
#define LETHE_SRC_PIPELINE_DAEMON_SOURCE_FEED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/clock/wake_up.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/task/flow.h"

namespace lethe {

// Asks the group, in a thread of its own: each second, and up to fifty times a second while a lane waits for
// others, which `asked_soon` tells.
//
// Invariant: the ends of the logs are asked before the committed offsets, so a partition that counts as at
// its end was there.
class SourceFeed {
 public:
  // `routing` are the options of all routers, and `flows` theirs. `make` makes the client that asks. `owned`
  // returns the partitions of a flow in this process, whose lanes speak for themselves. All outlive the feed.
  SourceFeed(const DaemonOptions& routing, const Flows& flows, MakeBrokers make,
             std::function<std::vector<int32_t>(int32_t flow)> owned, WakeUp& asked_soon,
             const StopFlag& stop, const Clock& clock);
  ~SourceFeed() { Join(); }
  SourceFeed(const SourceFeed&) = delete;
  SourceFeed& operator=(const SourceFeed&) = delete;

  // After the stop: ends the thread.
  void Join();

 private:
  void Run();
  absl::Status Connect();
  // `with_count`: partitions may have been added.
  absl::Status Ask(const Flow& flow, bool with_count);

  const DaemonOptions& options_;
  const Flows& flows_;
  const MakeBrokers make_;
  const std::function<std::vector<int32_t>(int32_t flow)> owned_;
  WakeUp& asked_soon_;
  const StopFlag& stop_;
  const Clock& clock_;
  std::map<int32_t, int32_t> partitions_;  // of each flow
  std::unique_ptr<Brokers> brokers_;
  std::unique_ptr<StartedThread> thread_;  // null: it has ended
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_SOURCE_FEED_H_
