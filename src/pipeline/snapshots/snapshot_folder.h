// Snapshots in a folder, one file each; one of each partition counts.
//
// Instances may share the folder: one deletes only snapshots that are older than the one that it has named,
// so never those of a later owner.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_FOLDER_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_FOLDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe {

// Makes the folder. The options outlive the store. FailedPrecondition, with the remedy, if it cannot be used.
absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotFolder(const DaemonOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_FOLDER_H_
