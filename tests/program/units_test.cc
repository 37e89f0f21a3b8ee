#include "src/cli/config/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(ParseDuration, TakesWholeNumbersWithUnits) {
  EXPECT_EQ(*ParseDuration("100ms"), absl::Milliseconds(100));
  EXPECT_EQ(*ParseDuration("45s"), absl::Seconds(45));
  EXPECT_EQ(*ParseDuration("24h"), absl::Hours(24));
  EXPECT_EQ(*ParseDuration("7d"), absl::Hours(7 * 24));
  EXPECT_EQ(*ParseDuration("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*ParseDuration("1d2h3m4s5ms"),
            absl::Hours(26) + absl::Minutes(3) + absl::Seconds(4) + absl::Milliseconds(5));
  EXPECT_EQ(*ParseDuration("0s"), absl::ZeroDuration());
  EXPECT_EQ(*ParseDuration("9223372036854775807ms"), absl::Milliseconds(kMost));
}

TEST(ParseDuration, RefusesTheRest) {
  for (const std::string text : {"",
                                 "h",
                                 "ms",
                                 "-1h",
                                 "+1h",
                                 "1.5h",
                                 " 1h",
                                 "1h ",
                                 "1 h",
                                 "1x",
                                 "1H",
                                 "1h1h",
                                 "1m1h",
                                 "1h30",
                                 "1us",
                                 "inf",
                                 "24h,",
                                 "9223372036854775808ms",
                                 "106751991168d",
                                 "99999999999999999999h",
                                 "9223372036854775807ms1ms"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_FALSE(ParseDuration("106751991167d24h").ok()) << "the sum is too large, though its parts are not";
}

TEST(ParseDuration, SaysWhatIsMeant) {
  EXPECT_EQ(ParseDuration("24").status().message(),
            "expected a duration with a unit (ms, s, m, h, d): say 24h if hours are meant");
  EXPECT_EQ(ParseDuration("1day").status().message(), "expected a duration such as 100ms, 24h, 7d or 1h30m");
}

TEST(ParseBytes, TakesBothKindsOfUnits) {
  EXPECT_EQ(*ParseBytes("0"), 0);
  EXPECT_EQ(*ParseBytes("1048576"), 1 << 20);
  EXPECT_EQ(*ParseBytes("1B"), 1);
  EXPECT_EQ(*ParseBytes("4KiB"), 4096);
  EXPECT_EQ(*ParseBytes("512MiB"), 512 << 20);
  EXPECT_EQ(*ParseBytes("1GiB"), int64_t{1} << 30);
  EXPECT_EQ(*ParseBytes("2GB"), 2'000'000'000);
  EXPECT_EQ(*ParseBytes("3kB"), 3000);
  EXPECT_EQ(*ParseBytes("8388607TiB"), int64_t{8388607} << 40);
  EXPECT_EQ(*ParseBytes("9223372036854775807"), kMost);
}

TEST(ParseBytes, RefusesTheRest) {
  for (const std::string text : {"", "GiB", "-1", "+1", "1.5GiB", "1 GiB", "1GiBs", "0x10", "8388608TiB",
                                 "9223372036854775808", "99999999999999999999", "1e9"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(ParseBytes, SaysWhatIsMeant) {
  EXPECT_EQ(ParseBytes("512mib").status().message(), "expected a size such as 512MiB");
  EXPECT_EQ(ParseBytes("1G").status().message(), "expected a size such as 1GiB");
  EXPECT_EQ(ParseBytes("2gb").status().message(), "expected a size such as 2GB");
  EXPECT_EQ(ParseBytes("much").status().message(),
            "expected a size such as 512MiB, 1GiB, 2GB, or a number of bytes");
}

TEST(ParseWhole, KeepsWithinItsRange) {
  EXPECT_EQ(*ParseWhole<int>("1", 1, 64), 1);
  EXPECT_EQ(*ParseWhole<int>("64", 1, 64), 64);
  EXPECT_EQ(*ParseWhole<int64_t>("-5", -10, kMost), -5);
  EXPECT_EQ(*ParseWhole<uint64_t>("18446744073709551615", 0, std::numeric_limits<uint64_t>::max()),
            std::numeric_limits<uint64_t>::max());
  for (const std::string text :
       {"", "0", "65", "-1", "+1", " 1", "1 ", "1.0", "1e1", "0x1", "one", "4294967297"}) {
    EXPECT_FALSE(ParseWhole<int>(text, 1, 64).ok()) << text;
  }
  EXPECT_EQ(ParseWhole<int>("65", 1, 64).status().message(), "expected a whole number from 1 to 64");
  EXPECT_EQ(ParseWhole<int64_t>("x", 0, kMost).status().message(), "expected a whole number of at least 0");
}

TEST(ParseShare, LiesBetweenZeroAndOne) {
  EXPECT_DOUBLE_EQ(*ParseShare("1e-6"), 1e-6);
  EXPECT_DOUBLE_EQ(*ParseShare("0.001"), 0.001);
  EXPECT_DOUBLE_EQ(*ParseShare("0.1%"), 0.001);
  for (const std::string text :
       {"", "0", "1", "-0.1", "1.5", "nan", "inf", "100%", "0%", "%", "1%%", "1e-6x", "one"}) {
    EXPECT_FALSE(ParseShare(text).ok()) << text;
  }
}

TEST(Units, Rates) {
  EXPECT_EQ(*ParseRate("20000"), 20000);
  EXPECT_EQ(*ParseRate("2.5e-1"), 0.25);
  EXPECT_EQ(*ParseRate("20k"), 20000);
  EXPECT_EQ(*ParseRate("20k/s"), 20000);
  EXPECT_EQ(*ParseRate("1.5M/s"), 1.5e6);
  EXPECT_EQ(*ParseRate("2G"), 2e9);
  EXPECT_DOUBLE_EQ(*ParseRate("6k/m"), 100);
  EXPECT_DOUBLE_EQ(*ParseRate("36k/h"), 10);
  EXPECT_DOUBLE_EQ(*ParseRate("86400/d"), 1);
  for (const char* text :
       {"", "0", "-1", "inf", "nan", "1e999", "k", "/s", "1 2", "20K", "20kk", "1/x", "1/ms", "1/s/s"}) {
    EXPECT_EQ(ParseRate(text).status().message(), "expected a number above 0, such as 20000, 20k/s or 5M/d")
        << text;
  }
}

TEST(Units, OffsetsInRanges) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(OffsetRanges({}, 10), Texts());
  EXPECT_EQ(OffsetRanges({5}, 10), Texts{"5"});
  EXPECT_EQ(OffsetRanges({5, 6, 7, 8, 9, 12}, 10), Texts{"5-9, 12"});
  EXPECT_EQ(OffsetRanges({1, 3, 4, 8, 10}, 2), (Texts{"1, 3-4", "8, 10"}));
}

TEST(Units, BytesForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(int64_t{1} << 20), "1.0 MiB");
  EXPECT_EQ(FormatBytes(int64_t{5} << 29), "2.5 GiB");
  EXPECT_EQ(FormatBytes(int64_t{1} << 50), "1024.0 TiB");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(-1234567), "-1,234,567");
  EXPECT_EQ(Several(0, "partition"), "0 partitions");
  EXPECT_EQ(Several(1, "partition"), "1 partition");
  EXPECT_EQ(Several(2, "partition"), "2 partitions");
}

TEST(Units, BytesThatAreOfferedAreEnoughAndAreTaken) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0"},
      {1000, "1000"},
      {64 << 10, "64KiB"},
      {(64 << 10) + 1, "65KiB"},
      {int64_t{1} << 30, "1GiB"},
      {2'255'000'000, "2151MiB"},
      {68'931'537'774, "65GiB"},
      {int64_t{1} << 50, "1024TiB"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(BytesSetting(bytes), text);
    EXPECT_GE(*ParseBytes(text), bytes);
    EXPECT_LE(static_cast<double>(*ParseBytes(text)), 1.1 * static_cast<double>(bytes));
  }
}

TEST(Units, DurationsForPeopleAreTakenBack) {
  const std::pair<absl::Duration, const char*> cases[] = {
      {absl::ZeroDuration(), "0"},
      {absl::Milliseconds(100), "100ms"},
      {absl::Milliseconds(45'250), "45s250ms"},
      {absl::Minutes(90), "1h30m"},
      {absl::Milliseconds(97'183'310), "1d2h59m43s"},
      {absl::Hours(24), "24h"},
      {absl::Hours(36), "1d12h"},
      {absl::Hours(7 * 24), "7d"},
      {absl::Hours(24 * 36525), "36525d"},
      {-absl::Hours(48), "-2d"},
      {absl::InfiniteDuration(), "inf"},
  };
  for (const auto& [duration, text] : cases) {
    EXPECT_EQ(DurationText(duration), text);
    const absl::StatusOr<absl::Duration> back = ParseDuration(text);
    const bool is_taken = duration >= absl::Milliseconds(1) && duration < absl::InfiniteDuration();
    EXPECT_EQ(back.ok(), is_taken) << text;
    if (!back.ok()) continue;
    EXPECT_LT(absl::AbsDuration(*back - duration), absl::Seconds(1)) << text;
  }
}

}  // namespace
}  // namespace lethe
