// What tests read from the project's own documents.
#ifndef LETHE_TESTS_SUPPORT_PAGES_H_
#define LETHE_TESTS_SUPPORT_PAGES_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace lethe {

// The page's lines outside of fenced blocks, where `](` is a link and `#` begins a heading.
inline std::vector<std::string> ProseLines(const std::string& page) {
  std::vector<std::string> lines;
  bool is_code = false;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "```")) {
      is_code = !is_code;
    } else if (!is_code) {
      lines.emplace_back(line);
    }
  }
  EXPECT_FALSE(is_code) << "a fenced block does not end";
  return lines;
}

// Of a page's lines: each "`file`: `function`".
inline std::vector<std::pair<std::string, std::string>> NamedFunctions(const std::string& page) {
  std::vector<std::pair<std::string, std::string>> named;
  for (const std::string& line : ProseLines(page)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    for (size_t i = 1; i + 2 < parts.size(); i += 2) {
      if (parts[i + 1] == ": " && absl::EndsWith(parts[i], ".cc")) named.emplace_back(parts[i], parts[i + 2]);
    }
  }
  return named;
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_PAGES_H_
