#include "src/pipeline/snapshots/snapshot_records.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

constexpr absl::string_view kManifest = "manifest";
constexpr absl::string_view kFormat = "lethe-snapshot/1";
// A snapshot has the filter's lines, and beside them what takes no part of the limit: headers, the sample of
// the audit, the restart points.
constexpr int64_t kBeside = int64_t{64} << 20;
// What a record takes in the search beside its bytes.
constexpr int64_t kEach = 64;

}  // namespace

int64_t MostChunks(int64_t memory_bytes) { return (memory_bytes / kChunkBytes + kBeside / kChunkBytes) * 2; }

std::string SnapshotKey::ToString() const {
  return chunk ? absl::StrCat(id.ToString(), "/", *chunk) : absl::StrCat(id.ToString(), "/", kManifest);
}

std::optional<SnapshotKey> SnapshotKey::Parse(absl::string_view key, int64_t most_chunks) {
  const std::pair<absl::string_view, absl::string_view> split = absl::StrSplit(key, absl::MaxSplits('/', 1));
  const std::optional<SnapshotId> id = SnapshotId::Parse(split.first);
  if (!id) return std::nullopt;
  SnapshotKey parsed = {*id, std::nullopt};
  if (split.second == kManifest) return parsed;
  int64_t index = 0;
  if (!absl::SimpleAtoi(split.second, &index) || index < 0 || index >= most_chunks) return std::nullopt;
  parsed.chunk = index;
  // Not "007": a tombstone would have another key.
  return parsed.ToString() == key ? std::optional(parsed) : std::nullopt;
}

std::string SnapshotManifest::ToString() const {
  return absl::StrCat(kFormat, " chunks=", chunks, " bytes=", bytes);
}

std::optional<SnapshotManifest> SnapshotManifest::Parse(absl::string_view text, int64_t most_chunks) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, absl::MaxSplits(' ', 3));
  SnapshotManifest manifest;
  if (words.size() < 3 || words[0] != kFormat) return std::nullopt;
  absl::string_view chunks = words[1], bytes = words[2];
  if (!absl::ConsumePrefix(&chunks, "chunks=") || !absl::SimpleAtoi(chunks, &manifest.chunks) ||
      !absl::ConsumePrefix(&bytes, "bytes=") || !absl::SimpleAtoi(bytes, &manifest.bytes)) {
    return std::nullopt;
  }
  const bool agrees = manifest.bytes > 0 && manifest.chunks == Of(manifest.bytes).chunks;
  return agrees && manifest.chunks <= most_chunks ? std::optional(manifest) : std::nullopt;
}

SnapshotCollector::SnapshotCollector(SnapshotId id, int64_t most_chunks, const std::string& topic,
                                     const MemoryFile& file)
    : id_(id),
      most_chunks_(most_chunks),
      topic_(topic),
      file_(file),
      manifest_(absl::NotFoundError(absl::StrCat("it is not, or not whole, in topic ", topic))) {}

bool SnapshotCollector::See(absl::string_view key, std::optional<absl::string_view> value) {
  if (!value) return true;
  const std::optional<SnapshotKey> parsed = SnapshotKey::Parse(key, most_chunks_);
  if (!parsed || !(parsed->id == id_)) return true;
  if (!parsed->chunk) {
    const std::optional<SnapshotManifest> manifest = SnapshotManifest::Parse(*value, most_chunks_);
    if (!manifest) {
      manifest_ = absl::DataLossError(absl::StrCat("its manifest in ", topic_, " is damaged"));
    } else if (static_cast<int64_t>(found_.size()) == manifest->chunks &&
               *found_.rbegin() == manifest->chunks - 1) {
      manifest_ = *manifest;
    }
    return false;
  }
  if (static_cast<int64_t>(value->size()) > kChunkBytes) {
    manifest_ =
        absl::DataLossError(absl::StrCat("its chunk ", *parsed->chunk, " in ", topic_, " is damaged"));
    return false;
  }
  if (!file_.Write(*parsed->chunk * kChunkBytes, *value)) {
    manifest_ = absl::ResourceExhaustedError("no memory for a snapshot");
    return false;
  }
  found_.insert(*parsed->chunk);
  return true;
}

bool SnapshotRemains::See(std::optional<absl::string_view> key, bool is_tombstone, int64_t bytes) {
  left_ -= bytes + kEach;
  const std::optional<SnapshotKey> parsed =
      key ? SnapshotKey::Parse(*key, most_chunks_) : std::optional<SnapshotKey>();
  if (!parsed) return left_ > 0;
  // Other owners wrote theirs before this one.
  if (parsed->id == id_) return false;
  if (!parsed->id.IsOlderThan(id_)) return left_ > 0;
  const std::string id = parsed->id.ToString();
  if (!is_tombstone) {
    std::set<int64_t>& chunks = chunks_[id];
    if (parsed->chunk) chunks.insert(*parsed->chunk);
    return left_ > 0;
  }
  const auto found = chunks_.find(id);
  if (found == chunks_.end()) return left_ > 0;
  // The manifest's is the first of them.
  if (parsed->chunk) found->second.erase(*parsed->chunk);
  if (found->second.empty()) chunks_.erase(found);
  return left_ > 0;
}

}  // namespace lethe
