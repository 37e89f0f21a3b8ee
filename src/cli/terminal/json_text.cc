#include "src/cli/terminal/json_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/cli/terminal/plain_text.h"

namespace lethe {
std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t bytes = Utf8Bytes(text);
    const char c = text.front();
    if (bytes == 0) {
      quoted += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", text.substr(0, 1));
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (IsControl(text.substr(0, bytes))) {
      absl::StrAppendFormat(&quoted, "\\u%04x", CodePoint(text.substr(0, bytes)));
    } else {
      absl::StrAppend(&quoted, text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return quoted + "\"";
}

}  // namespace lethe
