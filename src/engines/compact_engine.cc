#include "src/engines/new_filter.h"
#include "src/engines/ranges.h"
#include "src/filter/compact_filter.h"
#include "src/filter/compact_formats.h"

namespace lethe {
namespace {

EngineLimits Limits(absl::string_view name, double highest_fpp) {
  return {.name = name,
          .lowest_fpp = kLowestCompactTarget,
          .highest_fpp = highest_fpp,
          .smallest_filter_bytes = SmallestCompactFilterBytes()};
}

constexpr EngineDefinition kCompactDefinition = {
    .name = "compact",
    .limits = [] { return Limits("compact", kHighestDefaultTarget); },
    .new_filter = [](const FilterOptions& options) { return NewCompactFilter(options); }};

constexpr EngineDefinition kExactDefinition = {.name = "exact",
                                               .limits = [] { return Limits("exact", kHighestTargetFpp); },
                                               .new_filter =
                                                   [](const FilterOptions& options) {
                                                     FilterOptions widest = options;
                                                     widest.target_fpp = kLowestCompactTarget;
                                                     return NewCompactFilter(widest);
                                                   }};

}  // namespace

constinit const Engine Engine::kCompact = EngineDefinition::EngineOf(&kCompactDefinition);
constinit const Engine Engine::kExact = EngineDefinition::EngineOf(&kExactDefinition);

}  // namespace lethe
