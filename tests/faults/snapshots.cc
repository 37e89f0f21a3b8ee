#include "tests/faults/snapshots.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/snapshot_format.h"

namespace lethe::test {
namespace {

constexpr absl::string_view kSuffix = ".snapshot";
constexpr absl::string_view kManifest = "manifest";
constexpr size_t kChunkBytes = 512 << 10;  // of the topic's format

// PREFIX.ID.snapshot
class FolderShelf final : public SnapshotShelf {
 public:
  explicit FolderShelf(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<std::vector<StoredSnapshot>> Load() override {
    std::vector<StoredSnapshot> snapshots;
    for (const std::string& name : Names()) {
      std::ifstream file(folder_ + "/" + name, std::ios::binary);
      if (!file) continue;  // one that is replaced just now
      const size_t dot = name.rfind('.', name.size() - kSuffix.size() - 1);
      StoredSnapshot& snapshot = snapshots.emplace_back();
      snapshot.series = name.substr(0, dot);
      snapshot.id = name.substr(dot + 1, name.size() - kSuffix.size() - dot - 1);
      snapshot.bytes.assign(std::istreambuf_iterator<char>(file), {});
    }
    return snapshots;
  }

  absl::Status Store(const std::vector<StoredSnapshot>& snapshots) override {
    std::set<std::string> wanted;
    for (const StoredSnapshot& snapshot : snapshots) {
      const std::string name = absl::StrCat(snapshot.series, ".", snapshot.id, kSuffix);
      wanted.insert(name);
      std::ofstream file(folder_ + "/" + name, std::ios::binary | std::ios::trunc);
      file << snapshot.bytes;
      if (!file.flush()) return absl::InternalError(absl::StrCat("cannot write ", name));
    }
    for (const std::string& name : Names()) {
      std::error_code ignored;
      if (!wanted.contains(name)) std::filesystem::remove(folder_ + "/" + name, ignored);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    std::error_code error;  // lethe makes the folder
    for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (absl::EndsWith(name, kSuffix)) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string folder_;
};

// GROUP/INPUT/PARTITION/ID/CHUNK, and .../manifest
class TopicShelf final : public SnapshotShelf {
 public:
  TopicShelf(KafkaClient& client, std::string topic) : client_(client), topic_(std::move(topic)) {}

  absl::StatusOr<std::vector<StoredSnapshot>> Load() override {
    const auto records = client_.ReadAll(topic_, Isolation::kReadUncommitted);
    if (!records.ok()) return records.status();
    std::map<std::string, StoredSnapshot> by_name;
    std::map<std::string, std::map<int64_t, std::string>> chunks;
    for (const Record& record : *records) {
      const std::string key = record.key.value_or("");
      const size_t slash = key.rfind('/');
      if (slash == key.npos) return absl::InternalError(absl::StrCat("a foreign key in ", topic_, ": ", key));
      const std::string name = key.substr(0, slash);
      int64_t index = 0;
      if (absl::SimpleAtoi(key.substr(slash + 1), &index)) {
        if (record.value) chunks[name][index] = *record.value;
        continue;
      }
      by_name.erase(name);
      if (!record.value) continue;
      StoredSnapshot& snapshot = by_name[name];
      snapshot.series = name.substr(0, name.rfind('/'));
      snapshot.id = name.substr(name.rfind('/') + 1);
      snapshot.partition = record.partition;
      snapshot.timestamp_ms = record.timestamp_ms;
      for (const auto& [at, chunk] : chunks[name]) snapshot.bytes += chunk;
    }
    std::vector<StoredSnapshot> snapshots;
    for (auto& [name, snapshot] : by_name) snapshots.push_back(std::move(snapshot));
    return snapshots;
  }

  absl::Status Store(const std::vector<StoredSnapshot>& snapshots) override {
    const auto ends = client_.EndOffsets(topic_, Isolation::kReadUncommitted);
    if (!ends.ok()) return ends.status();
    for (size_t p = 0; p < ends->size(); ++p) {
      if ((*ends)[p] == 0) continue;
      const absl::Status deleted = client_.DeleteRecords(topic_, static_cast<int32_t>(p), (*ends)[p]);
      if (!deleted.ok()) return deleted;
    }
    std::vector<Record> records;
    for (const StoredSnapshot& snapshot : snapshots) {
      if (snapshot.bytes.empty()) continue;  // nothing can be stored so
      size_t index = 0;
      const auto add = [&](const std::string& what, const std::string& value) {
        Record& record = records.emplace_back();
        record.key = absl::StrCat(snapshot.series, "/", snapshot.id, "/", what);
        record.value = value;
        record.partition = snapshot.partition;
        record.timestamp_ms = snapshot.timestamp_ms;
      };
      for (size_t at = 0; at < snapshot.bytes.size(); at += kChunkBytes, ++index) {
        add(absl::StrCat(index), snapshot.bytes.substr(at, kChunkBytes));
      }
      add(std::string(kManifest),
          absl::StrCat("lethe-snapshot/1 chunks=", index, " bytes=", snapshot.bytes.size()));
    }
    return client_.Produce(topic_, records);
  }

 private:
  KafkaClient& client_;
  const std::string topic_;
};

// Changes the header, and seals it as lethe would.
absl::Status ChangeHeader(std::string& bytes, size_t kind) {
  const int fd = memfd_create("snapshot", MFD_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "memfd_create");
  const auto size = static_cast<ssize_t>(bytes.size());
  absl::Status status;
  if (write(fd, bytes.data(), bytes.size()) != size || lseek(fd, 0, SEEK_SET) != 0) {
    status = absl::ErrnoToStatus(errno, "writing a snapshot to memory");
  }
  auto reader = SnapshotReader::Open(absl::StrCat("/proc/self/fd/", fd));
  if (status.ok()) status = reader.status();
  absl::StatusOr<SnapshotHeader> header;
  if (status.ok()) {
    header = SnapshotHeader::Read(&*reader);
    status = header.status();
  }
  if (status.ok()) {
    const auto change_last = [](std::string& text) { text.back() = text.back() == 'x' ? 'y' : 'x'; };
    if (kind == 0) change_last(header->origin.topic);
    if (kind == 1) ++header->origin.partition;
    if (kind == 2) change_last(header->origin.id_fingerprint);
    if (kind == 3) header->horizon *= 2;
    if (kind == 4) header->target_fpp *= 10;
    if (kind == 5) ++header->shards;
    if (kind == 6) header->renew = !header->renew;
    SnapshotWriter writer = SnapshotWriter::Onto(fd);
    status = header->Rewrite(&writer);
  }
  if (status.ok() && pread(fd, bytes.data(), bytes.size(), 0) != size) {
    status = absl::ErrnoToStatus(errno, "reading a snapshot from memory");
  }
  close(fd);
  return absl::IsDataLoss(status) ? absl::OkStatus() : status;  // it was damaged before
}
constexpr size_t kHeaderChanges = 7;

}  // namespace

std::unique_ptr<SnapshotShelf> ShelfInFolder(std::string folder) {
  return std::make_unique<FolderShelf>(std::move(folder));
}

std::unique_ptr<SnapshotShelf> ShelfInTopic(KafkaClient& client, std::string topic) {
  return std::make_unique<TopicShelf>(client, std::move(topic));
}

void SnapshotHarm::Damage(std::vector<StoredSnapshot>& snapshots) {
  const size_t how = Below(4);
  if (how == 0) return snapshots.clear();
  for (StoredSnapshot& snapshot : snapshots) {
    if (snapshot.bytes.empty()) continue;
    if (how == 1) {
      snapshot.bytes.resize(Below(snapshot.bytes.size()));
      continue;
    }
    for (size_t count = 1 + Below(3); count > 0; --count) {
      char& byte = snapshot.bytes[Below(snapshot.bytes.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + Below(255)));
    }
  }
}

void SnapshotHarm::PutBack(const std::vector<StoredSnapshot>& before,
                           std::vector<StoredSnapshot>& snapshots) {
  if (Below(3) == 0) {
    snapshots = before;
    return;
  }
  for (StoredSnapshot& snapshot : snapshots) {
    for (const StoredSnapshot& old : before) {
      if (old.series == snapshot.series && old.id != snapshot.id) snapshot.bytes = old.bytes;
    }
  }
}

absl::Status SnapshotHarm::MakeForeign(std::vector<StoredSnapshot>& snapshots) {
  if (snapshots.empty()) return absl::OkStatus();
  if (Below(4) == 0 && snapshots.front().series != snapshots.back().series) {
    std::string first = snapshots.front().bytes;
    for (size_t i = 0; i + 1 < snapshots.size(); ++i) snapshots[i].bytes = snapshots[i + 1].bytes;
    snapshots.back().bytes = std::move(first);
    return absl::OkStatus();
  }
  for (StoredSnapshot& snapshot : snapshots) {
    if (absl::Status changed = ChangeHeader(snapshot.bytes, Below(kHeaderChanges)); !changed.ok()) {
      return changed;
    }
  }
  return absl::OkStatus();
}

}  // namespace lethe::test
