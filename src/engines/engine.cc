#include "lethe/options.h"

namespace lethe {

absl::string_view EngineName(Engine engine) { return engine == Engine::kExact ? "exact" : "compact"; }

}  // namespace lethe
