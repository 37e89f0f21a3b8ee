// Engines by the names that configurations give them, those of the literature included.
#ifndef LETHE_SRC_REFERENCE_ANY_ENGINE_H_
#define LETHE_SRC_REFERENCE_ANY_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lethe/filter.h"
#include "lethe/stage.h"
#include "src/reference/reference_filter.h"

namespace lethe {

// An engine of the library or, in its place, a filter of the literature.
struct AnyEngine {
  AnyEngine(Engine of_library) : own(of_library) {}                 // NOLINT(google-explicit-constructor)
  AnyEngine(Reference of_literature) : reference(of_literature) {}  // NOLINT(google-explicit-constructor)
  AnyEngine(Engine of_library, std::optional<Reference> in_its_place)
      : own(of_library), reference(in_its_place) {}
  bool operator==(const AnyEngine&) const = default;

  Engine own = Engine::kCompact;
  std::optional<Reference> reference = std::nullopt;
};

absl::string_view EngineName(const AnyEngine& engine);
absl::string_view BrokenPromise(const AnyEngine& engine);
EngineLimits LimitsOf(const AnyEngine& engine);

// The engine of that name, or InvalidArgument with the nearest name and all others.
absl::StatusOr<AnyEngine> ParseEngine(absl::string_view name);

// Its filter, whatever engine the options name.
absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const AnyEngine& engine, FilterOptions options);
// With the memory of another stage, if one is given.
absl::StatusOr<std::unique_ptr<DedupStage>> CreateStage(const AnyEngine& engine, StageOptions options,
                                                        const DedupStage* memory_of = nullptr);

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_ANY_ENGINE_H_
