// The log: a line per message, whatever is in it, and JSON that can be parsed.
#include "src/cli/terminal/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cli/terminal/json_text.h"
#include "src/pipeline/clock/repeats.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Logged(LogFormat format, const std::string& message) {
  std::ostringstream out;
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  spdlog::logger logger("test", sink);
  logger.set_formatter(NewLogFormatter(format));
  logger.warn("{}", message);
  return out.str();
}

std::string Parsed(const std::string& json, const char* key) {
  simdjson::dom::parser parser;
  std::string_view text;
  const auto error = parser.parse(json)[key].get_string().get(text);
  EXPECT_EQ(error, simdjson::SUCCESS) << simdjson::error_message(error) << ": " << json;
  return std::string(text);
}

TEST(Log, JsonComesBackAsItWas) {
  for (const std::string& message :
       {std::string("plain"), std::string("two\nlines \"quoted\" \\ \t"), std::string("\0\x1b[31m\x7f", 7),
        std::string("\u00e9 \u20ac \U0001F600")}) {
    const std::string line = Logged(LogFormat::kJson, message);
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    EXPECT_EQ(Parsed(line, "message"), message);
    EXPECT_EQ(Parsed(line, "level"), "warning");
    EXPECT_EQ(Parsed(line, "time").size(), std::string("2026-01-02T03:04:05.678Z").size());
  }
}

TEST(Log, InvalidUtf8IsReplaced) {
  const std::pair<std::string, std::string> cases[] = {
      {"a\xff"
       "b",
       "a\ufffdb"},
      {"\xc3", "\ufffd"},                                // cut
      {"\xc0\xaf", "\ufffd\ufffd"},                      // overlong
      {"\xe0\x80\xaf", "\ufffd\ufffd\ufffd"},            // overlong
      {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},            // a surrogate
      {"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},  // beyond Unicode
      {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(Parsed(Logged(LogFormat::kJson, bytes), "message"), text);
}

TEST(Log, AnyBytesAreOneLineThatParses) {
  std::mt19937_64 random(TestSeed());
  simdjson::dom::parser parser;
  for (int i = 0; i < 20'000; ++i) {
    std::string message(random() % 20, '\0');
    for (char& c : message) c = static_cast<char>(random());
    const std::string json = Logged(LogFormat::kJson, message);
    ASSERT_EQ(parser.parse(json).error(), simdjson::SUCCESS) << json;
    ASSERT_EQ(json.find('\n'), json.size() - 1);
    const std::string text = Logged(LogFormat::kText, message);
    ASSERT_EQ(text.find('\n'), text.size() - 1);
    ASSERT_THAT(text, Not(HasSubstr("\r")));
    ASSERT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST(Log, TextIsForPeople) {
  const std::string line = Logged(LogFormat::kText, "one\ntwo \x1b[31mred \u20ac");
  EXPECT_EQ(line.substr(line.find(" warning ")), " warning one\\ntwo \\x1b[31mred \u20ac\n");
}

TEST(Log, RepeatedMessagesAreSummedUp) {
  Repeats repeats;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(repeats.Next(start), "");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(repeats.Next(start + absl::Milliseconds(49 * i)), std::nullopt);
  EXPECT_EQ(repeats.Next(start + absl::Seconds(5)), " (100 like it since the last were left out)");
  EXPECT_EQ(repeats.Next(start + absl::Seconds(6)), std::nullopt);
  EXPECT_EQ(repeats.Next(start + absl::Seconds(11)), " (1 like it since the last were left out)");
  EXPECT_EQ(repeats.Next(start + absl::Seconds(20)), "");
}

TEST(Log, TheFirstFewReasonsAreAllLogged) {
  RepeatsByReason repeats;
  const absl::Time start = absl::UnixEpoch();
  int logged = 0;
  for (int i = 0; i < 1000; ++i) {
    logged += repeats.Next(absl::StrCat("schema id ", i / 10), start + absl::Milliseconds(i)).has_value();
  }
  EXPECT_EQ(logged, 8);
  EXPECT_EQ(repeats.Next("schema id 0", start + absl::Seconds(6)),
            " (992 like it since the last were left out)");
  EXPECT_EQ(repeats.Next("schema id 0", start + absl::Seconds(61)), "") << "it is forgotten by then";
}

TEST(Log, SeventyInTwoSecondsBecomeOneAndAreCounted) {
  RepeatsByKind repeats;
  const absl::Time start = absl::UnixEpoch();
  int logged = 0;
  for (int i = 0; i < 70; ++i) {
    logged += repeats.Next("COORD", start + i * absl::Milliseconds(28)).has_value() ? 1 : 0;
  }
  EXPECT_EQ(logged, 1);
  EXPECT_EQ(repeats.Next("FAIL", start + absl::Seconds(1)), "") << "another kind is not kept back";
  const std::optional<std::string> later = repeats.Next("COORD", start + absl::Seconds(6));
  ASSERT_TRUE(later.has_value());
  EXPECT_THAT(*later, HasSubstr("69 like it"));
}

}  // namespace
}  // namespace lethe
