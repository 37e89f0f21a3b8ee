// Text as JSON has it (RFC 8259).
#ifndef LETHE_SRC_CLI_TERMINAL_JSON_TEXT_H_
#define LETHE_SRC_CLI_TERMINAL_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lethe {

// A string of JSON, with its quotes, on one line. Any bytes give valid JSON: invalid UTF-8
// becomes U+FFFD, the replacement character. A terminal's controls are escaped.
std::string JsonString(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_JSON_TEXT_H_
