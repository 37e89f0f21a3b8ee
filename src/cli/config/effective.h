// The effective configuration: all values, with where each came from.
#ifndef LETHE_SRC_CLI_CONFIG_EFFECTIVE_H_
#define LETHE_SRC_CLI_CONFIG_EFFECTIVE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "src/cli/config/draft.h"

namespace lethe {

// Of a draft that has passed the rules. Those of the top level come first, then each section in one piece.
std::vector<EffectiveValue> Effective(const Draft& draft);

// A configuration file that says the same, with where each value came from; secrets are hidden.
std::string EffectiveYaml(const std::vector<EffectiveValue>& values);

// A hash of the effective configuration, to compare instances: without their name and address, and without
// secrets. `topics` is the text of that list.
std::string FingerprintOf(const Draft& draft, absl::string_view topics);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_EFFECTIVE_H_
