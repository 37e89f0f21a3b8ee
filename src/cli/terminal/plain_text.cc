#include "src/cli/terminal/plain_text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lethe {
namespace {

unsigned char At(absl::string_view text, size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

}  // namespace

size_t Utf8Bytes(absl::string_view text) {
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

uint32_t CodePoint(absl::string_view character) {
  const uint32_t first = At(character, 0);
  if (character.size() < 2) return first;
  uint32_t code = first & (0xFFu >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (At(character, i) & 0x3Fu);
  return code;
}

bool IsControl(absl::string_view character) {
  if (character.empty()) return false;
  const uint32_t code = CodePoint(character);
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string Printable(absl::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t bytes = Utf8Bytes(text);
    const absl::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    if (character == "\n") {
      printable += "\\n";
    } else if (bytes == 0 || IsControl(character)) {
      for (const char c : character)
        absl::StrAppendFormat(&printable, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      absl::StrAppend(&printable, character);
    }
    text.remove_prefix(character.size());
  }
  return printable;
}

std::string CsvCell(absl::string_view text) {
  std::string cell = Printable(text);
  if (!cell.empty() && absl::StrContains("=+-@", cell.front())) cell = absl::StrCat("'", cell);
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  return absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
}

}  // namespace lethe
