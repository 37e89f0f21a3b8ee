// The daemon's way to the world outside.
#ifndef LETHE_SRC_PIPELINE_DAEMON_CONNECTOR_H_
#define LETHE_SRC_PIPELINE_DAEMON_CONNECTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/sink.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/snapshots/snapshot_log.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/source.h"
#include "src/pipeline/task/workplace.h"
#include "src/pipeline/totals/totals_log.h"

namespace lethe {

// What a worker sees of the world. The others may use the source.
struct Streams {
  std::unique_ptr<Source> source;
  std::unique_ptr<Sink> sink;
  std::unique_ptr<Cluster> cluster;
};

// Makes the clients of a process; decides nothing. Options outlive what is made with them. Thread-safe, but
// logs of snapshots are opened by one thread.
class Connector {
 public:
  virtual ~Connector() = default;

  // InvalidArgument: the client refuses a property.
  virtual absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                               Isolation isolation) = 0;
  // `may_recreate` is asked when a producer was fenced; an error stands for one of making another.
  virtual Streams MakeStreams(const Shared& shared, WorkerState& state,
                              std::function<absl::Status()> may_recreate) = 0;
  // Of the topic that the options name, which exists.
  virtual absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshots(const DaemonOptions& options) = 0;
  virtual std::unique_ptr<TotalsLog> OpenTotals(const DaemonOptions& options, const std::string& topic) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_CONNECTOR_H_
