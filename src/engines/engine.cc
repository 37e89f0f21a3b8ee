#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lethe/options.h"
#include "src/text/suggestion.h"

namespace lethe {
namespace {

constexpr std::array<Engine, 6> kEngines = {Engine::kCompact, Engine::kExact,    Engine::kPublished,
                                            Engine::kBloom,   Engine::kRecycled, Engine::kOpposite};

}  // namespace

absl::string_view EngineName(Engine engine) {
  switch (engine) {
    case Engine::kPublished:
      return "published";
    case Engine::kExact:
      return "exact";
    case Engine::kCompact:
      return "compact";
    case Engine::kBloom:
      return "bloom";
    case Engine::kRecycled:
      return "recycled";
    case Engine::kOpposite:
      return "opposite";
  }
  return "unknown";
}

absl::string_view BrokenPromise(Engine engine) {
  switch (engine) {
    case Engine::kPublished:
    case Engine::kExact:
    case Engine::kCompact:
      return "";
    case Engine::kBloom:
      return "it promises no bound on false positives: it never forgets, so more and more good events are "
             "dropped, in the end all";
    case Engine::kRecycled:
      return "it promises no horizon: it forgets all ids at each multiple of the horizon, and copies of "
             "earlier events pass";
    case Engine::kOpposite:
      return "it promises no horizon: it forgets an id when another takes its slot, and its copies pass "
             "then";
  }
  return "";
}

absl::StatusOr<Engine> ParseEngine(absl::string_view name) {
  // A longer text is like none of the names.
  const absl::string_view compared = name.substr(0, 64);
  Engine nearest = Engine::kCompact;
  for (const Engine engine : kEngines) {
    if (EngineName(engine) == name) return engine;
    if (EditDistance(compared, EngineName(engine)) < EditDistance(compared, EngineName(nearest))) {
      nearest = engine;
    }
  }
  const auto append_name = [](std::string* out, Engine engine) { absl::StrAppend(out, EngineName(engine)); };
  return absl::InvalidArgumentError(absl::StrCat("engine: there is no \"", compared, "\"; the nearest is ",
                                                 EngineName(nearest), ", of ",
                                                 absl::StrJoin(kEngines, ", ", append_name)));
}

}  // namespace lethe
