// JSON that is written.
#ifndef LETHE_SRC_CLI_JSON_TEXT_H_
#define LETHE_SRC_CLI_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lethe {

// A string of JSON with its quotes; bytes that are no UTF-8 stay what they are.
std::string JsonString(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SRC_CLI_JSON_TEXT_H_
