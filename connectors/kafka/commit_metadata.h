// The story that a committed offset carries, so that whoever owns the partition next knows where to
// rebuild its filter from.
//
// Text, within offset.metadata.max.bytes (4,096 by default), fields in this order, separated by one space:
//
//   lethe/1 o=ORIGIN n=PARTITIONS r=RESTART rt=TIME ct=TIME id=FINGERPRINT h=HORIZON_MS [s=SNAPSHOT]
//
// ORIGIN and RESTART are offsets, times are stream time in Unix milliseconds or '-' where stream time has
// not started to move. SNAPSHOT is the id of the snapshot that counts (snapshot_notes.h), left out where
// there is none. Unknown fields behind these are ignored, so that a later 1.x may add some; another number
// behind "lethe/" is another format.
#ifndef LETHE_CONNECTORS_KAFKA_COMMIT_METADATA_H_
#define LETHE_CONNECTORS_KAFKA_COMMIT_METADATA_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe::kafka {

struct CommitMetadata {
  int64_t origin = 0;             // O: the first offset that this group ever judged in its present life
  int32_t origin_partitions = 0;  // how many partitions the topic had when the partition began at O
  int64_t restart = 0;            // R: where a rebuild must start reading
  absl::Time restart_time = absl::InfinitePast();    // stream time at R
  absl::Time committed_time = absl::InfinitePast();  // stream time at the committed offset
  std::string id_fingerprint;
  absl::Duration horizon;
  std::string snapshot = "";  // the id of the one that counts, as it stands there

  std::string ToString() const;

  // NotFound: this is no metadata of lethe's (an operator's reset, or another program's commit).
  // FailedPrecondition: written by another version of the format.
  // DataLoss: lethe's, but damaged.
  static absl::StatusOr<CommitMetadata> Parse(absl::string_view text);
};

// Stream times in such texts: Unix milliseconds, or '-' for the infinite past. False if it is neither.
std::string TimeText(absl::Time time);
bool ParseTime(absl::string_view text, absl::Time* time);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_COMMIT_METADATA_H_
