#include "src/reference/any_engine.h"

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/stage/no_memory.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

const std::array<AnyEngine, 6>& Engines() {
  static const std::array<AnyEngine, 6> engines = {Engine::kCompact,     Engine::kExact,
                                                   Engine::kPublished,   Reference::kBloom,
                                                   Reference::kRecycled, Reference::kOpposite};
  return engines;
}

}  // namespace

absl::string_view EngineName(const AnyEngine& engine) {
  return engine.reference ? EngineName(*engine.reference) : EngineName(engine.own);
}

absl::string_view BrokenPromise(const AnyEngine& engine) {
  return engine.reference ? BrokenPromise(*engine.reference) : "";
}

EngineLimits LimitsOf(const AnyEngine& engine) {
  return engine.reference ? LimitsOf(*engine.reference) : LimitsOf(engine.own);
}

absl::StatusOr<AnyEngine> ParseEngine(absl::string_view name) {
  // A longer text is like none of the names.
  const absl::string_view compared = name.substr(0, 64);
  const AnyEngine* nearest = &Engines().front();
  for (const AnyEngine& engine : Engines()) {
    if (EngineName(engine) == name) return engine;
    if (EditDistance(compared, EngineName(engine)) < EditDistance(compared, EngineName(*nearest))) {
      nearest = &engine;
    }
  }
  const auto append_name = [](std::string* out, const AnyEngine& engine) {
    absl::StrAppend(out, EngineName(engine));
  };
  return absl::InvalidArgumentError(absl::StrCat("engine: there is no \"", compared, "\"; the nearest is ",
                                                 EngineName(*nearest), ", of ",
                                                 absl::StrJoin(Engines(), ", ", append_name)));
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(const AnyEngine& engine, FilterOptions options) {
  options.engine = engine.own;
  return engine.reference ? NewFilter(*engine.reference, options) : NewFilter(options);
}

absl::StatusOr<std::unique_ptr<DedupStage>> CreateStage(const AnyEngine& engine, StageOptions options,
                                                        const DedupStage* memory_of) {
  options.engine = engine.own;
  if (!engine.reference) {
    return memory_of == nullptr ? DedupStage::Create(options) : DedupStage::Create(options, *memory_of);
  }
  absl::Status status = OrNoMemory([&] { return Validate(options, LimitsOf(engine)); });
  if (!status.ok()) return status;
  const FilterFactory new_filter = [reference = *engine.reference](const FilterOptions& of_shard) {
    return NewFilter(reference, of_shard);
  };
  return memory_of == nullptr ? DedupStage::Create(options, new_filter)
                              : DedupStage::Create(options, new_filter, *memory_of);
}

}  // namespace lethe
