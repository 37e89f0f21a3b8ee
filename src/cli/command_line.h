// The command line: commands, flags, help and exit codes.
#ifndef LETHE_SRC_CLI_COMMAND_LINE_H_
#define LETHE_SRC_CLI_COMMAND_LINE_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/cli/check_command.h"
#include "src/cli/config.h"
#include "src/cli/counters_command.h"
#include "src/cli/demo_command.h"
#include "src/cli/filter_command.h"
#include "src/cli/inspect_command.h"
#include "src/cli/plan_command.h"
#include "src/cli/reconcile_command.h"
#include "src/cli/survey_command.h"
#include "src/cli/top_command.h"

namespace lethe {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // at run time
inline constexpr int kExitUsage = 2;          // the command line or the configuration is wrong
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C, as shells say it: 128 and the signal's number

// What the commands do; each returns the exit code. One that is empty is not listed.
struct Commands {
  // `reload` makes the configuration anew from the same file and flags; null if there is no file. It lives
  // until `run` returns.
  std::function<int(const RunConfig&, const ReloadConfig& reload)> run;
  std::function<int(const FilterCommandOptions&)> filter;
  std::function<int(const DemoOptions&)> demo;
  std::function<int(const PlanCommandOptions&)> plan;
  std::function<int(const InspectCommandOptions&)> inspect;
  std::function<int(const TopCommandOptions&)> top;
  std::function<int(const absl::StatusOr<RunConfig>&, const CheckCommandOptions&)> check;
  std::function<int(const SurveyCommandOptions&)> survey;
  std::function<int(const ReconcileCommandOptions&)> reconcile;
  std::function<int(const CountersCommandOptions&)> counters;
};

// Runs what `args` (without the program's name) ask for. Help goes to `out`, errors to `err`; no error shows
// the value of --kafka, which may be a secret, or of an argument whose meaning is not known. Help is wrapped
// at `columns`.
int RunCommandLine(const std::vector<std::string>& args, const Commands& commands, std::ostream& out,
                   std::ostream& err, int columns = 80);

// Prints an error as the command's last line. kExitUsage for InvalidArgument, kExitFailed for others.
int ReportError(const absl::Status& status, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMAND_LINE_H_
