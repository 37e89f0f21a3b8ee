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
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Printable(text), expected);
    for (const char c : JsonString(text)) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << expected;
  }
  EXPECT_EQ(JsonString("\u009b\x7f"), "\"\\u009b\\u007f\"");
}

TEST(Printable, IsHowErrorsAreReported) {
  std::ostringstream err;
  ReportError(absl::UnavailableError("topic \x1b[2J\u009b2J\nlethe: all is well"), err);
  EXPECT_EQ(err.str(), "lethe: topic \\x1b[2J\\xc2\\x9b2J\\nlethe: all is well\n");
}

}  // namespace
}  // namespace lethe
