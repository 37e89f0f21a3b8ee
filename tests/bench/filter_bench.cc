// The benchmark of the filters. README.md beside this file has the method and the latest tables.
//
//   filter_bench [--quick] [--largest-window=IDS] [--only=TEXT] [--readme=FILE] [--json=FILE]
//
// --quick is for trying out: windows up to 10^6 ids, and fewer probes. --only measures the tables that have
// TEXT in their heading; of the files' earlier results it replaces these, and keeps the others. All tables go
// to standard output, those that tell the most into README.md too.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "tests/bench/partial_run.h"
#include "tests/bench/report.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

// The name of the part of README.md that the tables are in.
constexpr absl::string_view kTables = "tables";

struct Arguments {
  Extent extent;
  std::string only;
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
    } else if (absl::ConsumePrefix(&argument, "--only=")) {
      arguments.only = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--readme=")) {
      arguments.readme = std::string(argument);
    } else if (absl::ConsumePrefix(&argument, "--json=")) {
      arguments.json = std::string(argument);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          argument, ": give --quick, --largest-window=IDS, --only=TEXT, --readme=FILE, --json=FILE"));
    }
  }
  return arguments;
}

// Those whose heading contains `only`.
absl::StatusOr<std::vector<PlannedTable>> Choose(const std::vector<PlannedTable>& tables,
                                                 const std::string& only) {
  std::vector<PlannedTable> chosen;
  std::string headings;
  for (const PlannedTable& table : tables) {
    if (absl::StrContains(table.heading, only)) chosen.push_back(table);
    absl::StrAppend(&headings, "\n  ", table.heading);
  }
  if (!chosen.empty()) return chosen;
  return absl::NotFoundError(
      absl::StrCat("--only=", only, ": no table has that in its heading. There are:", headings));
}

// What the report has already, to which some tables are to be added: empty, or of this machine and build.
absl::StatusOr<Report> PresentReport(const std::string& readme, const std::string& machine) {
  const absl::StatusOr<std::string> text = ReadTables(readme, kTables);
  if (!text.ok()) return text.status();
  Report report = ParseReport(*text);
  const std::string preamble = absl::StrCat(machine, "\n");
  if (report.sections.empty()) report.preamble = preamble;
  if (report.preamble == preamble) return report;
  return absl::FailedPreconditionError(
      absl::StrCat(readme,
                   " has tables of another machine or build: measure all, without --only, or some "
                   "without --readme. Its: ",
                   report.preamble, "This: ", preamble));
}

// Measures the tables, and prints each as soon as it is there. Those for README.md are added to `measured`.
absl::Status Measure(const std::vector<PlannedTable>& tables, Extent extent, std::vector<Figures>* all,
                     std::vector<Report::Section>* measured, std::vector<std::string>* faults) {
  BenchProgress progress;
  extent.progress = &progress;
  for (const PlannedTable& planned : tables) {
    std::vector<Figures> none;
    if (absl::Status status = planned.measure(extent, &none).status(); !status.ok()) return status;
  }
  progress.EndPlan();
  for (const PlannedTable& planned : tables) {
    absl::StatusOr<Table> table = planned.measure(extent, all);
    if (!table.ok()) return table.status();
    table->heading = planned.heading;
    const std::string text = table->Markdown();
    if (planned.in_readme) measured->push_back({planned.heading, text});
    faults->insert(faults->end(), table->faults.begin(), table->faults.end());
    progress.Clear();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status WriteFigures(const Arguments& arguments, const std::vector<Figures>& all) {
  std::string present;
  if (!arguments.only.empty() && std::filesystem::exists(arguments.json)) {
    absl::StatusOr<std::string> text = ReadFile(arguments.json);
    if (!text.ok()) return text.status();
    present = *std::move(text);
  }
  return WriteFile(arguments.json, PutFigures(present, JsonObjects(all)));
}

absl::Status Run(const Arguments& arguments) {
  const std::vector<PlannedTable> tables = AllTables(arguments.extent);
  const absl::StatusOr<std::vector<PlannedTable>> chosen = Choose(tables, arguments.only);
  if (!chosen.ok()) return chosen.status();
  const std::string machine = MachineText();
  Report report{absl::StrCat(machine, "\n"), {}};
  if (!arguments.readme.empty() && !arguments.only.empty()) {
    absl::StatusOr<Report> present = PresentReport(arguments.readme, machine);
    if (!present.ok()) return present.status();
    report = *std::move(present);
  }
  std::printf("%s\n\n", machine.c_str());
  std::vector<Figures> all;
  std::vector<Report::Section> measured;
  std::vector<std::string> faults;
  if (absl::Status status = Measure(*chosen, arguments.extent, &all, &measured, &faults); !status.ok()) {
    return status;
  }
  if (!arguments.json.empty()) {
    if (absl::Status status = WriteFigures(arguments, all); !status.ok()) return status;
  }
  if (!arguments.readme.empty()) {
    std::vector<std::string> order;
    for (const PlannedTable& table : tables) order.push_back(table.heading);
    for (const Report::Section& section : measured) PutSection(section, order, &report);
    absl::Status status = ReplaceTables(arguments.readme, kTables, ReportText(report));
    if (!status.ok()) return status;
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrJoin(faults, "\n"));
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
