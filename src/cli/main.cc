#include <unistd.h>

#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "src/cli/command_line.h"
#include "src/cli/commands/check_command.h"
#include "src/cli/commands/demo_command.h"
#include "src/cli/commands/filter_command.h"
#include "src/cli/commands/inspect_command.h"
#include "src/cli/commands/plan_command.h"
#include "src/cli/commands/reconcile_command.h"
#include "src/cli/commands/run_command.h"
#include "src/cli/commands/survey_command.h"
#include "src/cli/commands/verify_command.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/out_of_memory.h"
#include "src/cli/terminal/terminal.h"

namespace {

// Runs a command that reports to stdout, and its error.
template <class Options>
std::function<int(const Options&)> Reporting(absl::Status (*run)(const Options&, std::ostream&)) {
  return [run](const Options& options) { return lethe::ReportError(run(options, std::cout), std::cerr); };
}

// Of standard output.
lethe::FindingsLook Look() {
  return {lethe::TextStyle::Of(STDOUT_FILENO),
          isatty(STDOUT_FILENO) != 0 ? lethe::TerminalWidth(STDOUT_FILENO) : 0};
}

}  // namespace

int main(int argc, char** argv) {
  lethe::ExitWhenOutOfMemory();
  const lethe::Commands commands = {
      .run = lethe::RunCommand,
      .filter = lethe::FilterCommand,
      .demo = lethe::DemoCommand,
      .plan = Reporting(lethe::RunPlan),
      .inspect = Reporting(lethe::RunInspect),
      .check = [](const auto& config,
                  const auto& options) { return lethe::RunCheck(config, options, Look(), std::cout); },
      .survey = Reporting(lethe::RunSurvey),
      .verify = [](const auto& options) { return lethe::RunVerify(options, std::cout, std::cerr); },
      .reconcile = [](const auto& options) { return lethe::RunReconcile(options, std::cout, std::cerr); },
      .counters = Reporting(lethe::RunCounters),
  };
  return lethe::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), commands, std::cout,
                               std::cerr, lethe::TerminalWidth(STDOUT_FILENO));
}
