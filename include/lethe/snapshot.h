// Snapshots: a partition's memory in a file, to begin with after a restart. A snapshot is never needed for
// correctness, only for speed: without it the log is read again from one horizon back.
//
//   partition->Save("orders-0.snapshot", {.topic = "orders", .id_fingerprint = "..."}, {.offset = 1200});
//   ...
//   auto restored = stage->Restore("orders-0", "orders-0.snapshot", {.topic = "orders", .id_fingerprint =
//   "..."}); if (restored.ok()) ReadFrom(restored->point.offset, *restored->partition);
//
// Partition::Save and DedupStage::Restore (stage.h) write and read them; Partition::BeginSnapshot writes one
// while the stream goes on. README.md beside this file says which engines can be saved; the others answer
// Unimplemented, and are rebuilt from the log.
#ifndef LETHE_SNAPSHOT_H_
#define LETHE_SNAPSHOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/status.h"

namespace lethe {

// Where the events come from: a snapshot is of use only where all of this is the same. Texts have at most
// 64 KiB.
struct SnapshotOrigin {
  std::string topic = "";
  int32_t partition = 0;
  // Of all that decides what an event's id is. Under another one the same event has another id.
  std::string id_fingerprint = "";
};

// How far the filter has come in its log. The stage stores it and leaves it to the caller to judge.
struct SnapshotPoint {
  // The filter holds what was passed below this offset: read on from here. If events were judged during the
  // Save, this is where the log was when it began, and end_offset where it was when it ended; what lies
  // between is to be replayed.
  int64_t offset = 0;
  int64_t end_offset = 0;
  // A hash of the record before `offset`, by which to know that the log is still the same one.
  uint64_t record_before = 0;
  // Whatever else the caller must know to go on from there; at most 64 KiB.
  std::string notes = "";
};

// What is in a snapshot. The hash's seed is too, and is not shown: it is a secret.
struct SnapshotReport {
  int64_t format_version = 0;
  int64_t file_bytes = 0;
  SnapshotOrigin origin = {};
  SnapshotPoint point = {};
  std::string engine = "";  // as EngineName() has it
  absl::Duration horizon = absl::ZeroDuration();
  double target_fpp = 0;
  PartitionStatus partition = {};         // as it was when the snapshot was made
  std::vector<FilterStatus> shards = {};  // one by one; with their generations
};

// Reads and checks a whole snapshot and says what is in it. Needs as much memory as the filter had.
// Errors as DedupStage::Restore.
absl::StatusOr<SnapshotReport> InspectSnapshot(const std::string& path);

}  // namespace lethe

#endif  // LETHE_SNAPSHOT_H_
