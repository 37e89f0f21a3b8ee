// Where snapshots are kept: in a folder, or in a topic.
#ifndef LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_STORES_H_
#define LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_STORES_H_

#include <librdkafka/rdkafka.h>

#include <memory>

#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe::kafka {

// Of all stores in topics; the first makes it. Their calls that write come from one thread.
using SnapshotProducer = std::shared_ptr<rd_kafka_t>;

// The store that the options ask for; null: none. The options outlive it. FailedPrecondition, with the
// remedy, if it cannot be used.
absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotStore(const DaemonOptions& options,
                                                                 SnapshotProducer& producer);
absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotTopic(const DaemonOptions& options,
                                                                 SnapshotProducer& producer);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_SNAPSHOTS_SNAPSHOT_STORES_H_
