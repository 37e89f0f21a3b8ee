// The memory limit of the container, or of the systemd unit, in which the process runs.
#ifndef LETHE_SRC_CLI_CONFIG_CONTAINER_H_
#define LETHE_SRC_CLI_CONFIG_CONTAINER_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "src/pipeline/options/options.h"

namespace lethe {

struct CgroupLimit {
  int64_t bytes = 0;
  std::string file;  // that states it
};

// The least memory limit of this process's cgroup and those above it, of version 2 or 1; nullopt: none.
// `root` is the folder that /proc and /sys are in. Within a namespace of cgroups the path in
// /proc/self/cgroup may not exist: then only what is above it counts.
std::optional<CgroupLimit> MemoryLimitOfCgroup(const std::filesystem::path& root = "/");

// `memory` where the configuration does not state it: half of the limit, in whole MiB.
int64_t DefaultMemory(const CgroupLimit& limit);

// What the process may need beside `memory`, by the budget of OPERATIONS.md: 64 MiB for itself, 192 MiB for
// each lane (twice that with Scope::kTopic), a quarter of `memory` for a snapshot that is written or loaded,
// and 64 MiB for the schemas of a registry.
int64_t BytesBesideMemory(const DaemonOptions& options, bool has_registry);

// InvalidArgument: `memory` and what goes beside it exceed the limit.
absl::Status FitsLimit(const DaemonOptions& options, bool has_registry, const CgroupLimit& limit);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_CONTAINER_H_
