// The benchmark of the filters. README.md beside this file has the method and the latest tables.
//
//   filter_bench [--quick] [--largest-window=IDS] [--readme=FILE] [--json=FILE]
//
// --quick is for trying out: windows up to 10^6 ids, and fewer probes. Tables go to standard output too.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/bench/report.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

struct Arguments {
  Extent extent;
  std::string readme;
  std::string json;
};

absl::StatusOr<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "--quick") {
      arguments.extent = {.largest_window = 1e6, .quick = true};
    } else if (absl::ConsumePrefix(&argument, "--largest-window=")) {
      if (!absl::SimpleAtod(argument, &arguments.extent.largest_window) ||
          !(arguments.extent.largest_window >= 1e5)) {
        return absl::InvalidArgumentError("--largest-window: give 1e5 to 1e8");
      }
    } else if (absl::ConsumePrefix(&argument, "--readme=")) {
      arguments.readme = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--json=")) {
      arguments.json = std::string(argument);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat(argument, ": give --quick, --largest-window=IDS, --readme=FILE, --json=FILE"));
    }
  }
  return arguments;
}

// Prints a table as soon as it is there, and keeps it.
absl::Status Take(absl::StatusOr<Table> table, const Extent& extent, std::string* text) {
  if (!table.ok() || text == nullptr) return table.status();
  extent.progress->Clear();
  const std::string markdown = table->Markdown();
  std::printf("%s\n", markdown.c_str());
  std::fflush(stdout);
  absl::StrAppend(text, "\n", markdown);
  return absl::OkStatus();
}

// All tables; without `text`, for the progress to plan.
absl::Status Measure(const Extent& extent, std::vector<Figures>* all, std::string* text) {
  for (const double window : {1e5, 1e6, 1e7, 1e8}) {
    if (window > extent.largest_window) break;
    for (const double target_fpp : {1e-4, 1e-6}) {
      absl::StatusOr<Table> table = CompareLayouts(extent, window, target_fpp, all);
      if (absl::Status status = Take(std::move(table), extent, text); !status.ok()) return status;
    }
  }
  if (absl::Status status = Take(CompareTargets(extent, all), extent, text); !status.ok()) return status;
  if (absl::Status status = Take(CompareGenerations(extent), extent, text); !status.ok()) return status;
  if (absl::Status status = Take(MeasureStage(extent), extent, text); !status.ok()) return status;
  if (absl::Status status = Take(MeasureThreads(extent), extent, text); !status.ok()) return status;
  if (absl::Status status = Take(MeasureSnapshots(extent), extent, text); !status.ok()) return status;
  return Take(MeasureStalls(extent), extent, text);
}

absl::Status Run(const Arguments& arguments) {
  std::vector<Figures> all;
  std::string text = MachineText() + "\n";
  std::printf("%s\n", text.c_str());
  BenchProgress progress;
  Extent extent = arguments.extent;
  extent.progress = &progress;
  if (absl::Status status = Measure(extent, &all, nullptr); !status.ok()) return status;
  progress.EndPlan();
  all.clear();
  if (absl::Status status = Measure(extent, &all, &text); !status.ok()) return status;
  if (!arguments.json.empty()) {
    if (absl::Status status = WriteFile(arguments.json, ToJson(all)); !status.ok()) return status;
  }
  if (!arguments.readme.empty()) {
    if (absl::Status status = ReplaceTables(arguments.readme, "tables", text); !status.ok()) return status;
  }
  for (const Figures& figures : all) {
    if (!figures.fault.empty()) return absl::InternalError(absl::StrCat(figures.layout, figures.fault));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lethe::bench

int main(int argc, char** argv) {
  const absl::StatusOr<lethe::bench::Arguments> arguments = lethe::bench::Parse(argc, argv);
  const absl::Status status = arguments.ok() ? lethe::bench::Run(*arguments) : arguments.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
