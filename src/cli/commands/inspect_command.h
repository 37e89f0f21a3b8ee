// `lethe inspect`: the contents of a snapshot.
//
//   lethe inspect orders-0.snapshot
#ifndef LETHE_SRC_CLI_COMMANDS_INSPECT_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_INSPECT_COMMAND_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "src/cli/config/setting.h"

namespace lethe {

struct InspectCommandOptions {
  std::string path;
  ReportFormat format = ReportFormat::kText;
};

// Reads and checks the whole snapshot and writes to `out` where it comes from, its figures, and the ages and
// fills of its generations; as JSON, one object in one line. The salt of the hash's key is not shown. Needs
// as much memory as the filter had. The error is InspectSnapshot's.
absl::Status RunInspect(const InspectCommandOptions& options, std::ostream& out);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_INSPECT_COMMAND_H_
