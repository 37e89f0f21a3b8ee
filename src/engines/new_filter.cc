#include "src/engines/new_filter.h"

#include "absl/strings/str_cat.h"
#include "lethe/filter.h"
#include "src/filter/compact_filter.h"
#include "src/filter/compact_formats.h"
#include "src/reference/bloom/bloom.h"
#include "src/reference/bloom/opposite.h"
#include "src/reference/bloom/recycled.h"
#include "src/reference/fixed_share.h"
#include "src/reference/published/adaptive_fbf.h"

namespace lethe {

int64_t SmallestFilterBytes(Engine engine) {
  if (engine == Engine::kCompact || engine == Engine::kExact) return SmallestCompactFilterBytes();
  return kSmallestShareBytes;
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options) {
  if (absl::Status status = ValidateHorizon(options.horizon); !status.ok()) return status;
  if (absl::Status status = ValidateTargetFpp(options.target_fpp, options.engine); !status.ok()) {
    return status;
  }
  if (options.memory == nullptr) return absl::InvalidArgumentError("memory: no budget is given");
  switch (options.engine) {
    case Engine::kPublished:
      return AdaptiveFbf::Create(options);
    case Engine::kExact: {
      FilterOptions widest = options;
      widest.target_fpp = kLowestCompactTarget;
      return NewCompactFilter(widest);
    }
    case Engine::kCompact:
      return NewCompactFilter(options);
    case Engine::kBloom:
      return Bloom::Create(options);
    case Engine::kRecycled:
      return Recycled::Create(options);
    case Engine::kOpposite:
      return Opposite::Create(options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("engine: no engine has the number ", static_cast<int>(options.engine)));
}

}  // namespace lethe
