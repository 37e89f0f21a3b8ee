#include "src/text/suggestion.h"

#include <algorithm>
#include <utility>

namespace lethe {

size_t EditDistance(absl::string_view a, absl::string_view b) {
  // Rows of the usual table for the prefixes of `a` of sizes i - 2, i - 1 and i.
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::optional<std::string> Nearest(absl::string_view text, const std::vector<std::string>& names) {
  // A third of the letters may be wrong: one of a short name, never all of it. Very long texts are no
  // misspelt names, and would make the table large.
  if (text.size() > 100) return std::nullopt;
  std::optional<std::string> nearest;
  size_t least = std::max<size_t>(1, text.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(text, name);
    if (distance >= least || distance >= name.size()) continue;
    // Two mistakes and another first letter make another word: retries is not metrics.
    if (distance == 1 || name[0] == text[0]) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace lethe
