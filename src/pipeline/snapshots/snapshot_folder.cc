#include "src/pipeline/snapshots/snapshot_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "src/text/fixed_hash.h"

namespace lethe {
namespace {

constexpr absl::string_view kSuffix = ".snapshot";
constexpr absl::string_view kUnfinished = ".snapshot.new";
// Names of files have at most 255 bytes, those of topics 249.
constexpr size_t kShownOfTopic = 150;

// TOPIC-PARTITION.GROUP.ID.snapshot, GROUP being a hash of group and topic: several groups may share a
// folder.
class SnapshotFolder final : public SnapshotStore {
 public:
  explicit SnapshotFolder(const DaemonOptions& options)
      : folder_(options.process.snapshots.folder),
        topic_(options.input),
        id_fingerprint_(options.record.id.Fingerprint()),
        group_(absl::StrCat(absl::Hex(FixedHash(absl::StrCat(options.process.group, "/", options.input)).a,
                                      absl::kZeroPad16))) {}

  absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) override {
    return image.Write(Path(partition, id), go_on);
  }

  absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                            const GoOn& go_on) override {
    return stage.Restore(absl::StrCat(topic_, "-", partition), Path(partition, id),
                         {.topic = topic_, .partition = partition, .id_fingerprint = id_fingerprint_}, go_on);
  }

  absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) override {
    absl::Status status;
    for (const PartitionSnapshot& each : snapshots) {
      status.Update(Unlink(Path(each.partition, each.id)));
    }
    return status;
  }

  absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t partition, int64_t at_most,
                                                         const GoOn& /*go_on*/) override {
    std::optional<SnapshotId> found;
    absl::Status looked = ForEach(partition, [&](SnapshotId id, bool is_whole, const std::string& /*path*/) {
      if (is_whole) TakeYounger(id, at_most, found);
    });
    if (!looked.ok()) return looked;
    return found;
  }

  absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> /*before*/,
                         bool /*is_first*/) override {
    absl::Status status;
    absl::Status looked =
        ForEach(partition, [&](SnapshotId found, bool /*is_whole*/, const std::string& path) {
          if (found.IsOlderThan(id)) status.Update(Unlink(path));
        });
    return looked.ok() ? status : looked;
  }

 private:
  // Each file of the partition, also what a crash has left of one.
  absl::Status ForEach(
      int32_t partition,
      absl::FunctionRef<void(SnapshotId id, bool is_whole, const std::string& path)> see) const {
    const std::string prefix = Prefix(partition);
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      const std::string file = it->path().filename().string();
      absl::string_view name = file;
      if (!absl::ConsumePrefix(&name, prefix)) continue;
      const bool is_whole = absl::ConsumeSuffix(&name, kSuffix);
      if (!is_whole && !absl::ConsumeSuffix(&name, kUnfinished)) continue;
      if (const auto id = SnapshotId::Parse(name)) see(*id, is_whole, it->path().string());
    }
    if (error) return absl::InternalError(absl::StrCat("looking into ", folder_, ": ", error.message()));
    return absl::OkStatus();
  }

  static absl::Status Unlink(const std::string& path) {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("removing ", path));
  }

  std::string Prefix(int32_t partition) const {
    return absl::StrCat(topic_.substr(0, kShownOfTopic), "-", partition, ".", group_, ".");
  }
  std::string Path(int32_t partition, SnapshotId id) const {
    return absl::StrCat(folder_, "/", Prefix(partition), id.ToString(), kSuffix);
  }

  const std::string folder_;
  const std::string topic_;
  const std::string id_fingerprint_;
  const std::string group_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshotFolder(const DaemonOptions& options) {
  const std::string& folder = options.process.snapshots.folder;
  std::error_code error;
  const std::filesystem::path path(folder);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  // The key of the ids' hash follows from a snapshot.
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the folder for snapshots, ", folder, ", cannot be made: ", std::generic_category().message(errno),
        "; make it, or set snapshots.to to another"));
  }
  if (!std::filesystem::is_directory(path, error) || access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("snapshots cannot be written to ", folder, ": ",
                     error ? error.message() : "it is no folder, or not this user's to write in",
                     "; give this user the right to, or set snapshots.to to another"));
  }
  return std::make_unique<SnapshotFolder>(options);
}

}  // namespace lethe
