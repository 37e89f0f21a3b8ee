// What a worker works with, for its parts.
#ifndef LETHE_SRC_PIPELINE_TASK_WORKPLACE_H_
#define LETHE_SRC_PIPELINE_TASK_WORKPLACE_H_

#include "src/pipeline/options/options.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/source.h"
#include "src/pipeline/task/task.h"
#include "src/pipeline/task/worker_state.h"

namespace lethe {

class InstanceClaim;
class LogEnds;
class Sink;

// What the workers of a process share. All of it outlives them.
struct Shared {
  const DaemonOptions& options;  // of the process; those of a topic are its flow's
  const Flows& flows;            // at least one
  KeptPartitions& kept;
  InstanceClaim& claim;
  const LogEnds& ends;  // of the inputs
};

// A worker's own things, and the three interfaces through which it sees the world. Plain references, which
// outlive the parts that get them.
struct Workplace {
  const Shared& shared;
  WorkerState& state;
  Tasks& tasks;  // the partitions that it owns
  Source& source;
  Sink& sink;
  Cluster& cluster;

  const DaemonOptions& options() const { return shared.options; }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_WORKPLACE_H_
