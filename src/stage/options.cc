#include "lethe/options.h"

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

// Stream time counts milliseconds, and a horizon is cut into intervals.
constexpr absl::Duration kShortestHorizon = absl::Milliseconds(100);
constexpr absl::Duration kLongestHorizon = absl::Hours(24 * 36525);  // a hundred years
constexpr double kLowestTarget = 1e-12;
constexpr double kHighestTarget = 0.1;
constexpr int kMostShards = 256;

template <typename T>
absl::Status Wrong(absl::string_view option, const T& value, absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(option, " is ", value, ": ", remedy));
}

}  // namespace

absl::Status Validate(const StageOptions& options) {
  if (options.horizon < kShortestHorizon) {
    return Wrong("horizon", absl::FormatDuration(options.horizon),
                 absl::StrCat("the shortest is ", absl::FormatDuration(kShortestHorizon)));
  }
  if (options.horizon > kLongestHorizon) {
    return Wrong("horizon", absl::FormatDuration(options.horizon),
                 absl::StrCat("the longest is ", absl::FormatDuration(kLongestHorizon)));
  }
  // Written so that a NaN is refused.
  if (!(options.target_fpp >= kLowestTarget)) {
    return Wrong("target_fpp", options.target_fpp, absl::StrCat("the lowest is ", kLowestTarget));
  }
  if (options.target_fpp > kHighestTarget) {
    return Wrong("target_fpp", options.target_fpp, absl::StrCat("the highest is ", kHighestTarget));
  }
  if (options.memory_limit_bytes <= 0) {
    return Wrong("memory_limit_bytes", options.memory_limit_bytes, "it must be above 0");
  }
  if (options.shards < 1) return Wrong("shards", options.shards, "the fewest are 1");
  if (options.shards > kMostShards) {
    return Wrong("shards", options.shards, absl::StrCat("the most are ", kMostShards));
  }
  if ((options.shards & (options.shards - 1)) != 0) {
    int below = 1;
    while (2 * below < options.shards) below *= 2;
    return Wrong("shards", options.shards,
                 absl::StrCat("it must be a power of two; the nearest are ", below, " and ", 2 * below));
  }
  return absl::OkStatus();
}

}  // namespace lethe
