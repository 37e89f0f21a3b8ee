#include "src/engines/new_filter.h"

#include "src/engines/ranges.h"
#include "src/filter/compact_formats.h"

namespace lethe {

EngineLimits LimitsOf(Engine engine) { return EngineDefinition::Of(engine).limits(); }

absl::string_view EngineName(Engine engine) { return EngineDefinition::Of(engine).name; }

EngineLimits LimitsOfAnyFilter() {
  return {.lowest_fpp = kLowestCompactTarget, .highest_fpp = kHighestTargetFpp};
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const FilterOptions& options) {
  const EngineDefinition& engine = EngineDefinition::Of(options.engine);
  if (absl::Status status = Validate(options, engine.limits()); !status.ok()) return status;
  return engine.new_filter(options);
}

}  // namespace lethe
