#include "src/cli/terminal/plain_text.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/cli/terminal/exit_code.h"
#include "src/cli/terminal/json_text.h"

namespace lethe {
namespace {

TEST(Printable, KeepsTextAndShowsControls) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"orders-3 \u20ac \U0001F600 \\", "orders-3 \u20ac \U0001F600 \\"},
      {"\u00a0\u00ff", "\u00a0\u00ff"},
      {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
      {"two\nlines\r\t\x7f", "two\\nlines\\x0d\\x09\\x7f"},
      {"\u009b31m", "\\xc2\\x9b31m"},       // CSI in one character
      {"\x9b\xff\xc3", "\\x9b\\xff\\xc3"},  // CSI in one byte; not UTF-8
      {std::string("\0a", 2), "\\x00a"},
      {"\u061c\u200e\u200f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f"},
      {"a\u202eb\u202a\u2066\u2069", "a\\xe2\\x80\\xaeb\\xe2\\x80\\xaa\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
      {"\u2029\u202f\u2065\u206a\u05d0", "\u2029\u202f\u2065\u206a\u05d0"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Printable(text), expected);
    for (const char c : JsonString(text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << expected;
  }
  EXPECT_EQ(JsonString("\u009b\x7f"), "\"\\u009b\\u007f\"");
  EXPECT_EQ(JsonString("\u202e\u061c"), "\"\\u202e\\u061c\"");
}

// What a spreadsheet or a terminal would do with a key is the record's own wish.
TEST(CsvCell, IsOneCellAndNoCode) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"post-1", "post-1"},
      {"a,b", "\"a,b\""},
      {"a\"b", "\"a\"\"b\""},
      {"=1+1", "'=1+1"},
      {"+1", "'+1"},
      {"-1", "'-1"},
      {"@SUM(A1)", "'@SUM(A1)"},
      {"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
      {"\t=1", "\\x09=1"},
      {"two\r\nlines", "two\\x0d\\nlines"},
      {"\x1b[2J\u202e", "\\x1b[2J\\xe2\\x80\\xae"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(CsvCell(text), expected);
}

TEST(Printable, IsHowErrorsAreReported) {
  std::ostringstream err;
  ReportError(absl::UnavailableError("topic \x1b[2J\u009b2J\nlethe: all is well"), err);
  EXPECT_EQ(err.str(), "lethe: topic \\x1b[2J\\xc2\\x9b2J\\nlethe: all is well\n");
}

}  // namespace
}  // namespace lethe
