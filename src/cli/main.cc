#include <unistd.h>

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
#include "src/cli/commands/top_command.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/out_of_memory.h"
#include "src/cli/terminal/terminal.h"

int main(int argc, char** argv) {
  lethe::ExitWhenOutOfMemory();
  const lethe::Commands commands = {
      .run = lethe::RunCommand,
      .filter = lethe::FilterCommand,
      .demo = lethe::DemoCommand,
      .plan =
          [](const lethe::PlanCommandOptions& options) {
            const absl::Status status = lethe::RunPlan(options, std::cout);
            return status.ok() ? lethe::kExitOk : lethe::ReportError(status, std::cerr);
          },
      .inspect =
          [](const lethe::InspectCommandOptions& options) {
            const absl::Status status = lethe::RunInspect(options, std::cout);
            return status.ok() ? lethe::kExitOk : lethe::ReportError(status, std::cerr);
          },
      .top =
          [](const lethe::TopCommandOptions& options) {
            const absl::Status status = lethe::RunTop(options);
            return status.ok() ? lethe::kExitOk : lethe::ReportError(status, std::cerr);
          },
      .check =
          [](const absl::StatusOr<lethe::RunConfig>& config, const lethe::CheckCommandOptions& options) {
            return lethe::RunCheck(config, options, std::cout);
          },
      .survey =
          [](const lethe::SurveyCommandOptions& options) {
            const absl::Status status = lethe::RunSurvey(options, std::cout);
            return status.ok() ? lethe::kExitOk : lethe::ReportError(status, std::cerr);
          },
      .reconcile =
          [](const lethe::ReconcileCommandOptions& options) {
            return lethe::RunReconcile(options, std::cout, std::cerr);
          },
      .counters =
          [](const lethe::CountersCommandOptions& options) {
            const absl::Status status = lethe::RunCounters(options, std::cout);
            return status.ok() ? lethe::kExitOk : lethe::ReportError(status, std::cerr);
          },
  };
  return lethe::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), commands, std::cout,
                               std::cerr, lethe::TerminalWidth(STDOUT_FILENO));
}
