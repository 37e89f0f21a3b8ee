#include "src/cli/json_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe {

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&quoted, absl::StrFormat("\\u%04x", c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace lethe
