// "Did you mean": the nearest of the names that exist.
#ifndef LETHE_SRC_TEXT_SUGGESTION_H_
#define LETHE_SRC_TEXT_SUGGESTION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lethe {

// The least number of insertions, deletions, replacements and swaps of neighbours that make one of the other.
size_t EditDistance(absl::string_view a, absl::string_view b);

// The nearest of `names`, the first of equals; nullopt if none is near enough to be meant.
std::optional<std::string> Nearest(absl::string_view text, const std::vector<std::string>& names);

}  // namespace lethe

#endif  // LETHE_SRC_TEXT_SUGGESTION_H_
