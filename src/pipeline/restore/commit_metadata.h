// The texts in commits and snapshots from which the next owner of a partition restores its filter.
//
// Commit metadata, within offset.metadata.max.bytes (4,096 by default), fields in this order, separated by
// one space:
//
//   lethe/2 o=ORIGIN n=PARTITIONS r=RESTART rt=TIME ct=TIME id=FINGERPRINT h=HORIZON_MS [s=SNAPSHOT]
//       [cs=TIME] [g=PARTITIONS[:OFFSET:TIME]] [out=TOPIC] [sc=SCOPE] [b=OFFSET:HASH]
//       [u=OFFSET[,DISTANCE]...] [lt=TIME] [ti=TOPIC_ID] [nt=TIME] [wt=TIME]
//       [tk=FINGERPRINT:KEYS[,FINGERPRINT:KEYS]...]
//
// ORIGIN and RESTART are offsets. TIME is stream time in Unix milliseconds, or '-' before it first moves.
//   o    the first offset that was judged since the group's last reset
//   n    the partitions that the topic had then
//   r    a rebuild of the filter reads from here on;  rt  stream time there
//   ct   stream time at the committed offset
//   id   the fingerprint of the id (IdSpec::Fingerprint)
//   h    the horizon in milliseconds
// Fields in brackets may be missing:
//   s    the id of the snapshot that counts (SnapshotId)
//   cs   the stream time since which all ids are known, while that is less than the horizon ago
//   g    the topic has grown (Growth); without OFFSET and TIME once the horizon has passed; TIME is '-' until
//        OFFSET is reached
//   out  the output topic
//   sc   "partition" or "topic"
//   b    the last record before the committed offset, and the hexadecimal hash of its key and value
//   u    the undeliverable records from RESTART on, the newest first, each DISTANCE before the previous one;
//        the oldest are left out beyond kMostListBytes
//   lt   the timestamp of the record of b, which tells an expired log from a cut one
//   ti   the topic id of the input: one that was created later under the same name has another
//   nt   of the router of scope: topic: no record from the committed offset on is older, but for wrong
//        timestamps
//   wt   the wall clock of the commit, by which records were judged to be too far ahead
//   tk   of each counter with totals its fingerprint, and how many keys have a total in this partition: a
//        topic of totals that has fewer was deleted, or cut
// Unknown fields are ignored; a word without '=' is damage.
//
// lethe/1 is the same with fewer fields. Lethe reads it and writes the new one, which versions that know only
// lethe/1 refuse.
#ifndef LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_
#define LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/restore/restart_points.h"

namespace lethe {

// The topic has more partitions than at the partition's origin: a key may have moved to another partition.
struct Growth {
  int32_t partitions = 0;  // now; 0: as many as at the origin
  // Records from here on were sent after the growth; -1: it is longer ago than the horizon.
  int64_t offset = -1;
  absl::Time time = absl::InfinitePast();  // stream time at `offset`; InfinitePast(): not reached yet

  // Everything before `next` was read, and stream time is `now`.
  void Reach(int64_t next, absl::Time now) {
    if (offset >= 0 && next >= offset && time == absl::InfinitePast()) time = now;
  }
  // Whether copies of records from before the growth may still come.
  bool IsRecent(absl::Time now, absl::Duration horizon) const {
    return offset >= 0 && (time == absl::InfinitePast() || now - horizon < time);
  }
};

// Where the group has begun to judge, since its last reset.
struct Origin {
  int64_t offset = 0;      // O
  int32_t partitions = 0;  // of the topic, at that time
};

// A record, by which a log is recognized.
struct LogMark {
  int64_t offset = -1;                     // -1: none, or not known
  uint64_t hash = 0;                       // of key and value
  absl::Time time = absl::InfinitePast();  // its timestamp; InfinitePast(): not known
};

// How many keys have a total of a counter (TotalsFingerprint).
struct TotalKeys {
  uint64_t counter = 0;
  int64_t keys = 0;

  bool operator==(const TotalKeys&) const = default;
};
// 0: none of the counter.
int64_t KeysOf(const std::vector<TotalKeys>& totals, uint64_t counter);

struct CommitMetadata {
  Origin origin;
  RestartPoint restart;                              // R: a rebuild reads from here
  absl::Time committed_time = absl::InfinitePast();  // stream time at the committed offset
  std::string id_fingerprint;
  absl::Duration horizon;
  std::string snapshot = "";  // its id, not parsed
  // Stream time since which all ids are known; InfinitePast(): all of the horizon are.
  absl::Time covered_since = absl::InfinitePast();
  Growth growth = {};
  std::string output = "";                  // empty: the commit is older than the field
  std::string scope = "";                   // likewise
  LogMark last = {};                        // the record before the committed offset; its time is not bounded
  std::vector<int64_t> undeliverable = {};  // ascending offsets from `restart` on
  std::string topic_id = "";                // of the input, as the cluster names it; empty: not known
  absl::Time next_record_time = absl::InfinitePast();  // not known: InfinitePast()
  absl::Time wall_time = absl::InfinitePast();         // likewise
  std::vector<TotalKeys> totals = {};                  // without counters that have no key

  // More counters are not read: it is not lethe's.
  static constexpr size_t kMostCounters = 16;

  static constexpr size_t kMostListBytes = 1536;
  // How many of these offsets, from the newest, fit into the list.
  static size_t ListedOf(const std::vector<int64_t>& offsets);

  // Drops stream times after `latest`. True if there was one: the history is then short.
  bool DropTimesAfter(absl::Time latest);

  std::string ToString() const;

  // NotFound: not lethe's (an operator's reset, or another program's commit). FailedPrecondition: another
  // version of the format. DataLoss: damaged.
  static absl::StatusOr<CommitMetadata> Parse(absl::string_view text);
};

// Of a commit, for those that read many of them and need no more. The infinite past: it has none, or is not
// lethe's.
struct CommitTimes {
  absl::Time committed = absl::InfinitePast();  // CommitMetadata::committed_time
  absl::Time next_record = absl::InfinitePast();
};
CommitTimes ReadCommitTimes(absl::string_view text);

// The name of a snapshot: the next offset to read, and a unique token: its start in milliseconds (42 bits)
// and 22 random bits.
struct SnapshotId {
  int64_t offset = -1;
  uint64_t token = 0;

  static SnapshotId New(int64_t offset, absl::Time now, uint32_t random = std::random_device()());
  absl::Time time() const { return absl::FromUnixMillis(static_cast<int64_t>(token >> 22)); }
  // "184467-5f0c3a9be1d200a1". Parse accepts no other form: the text comes from a commit and becomes part of
  // a file's name.
  std::string ToString() const;
  static std::optional<SnapshotId> Parse(absl::string_view text);

  bool operator==(const SnapshotId&) const = default;

  // By offset and by clock. After an operator's reset offsets are lower but times are not: then neither is
  // older.
  bool IsOlderThan(const SnapshotId& other) const { return offset <= other.offset && token < other.token; }
};

// Text in the snapshot (SnapshotPoint::notes):
//
//   o=ORIGIN m=OFFSET n=RECORDS c=TIME p=POINT,POINT,... out=TOPIC
//
// OFFSET: of the last record before the snapshot's offset. RECORDS: the number of records with a time so far.
// TIME: stream time since which all ids are known, or '-' if all are. POINT: see RestartPoints::ToString.
// TOPIC: the output to which the ids have passed.
struct SnapshotNotes {
  int64_t origin = 0;
  int64_t mark_offset = -1;
  int64_t timed_records = 0;
  absl::Time covered_since = absl::InfinitePast();
  std::string points;
  std::string output = "";

  std::string ToString() const;
  static std::optional<SnapshotNotes> Parse(absl::string_view text);
};

// Unix milliseconds, or '-' for the infinite past. False if it is neither.
std::string TimeText(absl::Time time);
bool ParseTime(absl::string_view text, absl::Time* time);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_COMMIT_METADATA_H_
