// What options of filters and stages share: their ranges, and the least memory of an engine.
#ifndef LETHE_SRC_ENGINES_NEW_FILTER_H_
#define LETHE_SRC_ENGINES_NEW_FILTER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "lethe/options.h"

namespace lethe {

// OK, or InvalidArgument that names the option, the error and the nearest possible value.
absl::Status ValidateHorizon(absl::Duration horizon);
absl::Status ValidateTargetFpp(double target_fpp, Engine engine);

// The memory without which an engine cannot make one filter, in bytes.
int64_t SmallestFilterBytes(Engine engine);

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_NEW_FILTER_H_
