// `lethe run`: the daemon with its metrics, until it is told to stop.
#ifndef LETHE_SRC_CLI_RUN_COMMAND_H_
#define LETHE_SRC_CLI_RUN_COMMAND_H_

#include "src/cli/config.h"

namespace lethe {

// The exit code. SIGTERM and SIGINT end it: the open transaction is finished and the group is left, or,
// if that takes longer than five seconds (a broker that does not answer), the process ends at once; what
// was not committed is then read again by the next owner.
int RunCommand(const RunConfig& config);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_RUN_COMMAND_H_
