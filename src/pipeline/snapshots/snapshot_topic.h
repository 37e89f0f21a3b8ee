// Snapshots in a compacted topic, for instances that have no disk of their own.
//
// Snapshots of input partition p are in partition p of the topic (modulo its partitions). A snapshot is a
// sequence of chunks and a manifest behind them. All have the timestamp in the snapshot's id, by which they
// are found. Keys are text:
//
//   GROUP/INPUT/PARTITION/ID/INDEX       a chunk: bytes [INDEX x kChunkBytes, ...) of the file
//   GROUP/INPUT/PARTITION/ID/manifest    "lethe-snapshot/1 chunks=COUNT bytes=BYTES"
//
// A snapshot without its manifest does not exist. The file's own checksums protect its bytes.
//
// No two snapshots share a key, so each record of one that does not count gets a tombstone. The next owner of
// the partition finds the remains of a killed process in the topic, when a commit has named the owner's first
// snapshot.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_TOPIC_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_TOPIC_H_

#include <cstdint>
#include <memory>

#include "src/pipeline/options/options.h"
#include "src/pipeline/snapshots/snapshot_log.h"
#include "src/pipeline/snapshots/snapshots.h"

namespace lethe {

// The topic has so many partitions. The options outlive the store.
std::unique_ptr<SnapshotStore> MakeSnapshotTopic(const DaemonOptions& options,
                                                 std::unique_ptr<SnapshotLog> log, int32_t partitions);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_TOPIC_H_
