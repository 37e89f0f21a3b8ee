// The format of a snapshot, version 9.
//
// src/snapshot/README.md describes it byte by byte. A file is a sequence of pieces, each followed by its
// checksum (snapshot_file.h); a piece of state is a sequence of fields of eight bytes (fields.h), and what
// transfers them is the Transfer of each class: SnapshotHeader here, StreamTime, Shard, Audit, and those of
// the compact filter. The preamble is the same in every version, so that each can tell a later one from
// damage.
//
// A filter's memory is a function of the hash (HashId) and of the places that a layout gives an id: a change
// of either, or of any of the field lists, needs another version. Files of another version are not read:
// their ids would not be found, and a filter can always be rebuilt from its log. Version 8 had generations of
// equal length and other numbers of reasons, version 7 also not what is ahead of stream time, version 6 also
// had XXH3 and its seed, version 5 also did not count lost ids, version 4 also did not look for bursts,
// version 3 also had one number of slots for lines of a size, version 2 also an id's lines elsewhere, version
// 1 also no notes and no second opinions.
#ifndef LETHE_SRC_STAGE_SNAPSHOT_FORMAT_H_
#define LETHE_SRC_STAGE_SNAPSHOT_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lethe/options.h"
#include "lethe/snapshot.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/ahead_ids.h"
#include "src/stage/partition_key.h"
#include "src/stage/stream_time.h"

namespace lethe {

inline constexpr uint32_t kSnapshotVersion = 9;

struct SnapshotHeader {
  uint32_t version = kSnapshotVersion;
  std::string name = "";  // the partition's
  SnapshotOrigin origin = {};
  SnapshotPoint point = {};
  std::string engine = "";  // its name
  int shards = 1;
  absl::Duration horizon = absl::ZeroDuration();
  double target_fpp = 0;
  HashSalt salt;  // of the partition's key
  uint64_t key_check = 0;
  bool renew = false;
  bool started = false;  // an event was seen, or the time set
  StreamTime clock = {};
  AheadIds ahead{0};

  // InvalidArgument if a text is too long.
  absl::Status Write(SnapshotWriter* writer) const;
  // Overwrites the header that was written, which has the same size.
  absl::Status Rewrite(SnapshotWriter* writer) const;
  // DataLoss, or FailedPrecondition for another version.
  static absl::StatusOr<SnapshotHeader> Read(SnapshotReader* reader);

 private:
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  absl::StatusOr<std::string> SerializedState() const;
};

// The last piece of the file.
absl::Status WriteSnapshotEnd(SnapshotWriter* writer);
absl::Status ReadSnapshotEnd(SnapshotReader* reader);

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_SNAPSHOT_FORMAT_H_
