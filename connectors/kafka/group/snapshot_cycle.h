// When a partition's snapshot begins, and which one a commit names.
#ifndef LETHE_CONNECTORS_KAFKA_GROUP_SNAPSHOT_CYCLE_H_
#define LETHE_CONNECTORS_KAFKA_GROUP_SNAPSHOT_CYCLE_H_

#include <string>
#include <vector>

#include "connectors/kafka/group/owned_partition.h"
#include "connectors/kafka/options/options.h"
#include "connectors/kafka/snapshots/snapshots.h"

namespace lethe::kafka {

// Not thread-safe: it belongs to the worker's thread. Does nothing where no snapshots are taken.
class SnapshotCycle {
 public:
  // `snapshots` is null where none are taken.
  SnapshotCycle(const DaemonOptions& options, std::string id_fingerprint, Snapshots* snapshots)
      : options_(options), id_fingerprint_(std::move(id_fingerprint)), snapshots_(snapshots) {}

  // Before a commit of these: names what was written since.
  void Name(const std::vector<OwnedPartition*>& partitions);
  // After a commit: sees what became of those that were begun, and begins those that are due.
  void Take(const OwnedPartitions& owned);
  // No commit of this worker will name what is being taken.
  void Drop(OwnedPartition& owned);

 private:
  void Begin(OwnedPartition& owned);

  const DaemonOptions& options_;
  const std::string id_fingerprint_;
  Snapshots* const snapshots_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_GROUP_SNAPSHOT_CYCLE_H_
