#include "src/engines/new_filter.h"

#include "src/engines/ranges.h"
#include "src/filter/compact_filter.h"
#include "src/filter/compact_formats.h"

namespace lethe {

EngineLimits LimitsOf(Engine engine) {
  const bool is_exact = engine == Engine::kExact;
  return {.name = EngineName(engine),
          .lowest_fpp = kLowestCompactTarget,
          .highest_fpp = is_exact ? kHighestTargetFpp : kHighestDefaultTarget,
          .smallest_filter_bytes = SmallestCompactFilterBytes()};
}

EngineLimits LimitsOfAnyFilter() {
  return {.lowest_fpp = kLowestCompactTarget, .highest_fpp = kHighestTargetFpp};
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options) {
  if (absl::Status status = Validate(options, LimitsOf(options.engine)); !status.ok()) return status;
  if (options.engine == Engine::kCompact) return NewCompactFilter(options);
  FilterOptions widest = options;
  widest.target_fpp = kLowestCompactTarget;
  return NewCompactFilter(widest);
}

}  // namespace lethe
