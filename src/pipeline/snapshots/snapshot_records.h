// The records of snapshots in a topic. Anybody with Write on the topic may have written them: nothing here is
// believed for its size.
//
// Keys are text, behind a prefix of the partition:
//
//   ID/INDEX       a chunk: bytes [INDEX x kChunkBytes, ...) of the file
//   ID/manifest    "lethe-snapshot/1 chunks=COUNT bytes=BYTES"
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_RECORDS_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/snapshots/memory_file.h"

namespace lethe {

// Well below the megabyte that topics take by default.
inline constexpr int64_t kChunkBytes = 512 << 10;

// The most chunks that a snapshot can have where filters may take so much memory.
int64_t MostChunks(int64_t memory_bytes);

struct SnapshotKey {
  SnapshotId id;
  std::optional<int64_t> chunk;  // none: the manifest

  std::string ToString() const;
  // None for any text that ToString() does not write, and for chunks from `most_chunks` on.
  static std::optional<SnapshotKey> Parse(absl::string_view key, int64_t most_chunks);
};

struct SnapshotManifest {
  int64_t chunks = 0;
  int64_t bytes = 0;

  static SnapshotManifest Of(int64_t bytes) { return {(bytes - 1) / kChunkBytes + 1, bytes}; }
  std::string ToString() const;
  // None if there are more chunks than `most_chunks`, or another number than the bytes need.
  static std::optional<SnapshotManifest> Parse(absl::string_view text, int64_t most_chunks);
};

// Collects the bytes of a snapshot.
//
// Not thread-safe.
class SnapshotCollector {
 public:
  // `topic` is for messages. The file gets the bytes, and outlives the collector.
  SnapshotCollector(SnapshotId id, int64_t most_chunks, const std::string& topic, const MemoryFile& file);

  // The topic's next record of the partition: its key behind the partition's prefix, and its value; none: a
  // tombstone. False: there is no more to collect.
  bool See(absl::string_view key, std::optional<absl::string_view> value);

  // Of the whole snapshot. NotFound: it is not there, or not whole.
  const absl::StatusOr<SnapshotManifest>& manifest() const { return manifest_; }

 private:
  const SnapshotId id_;
  const int64_t most_chunks_;
  const std::string topic_;
  const MemoryFile& file_;
  absl::StatusOr<SnapshotManifest> manifest_;
  std::set<int64_t> found_;  // chunks
};

// Finds what earlier owners of a partition left of their snapshots: the records that are there, and no
// others.
//
// Not thread-safe.
class SnapshotRemains {
 public:
  // Of snapshots older than `id`. Looks through `most_bytes` at most.
  SnapshotRemains(SnapshotId id, int64_t most_chunks, int64_t most_bytes)
      : id_(id), most_chunks_(most_chunks), left_(most_bytes) {}

  // The topic's next record: its key behind the partition's prefix, if it is of the partition, and its size.
  // False: there is no more to find.
  bool See(std::optional<absl::string_view> key, bool is_tombstone, int64_t bytes);

  // The chunks that are there, by the snapshot's id; none of them: its manifest alone.
  const std::map<std::string, std::set<int64_t>>& chunks() const { return chunks_; }

 private:
  const SnapshotId id_;
  const int64_t most_chunks_;
  int64_t left_;
  std::map<std::string, std::set<int64_t>> chunks_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOT_RECORDS_H_
