// The daemon's log: lines on stderr, for people or for programs.
#ifndef LETHE_SRC_CLI_TERMINAL_LOG_H_
#define LETHE_SRC_CLI_TERMINAL_LOG_H_

#include <memory>

#include "absl/strings/string_view.h"

namespace spdlog {
class formatter;
}

namespace lethe {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
};

// From now on everything is logged to stderr: stdout is for output that programs read.
void StartLog(const LogOptions& options);

// A line that stays below the log; empty: none. No effect if stderr is not a terminal,
// or the log is for programs. Thread-safe, after StartLog.
void SetLogFooter(absl::string_view line);
// Whether one would be seen.
bool LogHasFooter();

// Each message is one line, whatever is in it: in JSON an object of time (RFC 3339, UTC), level and message;
// in text, Printable().
std::unique_ptr<spdlog::formatter> NewLogFormatter(LogFormat format);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_LOG_H_
