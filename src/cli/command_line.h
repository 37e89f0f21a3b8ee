// The command line: commands, flags and help.
#ifndef LETHE_SRC_CLI_COMMAND_LINE_H_
#define LETHE_SRC_CLI_COMMAND_LINE_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/cli/commands/check_command.h"
#include "src/cli/commands/counters_command.h"
#include "src/cli/commands/demo_command.h"
#include "src/cli/commands/filter_command.h"
#include "src/cli/commands/inspect_command.h"
#include "src/cli/commands/plan_command.h"
#include "src/cli/commands/reconcile_command.h"
#include "src/cli/commands/survey_command.h"
#include "src/cli/commands/verify_command.h"
#include "src/cli/config/config.h"

namespace lethe {

// What the commands do; each returns the exit code. One that is empty is not listed.
struct Commands {
  std::function<int(const RunConfig&)> run;
  std::function<int(const FilterCommandOptions&)> filter;
  std::function<int(const DemoOptions&)> demo;
  std::function<int(const PlanCommandOptions&)> plan;
  std::function<int(const InspectCommandOptions&)> inspect;
  std::function<int(const absl::StatusOr<RunConfig>&, const CheckCommandOptions&)> check;
  std::function<int(const SurveyCommandOptions&)> survey;
  std::function<int(const VerifyCommandOptions&)> verify;
  std::function<int(const ReconcileCommandOptions&)> reconcile;
  std::function<int(const CountersCommandOptions&)> counters;
};

// Runs what `args` (without the program's name) ask for. Help goes to `out`, errors to `err`; no error shows
// the value of --kafka, which may be a secret, or of an argument whose meaning is not known. Help is wrapped
// at `columns`.
int RunCommandLine(const std::vector<std::string>& args, const Commands& commands, std::ostream& out,
                   std::ostream& err, int columns = 80);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMAND_LINE_H_
