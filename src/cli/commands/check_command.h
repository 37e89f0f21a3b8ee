// `lethe check`: whether `lethe run` with the same configuration would work and keep its guarantees.
//
//   lethe check --config lethe.yaml
#ifndef LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_

#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "connectors/kafka/topics/finding.h"
#include "src/cli/config/config.h"

namespace lethe {

struct CheckCommandOptions {
  ReportFormat format = ReportFormat::kText;
};

// Writes a line for each finding, or one object of JSON. 0: all is well; 1: there are warnings; 2: something
// is wrong that lethe does not run with, the configuration (`config` is its error then) included.
int RunCheck(const absl::StatusOr<RunConfig>& config, const CheckCommandOptions& options, std::ostream& out);

// What this machine says: the snapshots' folder, if there is one, and the address of --http.
std::vector<kafka::Finding> CheckMachine(const RunConfig& config);

// The part that writes.
int WriteFindings(const std::vector<kafka::Finding>& findings, const CheckCommandOptions& options,
                  std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_CHECK_COMMAND_H_
