// Where results go: tables to standard output and into README.md, figures into a JSON file.
#ifndef LETHE_TESTS_BENCH_REPORT_H_
#define LETHE_TESTS_BENCH_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/bench/steady.h"

namespace lethe::bench {

// A Markdown table under a heading, with a line of text before it.
struct Table {
  std::string heading;
  std::string text;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};

  std::string Markdown() const;
};

// 1234567 ids as 1.2e6, 10000000 as 10^7.
std::string IdsText(double ids);
// Three figures: 9.43e-05, 31.2, 104.
std::string FigureText(double value);
// The measured rate, or what can be said where too few false hits came.
std::string FppText(const Figures& figures);

// The processor, its caches, the kernel's huge pages, the compiler and its flags, in a sentence.
std::string MachineText();

// On a terminal, a line that says what is being done; the next one replaces it.
void ShowProgress(absl::string_view what);
void ClearProgress();

std::string ToJson(const std::vector<Figures>& all);

absl::Status WriteFile(const std::string& path, absl::string_view text);
// Puts `text` between the lines <!-- tables --> and <!-- end of tables --> of a file.
absl::Status ReplaceTables(const std::string& path, absl::string_view text);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_REPORT_H_
