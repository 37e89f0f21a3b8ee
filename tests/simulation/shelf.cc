#include "tests/simulation/shelf.h"

#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"

// In the place of the C library's: a snapshot's thread gives way to others again and again. Here it is the
// only one, and on a busy machine would wait for all other programs.
extern "C" int sched_yield() noexcept { return 0; }

namespace lethe::simulation {
namespace {

// A file without a disk.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("snapshot", 0)) {}
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }
  std::string Read() const {
    std::string bytes(static_cast<size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
    if (pread(descriptor_, bytes.data(), bytes.size(), 0) < 0) bytes.clear();
    return bytes;
  }
  bool Write(const std::string& bytes) const {
    return pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  }

 private:
  const int descriptor_;
};

class StoreOnShelf final : public SnapshotStore {
 public:
  StoreOnShelf(Shelf& shelf, const DaemonOptions& options, int32_t partitions, std::function<void()> pass)
      : shelf_(shelf),
        topic_(options.input),
        id_fingerprint_(IdFingerprint(options, partitions)),
        pass_(std::move(pass)) {}

  absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) override {
    const MemoryFile file;
    const absl::Status written = image.Write(file.descriptor(), [&] {
      pass_();
      return go_on();
    });
    if (!written.ok()) return written;
    pass_();
    shelf_.files[{topic_, partition, id.ToString()}] = file.Read();
    pass_();
    return absl::OkStatus();
  }
  absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                            const GoOn& go_on) override {
    const auto found = shelf_.files.find({topic_, partition, id.ToString()});
    if (found == shelf_.files.end()) return absl::NotFoundError("it is not here");
    const MemoryFile file;
    if (!file.Write(found->second)) return absl::InternalError("memory");
    return stage.Restore(absl::StrCat(topic_, "-", partition), file.path(),
                         {.topic = topic_, .partition = partition, .id_fingerprint = id_fingerprint_}, go_on);
  }
  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    pass_();
    for (const PartitionSnapshot& each : snapshots)
      shelf_.files.erase({topic_, each.partition, each.id.ToString()});
    return absl::OkStatus();
  }
  absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId>, bool) override {
    pass_();
    std::erase_if(shelf_.files, [&](const auto& each) {
      const auto& [topic, of, name] = each.first;
      const auto found = SnapshotId::Parse(name);
      return topic == topic_ && of == partition && found && found->IsOlderThan(id);
    });
    return absl::OkStatus();
  }

 private:
  Shelf& shelf_;
  const std::string topic_;
  const std::string id_fingerprint_;
  const std::function<void()> pass_;
};

}  // namespace

void Shelf::Damage(uint64_t number) {
  for (auto& [name, bytes] : files) {
    if (bytes.empty()) continue;
    number = number * 6364136223846793005 + 1442695040888963407;
    if (number >> 63 == 0) {
      bytes[(number >> 20) % bytes.size()] ^= static_cast<char>(1 << (number >> 10) % 8);
    } else {
      bytes.resize((number >> 20) % bytes.size());
    }
  }
}

std::unique_ptr<SnapshotStore> OpenShelf(Shelf& shelf, const DaemonOptions& options, int32_t partitions,
                                         std::function<void()> pass) {
  return std::make_unique<StoreOnShelf>(shelf, options, partitions, std::move(pass));
}

}  // namespace lethe::simulation
