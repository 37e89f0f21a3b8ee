// The program's exit codes, and an error as its last line.
#ifndef LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_
#define LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_

#include <cstdint>
#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/record/timestamp.h"

namespace lethe {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // at run time
inline constexpr int kExitUsage = 2;          // the command line or the configuration is wrong
inline constexpr int kExitNoId = 3;           // no record has the id, or the time, that was named
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C, as shells say it: 128 and the signal's number

// The error of a command that found none of `records` records to have a usable id at `id`; `effect`: what
// that means.
absl::Status NoIdError(int64_t records, absl::string_view id, absl::string_view effect);

// The same of the time, and of `times`, its usable forms.
absl::Status NoTimeError(int64_t records, absl::string_view time, absl::string_view times);

// The error of a command that ends at `place`: most of the times at `time` are of another unit.
absl::Status WrongTimesError(absl::string_view place, absl::string_view time, const TimeUnitCheck& times);

// kExitOk, or prints the error as the command's last line: kExitUsage for InvalidArgument, kExitNoId for
// NoIdError(), NoTimeError() and WrongTimesError(), kExitFailed for others.
int ReportError(const absl::Status& status, std::ostream& err);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_EXIT_CODE_H_
