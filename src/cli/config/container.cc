#include "src/cli/config/container.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "src/text/format.h"

namespace lethe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;
// Version 1 states a number near 2^63 where there is no limit.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// Lowers `limit` to the least one that is stated in `below`, or in a folder between it and `mount`.
void Lower(const fs::path& mount, fs::path below, const char* name, std::optional<CgroupLimit>& limit) {
  // A cgroup outside of the namespace is named with "..".
  if (absl::StrContains(below.string(), "..")) below.clear();
  for (fs::path folder = below.relative_path();; folder = folder.parent_path()) {
    const fs::path file = mount / folder / name;
    std::ifstream stream(file);
    std::string text;
    int64_t bytes = 0;
    if (stream >> text && absl::SimpleAtoi(text, &bytes) && bytes < kNoLimit &&
        (!limit || bytes < limit->bytes)) {
      limit = CgroupLimit{bytes, file.string()};
    }
    if (folder.empty()) return;
  }
}

}  // namespace

std::optional<CgroupLimit> MemoryLimitOfCgroup(const fs::path& root) {
  std::optional<CgroupLimit> limit;
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream own(root / "proc/self/cgroup");
  bool is_known = false;
  for (std::string line; std::getline(own, line);) {
    // ID:CONTROLLERS:PATH, without controllers in version 2.
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    is_known = true;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (fields[1].empty()) {
      Lower(mount, fields[2], "memory.max", limit);
    } else if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      Lower(mount / "memory", fields[2], "memory.limit_in_bytes", limit);
    }
  }
  if (is_known) return limit;
  // Without /proc.
  Lower(mount, "", "memory.max", limit);
  Lower(mount / "memory", "", "memory.limit_in_bytes", limit);
  return limit;
}

int64_t DefaultMemory(const CgroupLimit& limit) {
  return std::max(limit.bytes / 2 / kMiB, int64_t{1}) * kMiB;
}

int64_t BytesBesideMemory(const DaemonOptions& options, bool has_registry) {
  const int64_t lane = (options.scope == Scope::kTopic ? 384 : 192) * kMiB;
  const bool has_snapshots =
      !options.process.snapshots.folder.empty() || !options.process.snapshots.topic.empty();
  const int64_t snapshot = has_snapshots ? options.stage.memory_limit_bytes / kMiB / 4 * kMiB : 0;
  const int64_t schemas = has_registry ? 64 * kMiB : 0;
  return 64 * kMiB + options.process.lanes * lane + snapshot + schemas;
}

absl::Status FitsLimit(const DaemonOptions& options, bool has_registry, const CgroupLimit& limit) {
  const int64_t beside = BytesBesideMemory(options, has_registry);
  const int64_t all = options.stage.memory_limit_bytes + beside;
  if (all <= limit.bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "memory: ", FormatBytes(options.stage.memory_limit_bytes), ", and ", FormatBytes(beside),
      " beside it for ", options.process.lanes, options.process.lanes == 1 ? " lane" : " lanes",
      ", snapshots, schemas and the program, exceed this cgroup's memory limit of ", FormatBytes(limit.bytes),
      " (", limit.file, "): the kernel would kill lethe. Raise the limit to ", FormatBytes(all),
      ", or lower memory or lanes"));
}

}  // namespace lethe
