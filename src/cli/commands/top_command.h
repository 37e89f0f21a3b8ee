// `lethe top`: a daemon's figures in the terminal, once a second.
#ifndef LETHE_SRC_CLI_COMMANDS_TOP_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_TOP_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "connectors/http/http_server.h"

namespace lethe {

struct TopCommandOptions {
  http::HttpAddress http = {"127.0.0.1", 9464};  // where the daemon answers
  bool once = false;
};

// Draws until q, Ctrl-C or SIGTERM; once, if that was asked for or stdout is no terminal. Goes on asking a
// daemon that has answered before; Unavailable if the first question is not answered.
absl::Status RunTop(const TopCommandOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_TOP_COMMAND_H_
