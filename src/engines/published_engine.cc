#include "src/engines/new_filter.h"
#include "src/engines/ranges.h"
#include "src/published/adaptive_fbf.h"
#include "src/published/fixed_share.h"

namespace lethe {
namespace {

constexpr EngineDefinition kPublishedDefinition = {
    .name = "published",
    .limits =
        [] {
          return EngineLimits{.name = "published",
                              .lowest_fpp = kLowestTargetFpp,
                              .highest_fpp = kHighestTargetFpp,
                              .smallest_filter_bytes = kSmallestShareBytes};
        },
    .new_filter = [](const FilterOptions& options) -> absl::StatusOr<std::unique_ptr<Filter>> {
      return AdaptiveFbf::Create(options);
    }};

}  // namespace

constinit const Engine Engine::kPublished = EngineDefinition::EngineOf(&kPublishedDefinition);

}  // namespace lethe
