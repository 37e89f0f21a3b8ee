// A run of some tables, put among the results of earlier ones.
#ifndef LETHE_TESTS_BENCH_PARTIAL_RUN_H_
#define LETHE_TESTS_BENCH_PARTIAL_RUN_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lethe::bench {

// The tables of a report: a text before the first, then each under its heading, which is the rest of a line
// that begins with "### ".
struct Report {
  struct Section {
    std::string heading;
    std::string text;  // with the heading; ends with a line
  };
  std::string preamble;
  std::vector<Section> sections;
};

inline Report ParseReport(absl::string_view text) {
  Report report;
  std::string* part = &report.preamble;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::string_view heading = line; absl::ConsumePrefix(&heading, "### ")) {
      report.sections.push_back({std::string(heading), ""});
      part = &report.sections.back().text;
    }
    absl::StrAppend(part, line, "\n");
  }
  const auto end = [](std::string* trimmed) {
    *trimmed = absl::StrCat(absl::StripAsciiWhitespace(*trimmed), "\n");
  };
  end(&report.preamble);
  for (Report::Section& section : report.sections) end(&section.text);
  return report;
}

inline std::string ReportText(const Report& report) {
  std::string text = report.preamble;
  for (const Report::Section& section : report.sections) absl::StrAppend(&text, "\n", section.text);
  return text;
}

// Puts a section in the place of the one with its heading; if there is none, before the first of those that
// follow it in `order`, the headings as they are to stand. Those that are not in `order` stay where they are.
inline void PutSection(const Report::Section& section, const std::vector<std::string>& order,
                       Report* report) {
  const auto place = [&](const std::string& heading) {
    return std::find(order.begin(), order.end(), heading) - order.begin();
  };
  const auto end = static_cast<std::ptrdiff_t>(order.size());
  auto before = report->sections.end();
  for (auto old = report->sections.begin(); old != report->sections.end(); ++old) {
    if (old->heading == section.heading) {
      *old = section;
      return;
    }
    const bool follows = place(old->heading) > place(section.heading) && place(old->heading) < end;
    if (follows && before == report->sections.end()) before = old;
  }
  report->sections.insert(before, section);
}

// What tells one object of the file of figures from another: layout, window, target.
inline std::string FiguresKey(absl::string_view object) {
  std::string key;
  for (const absl::string_view name : {"\"layout\": ", "\"window\": ", "\"target_fpp\": "}) {
    const size_t at = object.find(name);
    if (at == absl::string_view::npos) continue;
    const absl::string_view value = object.substr(at + name.size());
    absl::StrAppend(&key, name, value.substr(0, value.find_first_of(",}")), " ");
  }
  return key;
}

// The file of figures, in which each object has a line: `present` (empty at first) with these objects, each
// in the place of the one with its key, or else at the end.
inline std::string PutFigures(absl::string_view present, const std::vector<std::string>& objects) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(present, '\n')) {
    line = absl::StripSuffix(absl::StripAsciiWhitespace(line), ",");
    if (absl::StartsWith(line, "{")) lines.push_back(absl::StrCat("  ", line));
  }
  for (const std::string& object : objects) {
    const std::string key = FiguresKey(object);
    const auto old = std::find_if(lines.begin(), lines.end(),
                                  [&](const std::string& line) { return FiguresKey(line) == key; });
    const std::string line = absl::StrCat("  ", object);
    if (old == lines.end()) {
      lines.push_back(line);
    } else {
      *old = line;
    }
  }
  return absl::StrCat("[\n", absl::StrJoin(lines, ",\n"), "\n]\n");
}

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_PARTIAL_RUN_H_
