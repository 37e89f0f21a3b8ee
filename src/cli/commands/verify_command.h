// `lethe verify`: whether each event of the input came through to the output once, proved from the two logs.
//
//   lethe verify --config lethe.yaml --since 2h
#ifndef LETHE_SRC_CLI_COMMANDS_VERIFY_COMMAND_H_
#define LETHE_SRC_CLI_COMMANDS_VERIFY_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/cli/config/config.h"
#include "src/cli/config/setting.h"

namespace lethe {

struct VerifyCommandOptions {
  std::string config;  // a file
  std::string topic;   // an input or an output of it; empty: all
  // By the records' timestamps. InfinitePast: all that is there.
  absl::Time since = absl::Now() - absl::Hours(2);
  int64_t memory_bytes = int64_t{256} << 20;
  std::optional<double> share;  // nullopt: what fits into memory
  std::string textfile;         // where metrics are written; empty: nowhere
  ReportFormat format = ReportFormat::kText;
};

absl::Span<const Setting<VerifyCommandOptions>> VerifySettings();

// The exit code: 0 if each event came through once, 1 if not, 3 if the logs do not tell, 2 for an error. The
// report goes to `out`, errors to `err`; a bar to stderr if that is a terminal.
int RunVerify(const VerifyCommandOptions& options, std::ostream& out, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_COMMANDS_VERIFY_COMMAND_H_
