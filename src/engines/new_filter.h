// What options of filters and stages share: their ranges, and the least memory of an engine.
#ifndef LETHE_SRC_ENGINES_NEW_FILTER_H_
#define LETHE_SRC_ENGINES_NEW_FILTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/filter.h"
#include "lethe/options.h"

namespace lethe {

// What an engine can be asked for.
struct EngineLimits {
  absl::string_view name = "";  // empty: of the program's own
  double lowest_fpp = 0;
  double highest_fpp = 0;
  int64_t smallest_filter_bytes = 1;
};
EngineLimits LimitsOf(Engine engine);

// What an engine is. (No list of all of them: a program would be linked with each.)
struct EngineDefinition {
  absl::string_view name;
  EngineLimits (*limits)();
  absl::StatusOr<std::unique_ptr<Filter>> (*new_filter)(const FilterOptions& options);  // valid ones

  static const EngineDefinition& Of(Engine engine) { return *engine.definition_; }
  static constexpr Engine EngineOf(const EngineDefinition* definition) { return Engine(definition); }
};

// Of a filter that the library does not know.
EngineLimits LimitsOfAnyFilter();

// OK, or InvalidArgument that names the option, the error and the nearest possible value.
absl::Status Validate(const StageOptions& options, const EngineLimits& limits);
absl::Status Validate(const FilterOptions& options, const EngineLimits& limits);

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_NEW_FILTER_H_
