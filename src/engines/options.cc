#include "lethe/options.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/engines/memory_parts.h"
#include "src/engines/new_filter.h"
#include "src/engines/ranges.h"
#include "src/filter/compact_formats.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kMostShards = 256;

bool HasRoom(const StageOptions& options, const EngineLimits& limits, int64_t limit_bytes,
             int64_t partitions) {
  StageOptions limited = options;
  limited.memory_limit_bytes = limit_bytes;
  const MemoryParts parts = PartsOf(limited);
  return parts.filters >= partitions * options.shards * limits.smallest_filter_bytes;
}

absl::Status ValidateHorizon(absl::Duration horizon) {
  const std::string wrong = DurationText(horizon);
  if (horizon < kShortestHorizon) {
    return Invalid("horizon", absl::StrCat(wrong, " is too short"), DurationText(kShortestHorizon));
  }
  if (horizon > kLongestHorizon) {
    return Invalid("horizon", absl::StrCat(wrong, " is too long"), DurationText(kLongestHorizon));
  }
  return absl::OkStatus();
}

absl::Status ValidateTargetFpp(double target_fpp, const EngineLimits& limits) {
  if (std::isnan(target_fpp)) {
    return absl::InvalidArgumentError("target_fpp: is not a number; give 1e-6, say");
  }
  const std::string engine = limits.name.empty() ? "" : absl::StrCat(" for the engine ", limits.name);
  if (target_fpp < limits.lowest_fpp) {
    return Invalid("target_fpp", absl::StrCat(target_fpp, " is too low", engine),
                   absl::StrCat(limits.lowest_fpp));
  }
  if (target_fpp > limits.highest_fpp) {
    return Invalid("target_fpp", absl::StrCat(target_fpp, " is too high", engine),
                   absl::StrCat(limits.highest_fpp));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SmallestLimitBytes(const StageOptions& options, const EngineLimits& limits, int64_t partitions) {
  int64_t too_small = 0;
  int64_t enough = 2 * partitions * options.shards * limits.smallest_filter_bytes;
  while (enough - too_small > 1) {
    const int64_t middle = too_small + (enough - too_small) / 2;
    (HasRoom(options, limits, middle, partitions) ? enough : too_small) = middle;
  }
  return enough;
}

absl::Status Validate(const FilterOptions& options, const EngineLimits& limits) {
  if (absl::Status status = ValidateHorizon(options.horizon); !status.ok()) return status;
  if (absl::Status status = ValidateTargetFpp(options.target_fpp, limits); !status.ok()) return status;
  if (options.memory == nullptr) return absl::InvalidArgumentError("memory: no budget is given");
  return absl::OkStatus();
}

absl::Status Validate(const StageOptions& options) { return Validate(options, LimitsOf(options.engine)); }

absl::Status Validate(const StageOptions& options, const EngineLimits& limits) {
  if (absl::Status status = ValidateHorizon(options.horizon); !status.ok()) return status;
  if (absl::Status status = ValidateTargetFpp(options.target_fpp, limits); !status.ok()) return status;
  if (options.shards < 1) return Invalid("shards", absl::StrCat(options.shards, " is too few"), "1");
  if (options.shards > kMostShards) {
    return Invalid("shards", absl::StrCat(options.shards, " is too many"), absl::StrCat(kMostShards));
  }
  const auto shards = static_cast<unsigned>(options.shards);
  if (!std::has_single_bit(shards)) {
    const unsigned below = std::bit_floor(shards);
    const unsigned above = std::bit_ceil(shards);
    return Invalid("shards", absl::StrCat(options.shards, " is not a power of two"),
                   absl::StrCat(shards - below < above - shards ? below : above));
  }
  if (!HasRoom(options, limits, options.memory_limit_bytes, 1)) {
    return Invalid("memory_limit_bytes",
                   absl::StrCat(options.memory_limit_bytes, " has no room for one partition's filter in ",
                                options.shards, options.shards == 1 ? " shard" : " shards"),
                   absl::StrCat(SmallestLimitBytes(options, limits, 1)));
  }
  return absl::OkStatus();
}

}  // namespace lethe
