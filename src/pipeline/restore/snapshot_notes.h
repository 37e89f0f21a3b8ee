// What a lane must know of a partition, besides its filter, to go on from a snapshot.
#ifndef LETHE_SRC_PIPELINE_RESTORE_SNAPSHOT_NOTES_H_
#define LETHE_SRC_PIPELINE_RESTORE_SNAPSHOT_NOTES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/restore/restart_points.h"

namespace lethe {

// The name of a snapshot: the offset from which it is to be read on, and what no other snapshot has: the time
// at which it was begun (its milliseconds, 42 bits) and 22 random bits.
struct SnapshotId {
  int64_t offset = -1;
  uint64_t token = 0;

  static SnapshotId New(int64_t offset, absl::Time now);
  absl::Time time() const { return absl::FromUnixMillis(static_cast<int64_t>(token >> 22)); }
  // "184467-5f0c3a9be1d200a1". Parse takes nothing else, since it comes from a commit and becomes part of the
  // name of a file.
  std::string ToString() const;
  static std::optional<SnapshotId> Parse(absl::string_view text);

  bool operator==(const SnapshotId&) const = default;

  // By the log and by the clock: who comes next in a group goes on behind what was committed, and later.
  // After an operator's reset offsets are lower and the clock is not, so neither is older than the other
  // then.
  bool IsOlderThan(const SnapshotId& other) const { return offset <= other.offset && token < other.token; }
};

// Text in the snapshot (SnapshotPoint::notes):
//
//   o=ORIGIN m=OFFSET n=RECORDS c=TIME p=POINT,POINT,...
//
// OFFSET is that of the record before the snapshot's offset (control records may be between), RECORDS those
// with a time so far, TIME in Unix milliseconds that from which on all ids are known or '-' if all are, and
// a POINT is of RestartPoints::ToString.
struct SnapshotNotes {
  int64_t origin = 0;
  int64_t mark_offset = -1;
  int64_t timed_records = 0;
  absl::Time covered_since = absl::InfinitePast();
  std::string points;

  std::string ToString() const;
  static std::optional<SnapshotNotes> Parse(absl::string_view text);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_SNAPSHOT_NOTES_H_
