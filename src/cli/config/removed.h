// Keys and commands of earlier versions.
#ifndef LETHE_SRC_CLI_CONFIG_REMOVED_H_
#define LETHE_SRC_CLI_CONFIG_REMOVED_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lethe {

struct Removed {
  absl::string_view name;  // of a key, as in RunSettings(), "KEY: VALUE" or "lethe COMMAND"
  absl::string_view last_version;
  absl::string_view instead;  // what to do, an imperative
};

absl::Span<const Removed> AllRemoved();

// An error's text: the last version that had it, and what to do. Empty if no version had it.
std::string RemovedText(absl::string_view name);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_REMOVED_H_
