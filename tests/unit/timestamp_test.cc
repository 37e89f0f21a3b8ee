#include "src/record/timestamp.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lethe {
namespace {

using testing::HasSubstr;

TEST(TimestampTest, Rfc3339AgreesWithAbseil) {
  for (const char* text :
       {"1970-01-01T00:00:00Z", "2015-09-12T00:46:58.771Z", "2015-09-12T00:46:58.123456789Z",
        "2016-02-29T23:59:59Z", "1969-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z", "2015-09-12T00:46:58.5+05:30", "2015-09-12T00:46:58-23:59",
        "2015-09-12T00:46:58+00:00", "2016-12-31T23:59:60Z"}) {
    absl::Time expected;
    std::string error;
    ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &expected, &error)) << text << error;
    EXPECT_EQ(ParseRfc3339(text), expected) << text;
  }
  EXPECT_EQ(ParseRfc3339("2015-09-12t00:46:58z"), ParseRfc3339("2015-09-12T00:46:58Z"));
  EXPECT_EQ(ParseRfc3339("2015-09-12 00:46:58Z"), ParseRfc3339("2015-09-12T00:46:58Z"));
  EXPECT_EQ(ParseRfc3339("2015-09-12T00:46:58.1234567891Z"), ParseRfc3339("2015-09-12T00:46:58.123456789Z"));
}

TEST(TimestampTest, EveryDayOfFourCenturies) {
  for (absl::CivilDay day(1899, 12, 28); day < absl::CivilDay(2300, 1, 3); ++day) {
    ASSERT_EQ(ParseRfc3339(absl::StrCat(absl::FormatCivilTime(day), "T12:34:56Z")),
              absl::FromCivil(absl::CivilSecond(day) + 12 * 3600 + 34 * 60 + 56, absl::UTCTimeZone()));
  }
}

TEST(TimestampTest, MalformedTimes) {
  for (const char* text : {"",
                           "2015",
                           "2015-09-12",
                           "2015-09-12T00:46:58",
                           "2015-09-12T00:46Z",
                           "2015-9-12T00:46:58Z",
                           "2015-13-12T00:46:58Z",
                           "2015-00-12T00:46:58Z",
                           "2015-09-00T00:46:58Z",
                           "2015-02-29T00:46:58Z",
                           "2015-09-31T00:46:58Z",
                           "2015-09-12T24:00:00Z",
                           "2015-09-12T00:60:00Z",
                           "2015-09-12T00:46:61Z",
                           "2015-09-12T00:46:58.Z",
                           "2015-09-12T00:46:58+24:00",
                           "2015-09-12T00:46:58+02:60",
                           "2015-09-12T00:46:58+0200",
                           "2015-09-12T00:46:58+02",
                           "2015-09-12T00:46:58Zx",
                           " 2015-09-12T00:46:58Z",
                           "2015-09-12T00:46:58Z ",
                           "-015-09-12T00:46:58Z",
                           "12015-09-12T00:46:58Z",
                           "infinite-future",
                           "infinite-past"}) {
    EXPECT_FALSE(ParseRfc3339(text).has_value()) << text;
  }
}

TEST(TimestampTest, UnixMillis) {
  EXPECT_EQ(ParseUnixMillis("0"), absl::UnixEpoch());
  EXPECT_EQ(ParseUnixMillis("-0"), absl::UnixEpoch());
  EXPECT_EQ(ParseUnixMillis("-1.5"), absl::FromUnixMillis(-2));
  EXPECT_EQ(ParseUnixMillis("1.5e3"), absl::FromUnixMillis(1500));
  EXPECT_EQ(ParseUnixMillis("253402300799999"), ParseRfc3339("9999-12-31T23:59:59.999Z"));
  EXPECT_EQ(ParseUnixMillis("-62167219200000"), ParseRfc3339("0000-01-01T00:00:00Z"));
  for (const char* text : {"253402300800000", "-62167219200001", "9223372036854775807", "1e15", "1e999",
                           "-1e999", "123456789012345678901234567890"}) {
    EXPECT_FALSE(ParseUnixMillis(text).has_value()) << text;
  }
}

TEST(TimestampTest, UnixTimeInOtherUnits) {
  const absl::Time time = *ParseRfc3339("2023-11-14T22:13:20.5Z");
  EXPECT_EQ(ParseUnixTime("1700000000", TimeUnit::kSeconds), time - absl::Milliseconds(500));
  EXPECT_EQ(ParseUnixTime("1700000000.5", TimeUnit::kSeconds), time);
  EXPECT_EQ(ParseUnixTime("1.7000000005e9", TimeUnit::kSeconds), time);
  EXPECT_EQ(ParseUnixTime("1700000000500", TimeUnit::kMilliseconds), time);
  EXPECT_EQ(ParseUnixTime("1700000000500000", TimeUnit::kMicroseconds), time);
  EXPECT_EQ(ParseUnixTime("1700000000500000000", TimeUnit::kNanoseconds), time);
  for (const char* text :
       {"1700000000000", "9223372036854775807", "-9223372036854775807", "1e300", "-1e300", "x"}) {
    EXPECT_FALSE(ParseUnixTime(text, TimeUnit::kSeconds).has_value()) << text;
  }
}

TEST(TimeUnitCheckTest, NamesTheUnitOfTimesThatAreNoMilliseconds) {
  const struct {
    int64_t time;
    const char* unit;
  } kTimes[] = {{1'700'000'000, "s"},
                {1'700'000'000'000'000, "us"},
                {1'700'000'000'000'000'000, "ns"},
                {0, ""},
                {INT64_MAX, ""},
                {INT64_MIN, ""},
                {800'000'000'000, ""}};
  for (const auto& [time, unit] : kTimes) {
    TimeUnitCheck check;
    for (int i = 0; i < 50; ++i) check.Add(1'700'000'000'000);
    for (int i = 0; i < 50; ++i) check.Add(time);
    EXPECT_FALSE(check.MostAreWrong()) << time << ": half of them";
    for (int i = 0; i < 51; ++i) check.Add(time);
    EXPECT_TRUE(check.MostAreWrong()) << time;
    EXPECT_EQ(check.LikelyUnit(), unit) << time;
    EXPECT_THAT(check.Text(), HasSubstr("101 of 151"));
  }
}

}  // namespace
}  // namespace lethe
