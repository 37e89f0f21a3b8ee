// The program's exit codes, and an error as its last line.
#ifndef LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_
#define LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_

#include <ostream>

#include "absl/status/status.h"

namespace lethe {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // at run time
inline constexpr int kExitUsage = 2;          // the command line or the configuration is wrong
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C, as shells say it: 128 and the signal's number

// kExitOk, or prints the error as the command's last line: kExitUsage for InvalidArgument, kExitFailed for
// others.
int ReportError(const absl::Status& status, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_
