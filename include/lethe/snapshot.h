// Snapshots: a partition's memory in a file, for a fast restart. A snapshot is never needed for correctness:
// without it the program replays the last horizon of its log.
//
//   const lethe::SnapshotOrigin origin = {.topic = "orders", .id_fingerprint = "json:/id"};
//   const absl::Status saved = orders.Save("orders-0.snapshot", origin, {.offset = 1200});
//   if (!saved.ok()) return saved;
//   auto restored = stage.Restore("orders-0", "orders-0.snapshot", origin);
//   if (!restored.ok()) return restored.status();
//   ReplayFrom(restored->point.offset, *restored->partition);
//
// Partition::Save and DedupStage::Restore (stage.h) write and read them; Partition::BeginSnapshot writes one
// while the stream continues. README.md in this folder says which engines have snapshots; for the others all
// of these return Unimplemented.
#ifndef LETHE_SNAPSHOT_H_
#define LETHE_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/export.h"
#include "lethe/stage.h"
#include "lethe/status.h"

namespace lethe {

// Where the events come from. A snapshot can be restored only if all of this is the same. Texts have at most
// 64 KiB.
struct SnapshotOrigin {
  std::string topic = "";
  int32_t partition = 0;
  // A fingerprint of everything that decides an event's id. If it differs, the same event has another id.
  std::string id_fingerprint = "";
};

// The filter's position in its log. The stage stores it; the caller decides what it means.
struct SnapshotPoint {
  // The filter holds the ids that passed below this offset. After a restore replay from here up to where your
  // results are committed, then judge. If events were judged during the Save, `offset` is the position at its
  // beginning and `end_offset` at its end: replay at least up to there.
  int64_t offset = 0;
  int64_t end_offset = 0;
  // A hash of the record before `offset`, to recognise that the log is still the same.
  uint64_t record_before = 0;
  // What else the caller needs to continue from there; at most 64 KiB.
  std::string notes = "";
};

struct RestoredPartition {
  std::unique_ptr<Partition> partition;
  SnapshotPoint point;
};

// A snapshot that is taken while its partition continues. It holds all ids that were remembered when it
// began, and some later ones. After a restore replay from its point's `offset` to at least `end_offset`
// before you judge.
//
// If the partition is destroyed, Write returns Cancelled. Thread safety: Write once, from any thread; NoteEnd
// from any.
class LETHE_EXPORT LiveSnapshot {
 public:
  ~LiveSnapshot();
  LiveSnapshot(const LiveSnapshot&) = delete;
  LiveSnapshot& operator=(const LiveSnapshot&) = delete;

  // Before each Commit() while the snapshot is written: the first offset that is not in that transaction.
  void NoteEnd(int64_t end_offset);

  // Writes the file as Partition::Save does. Holds a shard's lock while it copies 256 KiB, 23 us at the
  // median, again and again.
  //   Aborted    the filter changed its shape meanwhile (a refresh, or a change of size): begin another
  //              snapshot
  //   Cancelled  the partition was destroyed, or `go_on`, which is called before each copy, returned false
  absl::Status Write(const std::string& path, const std::function<bool()>& go_on = nullptr);
  // The same to an empty file that is open for writing and stays the caller's. Does not sync it.
  absl::Status Write(int descriptor, const std::function<bool()>& go_on = nullptr);

 private:
  friend class Partition;
  struct Impl;
  explicit LiveSnapshot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The contents of a snapshot, without the salt of the hash's key. Needs no secret.
struct SnapshotReport {
  int64_t format_version = 0;
  int64_t file_bytes = 0;
  SnapshotOrigin origin = {};
  SnapshotPoint point = {};
  std::string engine = "";  // as in EngineName()
  absl::Duration horizon = absl::ZeroDuration();
  double target_fpp = 0;
  PartitionStatus partition = {};         // when the snapshot was made
  std::vector<FilterStatus> shards = {};  // one by one; with their generations
};

// Reads and checks a whole snapshot. Needs as much memory as the filter had. Errors as of
// DedupStage::Restore.
LETHE_EXPORT absl::StatusOr<SnapshotReport> InspectSnapshot(const std::string& path);

}  // namespace lethe

#endif  // LETHE_SNAPSHOT_H_
