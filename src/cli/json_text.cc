#include "src/cli/json_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe {
namespace {

unsigned char At(absl::string_view text, size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// The bytes of the character that `text` begins with, by the table of RFC 3629; 0: it is none.
size_t CharacterBytes(absl::string_view text) {
  const unsigned char first = At(text, 0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xC2 && first <= 0xDF   ? 2
                       : first >= 0xE0 && first <= 0xEF ? 3
                       : first >= 0xF0 && first <= 0xF4 ? 4
                                                        : 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((At(text, i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = At(text, 1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_surrogate = first == 0xED && second > 0x9F;
  const bool is_beyond = first == 0xF4 && second > 0x8F;
  return is_overlong || is_surrogate || is_beyond ? 0 : bytes;
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const char c = text.front();
    if (bytes == 0) {
      quoted += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", text.substr(0, 1));
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      absl::StrAppend(&quoted, text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return quoted + "\"";
}

}  // namespace lethe
