// `lethe check`: whether `lethe run` with the same configuration would work and keep its guarantees.
//
//   lethe check --config lethe.yaml
#ifndef LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_

#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "src/cli/config/config.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/preflight/finding.h"

namespace lethe {

struct CheckCommandOptions {
  ReportFormat format = ReportFormat::kText;
  bool quiet = false;   // only warnings and errors
  bool create = false;  // topics that are missing, but for those that `lethe run` creates
};

// How findings look where they go to.
struct FindingsLook {
  TextStyle style = {};
  int columns = 0;  // of a terminal; 0: a line for each finding, whatever its length
};

// Writes the findings as text, or one object of JSON: errors, warnings, and what is fine; as text, topics of
// a list that are fine have a line each. 0: all is well; 1: there are warnings; 2: something is wrong that
// lethe does not run with, the configuration (`config` is its error then) included.
int RunCheck(const absl::StatusOr<RunConfig>& config, const CheckCommandOptions& options,
             const FindingsLook& look, std::ostream& out);

// What this machine says: the memory limit, if there is one, the snapshots' folder, and the address of
// --http.
std::vector<Finding> CheckMachine(const RunConfig& config);

// The part that writes.
int WriteFindings(std::vector<Finding> findings, const CheckCommandOptions& options, const FindingsLook& look,
                  std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_
