// The topic of snapshots.
#ifndef LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_LOG_H_
#define LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_LOG_H_

#include <librdkafka/rdkafka.h>

#include <memory>

#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshot_log.h"

namespace lethe::kafka {

// Of all logs of a process; the first makes it. Their calls that write come from one thread.
using SnapshotProducer = std::shared_ptr<rd_kafka_t>;

// Of the topic that the options name, which exists. The options outlive it.
absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshotLog(const DaemonOptions& options,
                                                             SnapshotProducer& producer);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_LOG_H_
