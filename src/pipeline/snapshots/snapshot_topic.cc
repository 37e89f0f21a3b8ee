#include "src/pipeline/snapshots/snapshot_topic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/pipeline/snapshots/memory_file.h"
#include "src/pipeline/snapshots/snapshot_records.h"
#include "src/sync/mutex.h"

namespace lethe {
namespace {

// An owner leaves one snapshot at most, of about the size of the next one's. Snapshots of other partitions or
// groups in the same partition may lie between.
constexpr int64_t kLookThroughSnapshots = 4;
constexpr int64_t kLookThroughBytes = int64_t{16} << 20;
constexpr size_t kMostCandidates = 16;

class SnapshotTopic final : public SnapshotStore {
 public:
  SnapshotTopic(const DaemonOptions& options, std::unique_ptr<SnapshotLog> log, int32_t partitions)
      : options_(options),
        id_fingerprint_(options.record.id.Fingerprint()),
        most_chunks_(MostChunks(options.stage.memory_limit_bytes)),
        partitions_(partitions),
        log_(std::move(log)) {}

  absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) override;
  absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                            const GoOn& go_on) override;
  absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t partition, int64_t at_most,
                                                         const GoOn& go_on) override;
  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    return Delete(snapshots, [] { return true; });
  }
  absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                         bool is_first) override;

 private:
  std::string Prefix(int32_t partition) const {
    return absl::StrCat(options_.process.group, "/", options_.input, "/", partition, "/");
  }
  int32_t Place(int32_t partition) const { return partition % partitions_; }

  // No value: a tombstone.
  absl::Status Send(int32_t partition, const SnapshotKey& key, std::optional<absl::string_view> value);
  absl::Status Flush() { return log_->Flush(until_stop_); }
  absl::Status WriteChunks(int32_t partition, SnapshotId id, const MemoryFile& file, const GoOn& go_on);
  // Reads the snapshot's chunks into the file.
  absl::StatusOr<SnapshotManifest> Read(int32_t partition, SnapshotId id, const MemoryFile& file,
                                        const GoOn& go_on) const;
  // Finds the remains of earlier owners since `from`, older than `id`.
  absl::Status FindOlder(int32_t partition, SnapshotId id, absl::Time from);
  absl::Status Delete(const std::vector<PartitionSnapshot>& snapshots, const GoOn& go_on);

  const DaemonOptions& options_;
  const std::string id_fingerprint_;
  const int64_t most_chunks_;
  const int32_t partitions_;
  const std::unique_ptr<SnapshotLog> log_;
  const GoOn until_stop_ = [this] { return !stopped(); };

  Mutex mutex_;
  // The chunks that were written or seen of snapshots in the topic, by partition and id.
  std::map<std::pair<int32_t, std::string>, std::set<int64_t>> chunks_ ABSL_GUARDED_BY(mutex_);
};

absl::Status SnapshotTopic::Send(int32_t partition, const SnapshotKey& key,
                                 std::optional<absl::string_view> value) {
  return log_->Send({.partition = Place(partition),
                     .key = absl::StrCat(Prefix(partition), key.ToString()),
                     .value = value,
                     .time = key.id.time()},
                    until_stop_);
}

absl::Status SnapshotTopic::Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) {
  const MemoryFile file;
  if (absl::Status status = file.status(); !status.ok()) return status;
  if (absl::Status status = image.Write(file.descriptor(), go_on); !status.ok()) return status;
  absl::Status written = WriteChunks(partition, id, file, go_on);
  if (written.ok()) {
    written = Send(partition, {id, std::nullopt}, SnapshotManifest::Of(file.size()).ToString());
    const absl::Status flushed = Flush();
    if (written.ok()) written = flushed;
  }
  // If that fails too, the next snapshot that counts tries again.
  if (!written.ok()) Remove({{partition, id}}).IgnoreError();
  return written;
}

absl::Status SnapshotTopic::WriteChunks(int32_t partition, SnapshotId id, const MemoryFile& file,
                                        const GoOn& go_on) {
  absl::Status status;
  for (int64_t at = 0, index = 0; at < file.size() && status.ok(); at += kChunkBytes, ++index) {
    std::string chunk(static_cast<size_t>(std::min(kChunkBytes, file.size() - at)), '\0');
    if (!file.Read(at, chunk)) status = absl::InternalError("a snapshot in memory cannot be read");
    if (!go_on()) status = absl::CancelledError("writing the snapshot was cancelled");
    if (status.ok()) {
      {
        const MutexLock lock(mutex_);
        chunks_[{partition, id.ToString()}].insert(index);
      }
      status = Send(partition, {id, index}, chunk);
    }
  }
  const absl::Status flushed = Flush();
  return status.ok() ? flushed : status;
}

absl::StatusOr<SnapshotManifest> SnapshotTopic::Read(int32_t partition, SnapshotId id, const MemoryFile& file,
                                                     const GoOn& go_on) const {
  const std::string prefix = Prefix(partition);
  SnapshotCollector collector(id, most_chunks_, options_.process.snapshots.topic, file);
  const auto see = [&](absl::string_view key, std::optional<absl::string_view> value) {
    return !absl::ConsumePrefix(&key, prefix) || collector.See(key, value);
  };
  if (absl::Status scanned = log_->Scan(Place(partition), id.time(), go_on, see); !scanned.ok())
    return scanned;
  return collector.manifest();
}

absl::StatusOr<RestoredPartition> SnapshotTopic::Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                                         const GoOn& go_on) {
  const MemoryFile file;
  if (absl::Status status = file.status(); !status.ok()) return status;
  const absl::StatusOr<SnapshotManifest> manifest = Read(partition, id, file, go_on);
  if (!manifest.ok()) return manifest.status();
  {
    const MutexLock lock(mutex_);
    std::set<int64_t>& chunks = chunks_[{partition, id.ToString()}];
    for (int64_t index = 0; index < manifest->chunks; ++index) chunks.insert(index);
  }
  return stage.Restore(absl::StrCat(options_.input, "-", partition), file.path(),
                       {.topic = options_.input, .partition = partition, .id_fingerprint = id_fingerprint_},
                       go_on);
}

absl::StatusOr<std::optional<SnapshotId>> SnapshotTopic::FindYoungest(int32_t partition, int64_t at_most,
                                                                      const GoOn& go_on) {
  const std::string prefix = Prefix(partition);
  // Those that have a manifest, by time: a few, since anybody may have written them. The older ones are
  // deleted first.
  std::map<uint64_t, SnapshotId> whole;
  const auto see = [&](absl::string_view key, std::optional<absl::string_view> value) {
    if (!absl::ConsumePrefix(&key, prefix)) return true;
    const auto found = SnapshotKey::Parse(key, most_chunks_);
    if (!found || found->chunk || found->id.offset > at_most) return true;
    if (value && SnapshotManifest::Parse(*value, most_chunks_)) {
      whole.insert_or_assign(found->id.token, found->id);
    } else {
      whole.erase(found->id.token);
    }
    if (whole.size() > kMostCandidates) whole.erase(whole.begin());
    return true;
  };
  if (absl::Status scanned = log_->Scan(Place(partition), absl::UnixEpoch(), go_on, see); !scanned.ok())
    return scanned;
  if (whole.empty()) return std::nullopt;
  return whole.rbegin()->second;
}

absl::Status SnapshotTopic::FindOlder(int32_t partition, SnapshotId id, absl::Time from) {
  const std::string prefix = Prefix(partition);
  int64_t look_through = kLookThroughBytes;
  {
    const MutexLock lock(mutex_);
    const auto own = static_cast<int64_t>(chunks_[{partition, id.ToString()}].size());
    look_through += kLookThroughSnapshots * kChunkBytes * own;
  }
  SnapshotRemains remains(id, most_chunks_, look_through);
  const auto see = [&](absl::string_view key, std::optional<absl::string_view> value) {
    const auto bytes = static_cast<int64_t>(key.size() + value.value_or("").size());
    const bool is_ours = absl::ConsumePrefix(&key, prefix);
    return remains.See(is_ours ? std::optional(key) : std::nullopt, !value, bytes);
  };
  const absl::Status scanned = log_->Scan(Place(partition), from, until_stop_, see);
  const MutexLock lock(mutex_);
  for (const auto& [other, chunks] : remains.chunks()) {
    chunks_[{partition, other}].insert(chunks.begin(), chunks.end());
  }
  return scanned;
}

absl::Status SnapshotTopic::DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                                      bool is_first) {
  absl::Status status;
  if (is_first) {
    bool is_known = false;
    if (before) {
      const MutexLock lock(mutex_);
      is_known = chunks_.contains({partition, before->ToString()});
    }
    // The owner that named `before` has deleted all older ones.
    const absl::Time from = !before    ? absl::UnixEpoch()
                            : is_known ? before->time() + absl::Milliseconds(1)
                                       : before->time();
    status = FindOlder(partition, id, from);
  }
  std::vector<PartitionSnapshot> older;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, chunks] : chunks_) {
      const SnapshotId other = *SnapshotId::Parse(key.second);
      if (key.first == partition && other.IsOlderThan(id)) older.push_back({partition, other});
    }
  }
  absl::Status deleted = Delete(older, until_stop_);
  return status.ok() ? deleted : status;
}

absl::Status SnapshotTopic::Delete(const std::vector<PartitionSnapshot>& snapshots, const GoOn& go_on) {
  absl::Status status;
  for (const auto& [partition, id] : snapshots) {
    std::set<int64_t> chunks;
    {
      const MutexLock lock(mutex_);
      chunks = chunks_[{partition, id.ToString()}];
    }
    // The manifest first: without it the snapshot does not exist.
    status = Send(partition, {id, std::nullopt}, std::nullopt);
    for (auto index = chunks.begin(); index != chunks.end() && status.ok(); ++index) {
      status = go_on() ? Send(partition, {id, *index}, std::nullopt)
                       : absl::CancelledError("deleting snapshots was cancelled");
    }
    if (!status.ok()) break;
  }
  status.Update(Flush());
  if (!status.ok()) return status;
  const MutexLock lock(mutex_);
  for (const auto& [partition, id] : snapshots) chunks_.erase({partition, id.ToString()});
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<SnapshotStore> MakeSnapshotTopic(const DaemonOptions& options,
                                                 std::unique_ptr<SnapshotLog> log, int32_t partitions) {
  return std::make_unique<SnapshotTopic>(options, std::move(log), partitions);
}

}  // namespace lethe
