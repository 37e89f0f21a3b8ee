// The metadata that a committed offset carries, so that the next owner of the partition knows where to
// rebuild its filter from.
//
// Text, within offset.metadata.max.bytes (4,096 by default), fields in this order, separated by one space:
//
//   lethe/2 o=ORIGIN n=PARTITIONS r=RESTART rt=TIME ct=TIME id=FINGERPRINT h=HORIZON_MS [s=SNAPSHOT]
//       [cs=TIME] [g=PARTITIONS[:OFFSET:TIME]] [out=TOPIC] [sc=SCOPE] [b=OFFSET:HASH]
//       [u=OFFSET[,DISTANCE]...] [lt=TIME]
//
// ORIGIN and RESTART are offsets, times are stream time in Unix milliseconds or '-' where stream time has
// not started to move. The fields in brackets are left out where they have nothing to say: SNAPSHOT is the id
// of the snapshot that counts (snapshot_notes.h), cs the stream time since which all ids are known while that
// is less than the horizon ago, and g that the topic has grown (see Growth; OFFSET and TIME are left out when
// the horizon has gone by, and TIME is '-' until OFFSET is reached). TOPIC is the output and SCOPE
// "partition" or "topic". b is the last record before the committed offset, with the hash of its key and
// value in hexadecimal digits. u lists the undeliverable records from RESTART on, the newest first, each
// DISTANCE before the one that stands in front of it; the oldest are left out where the list would be longer
// than kMostListBytes. lt is the timestamp of the last record before the committed offset, by which a log
// that has expired is told from one that was cut. Unknown fields are ignored; a word that is no field is
// damage.
//
// Format lethe/1 is the same without the last five fields. It is read, so that a group goes on after an
// upgrade; the next commit is in the new format, which versions that know only lethe/1 refuse.
#ifndef LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_
#define LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// That the topic was given more partitions than it had at the partition's origin: since then the records of a
// key may go to another partition than before.
struct Growth {
  int32_t partitions = 0;  // that it has; 0: as many as at the origin
  // The records from here on were sent after it; -1: that is more than the horizon ago.
  int64_t offset = -1;
  absl::Time time = absl::InfinitePast();  // stream time at `offset`; InfinitePast(): it is not reached yet

  // Everything before `next` was read, and stream time is `now`.
  void Reach(int64_t next, absl::Time now) {
    if (offset >= 0 && next >= offset && time == absl::InfinitePast()) time = now;
  }
  // Whether copies of what was sent before it may still come, within the horizon.
  bool IsRecent(absl::Time now, absl::Duration horizon) const {
    return offset >= 0 && (time == absl::InfinitePast() || now - horizon < time);
  }
};

struct CommitMetadata {
  int64_t origin = 0;             // O: the first offset that this group ever judged in its present life
  int32_t origin_partitions = 0;  // how many partitions the topic had when the partition began at O
  int64_t restart = 0;            // R: where a rebuild must start reading
  absl::Time restart_time = absl::InfinitePast();    // stream time at R
  absl::Time committed_time = absl::InfinitePast();  // stream time at the committed offset
  std::string id_fingerprint;
  absl::Duration horizon;
  std::string snapshot = "";  // the id of the one that counts, as it stands there
  // Stream time since which all ids are known; InfinitePast(): all of the horizon are.
  absl::Time covered_since = absl::InfinitePast();
  Growth growth = {};
  std::string output = "";  // empty: the commit is older than the field
  std::string scope = "";   // likewise
  // The last record before the committed offset; -1: not known.
  int64_t record_before = -1;
  uint64_t record_before_hash = 0;
  std::vector<int64_t> undeliverable = {};             // offsets from `restart` on, rising
  absl::Time last_record_time = absl::InfinitePast();  // of the last record before C, as it says; not bounded

  static constexpr size_t kMostListBytes = 1536;
  // How many of such offsets, the newest, the list has room for.
  static size_t ListedOf(const std::vector<int64_t>& offsets);

  // Takes stream times after `latest` for unknown. True if there was one: the records that the filter knew
  // at C are then those from R on, and whether these are all of a horizon is not known.
  bool DropTimesAfter(absl::Time latest);

  std::string ToString() const;

  // NotFound: this is no metadata of lethe's (an operator's reset, or another program's commit).
  // FailedPrecondition: written by another version of the format.
  // DataLoss: lethe's, but damaged.
  static absl::StatusOr<CommitMetadata> Parse(absl::string_view text);
};

// Stream times in such texts: Unix milliseconds, or '-' for the infinite past. False if it is neither.
std::string TimeText(absl::Time time);
bool ParseTime(absl::string_view text, absl::Time* time);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_
