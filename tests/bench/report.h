// Where results go: tables to standard output and into README.md, figures into a JSON file.
#ifndef LETHE_TESTS_BENCH_REPORT_H_
#define LETHE_TESTS_BENCH_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/bench/steady.h"

namespace lethe::bench {

// A Markdown table under a heading, with a line of text before it.
struct Table {
  std::string heading = "";
  std::string text = "";
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::string>> rows = {};
  // What must not be in it, for people; it is marked in its row too.
  std::vector<std::string> faults = {};

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

// Says on standard error what is being done, and how long the rest will take: on a terminal in a line with a
// bar, elsewhere in a line for each step. All steps are announced twice: first to plan, when nothing is
// measured, then as they begin.
class BenchProgress {
 public:
  // Whether the step, which took so many seconds on the machine where this was written, is to be carried out.
  bool Begin(absl::string_view what, double seconds);
  // All steps have been announced.
  void EndPlan();
  // Before a table is written.
  void Clear() const;

 private:
  bool planning_ = true;
  int planned_steps_ = 0;
  int step_ = 0;  // that is under way, from 1
  double planned_seconds_ = 0;
  double done_seconds_ = 0;     // by the plan
  double current_seconds_ = 0;  // of the step that is under way
  int64_t start_nanos_ = 0;
};

// An object for each of those that belong into the file of figures.
std::vector<std::string> JsonObjects(const std::vector<Figures>& all);

absl::StatusOr<std::string> ReadFile(const std::string& path);
absl::Status WriteFile(const std::string& path, absl::string_view text);
// What is between the lines <!-- NAME --> and <!-- end of NAME --> of a file, and `text` put there.
absl::StatusOr<std::string> ReadTables(const std::string& path, absl::string_view name);
absl::Status ReplaceTables(const std::string& path, absl::string_view name, absl::string_view text);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_REPORT_H_
