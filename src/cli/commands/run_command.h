// `lethe run`: the daemon with its metrics, until a signal stops it.
#ifndef LETHE_SRC_CLI_COMMANDS_RUN_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_RUN_COMMAND_H_

#include "absl/time/time.h"
#include "connectors/http/http_server.h"
#include "src/cli/config/config.h"

namespace lethe {

// The exit code. SIGTERM and SIGINT end it: the open transaction is finished and the group is left. If that
// takes longer than four seconds (a broker that does not answer), the process ends at once. The next owner
// then judges the uncommitted records, and the last line says so.
int RunCommand(const RunConfig& config);

// The answer of /healthz: 503 if a lane has given no sign of life for half a minute. A lane that waits, or
// loads a snapshot, gives them.
http::HttpResponse Health(absl::Duration silent);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_RUN_COMMAND_H_
