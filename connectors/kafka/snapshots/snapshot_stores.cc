#include "connectors/kafka/snapshots/snapshot_stores.h"

namespace lethe::kafka {

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotStore(const DaemonOptions& options) {
  if (!options.snapshots.folder.empty()) return OpenSnapshotFolder(options);
  if (!options.snapshots.topic.empty()) return OpenSnapshotTopic(options);
  return nullptr;
}

}  // namespace lethe::kafka
