#include "src/cli/demo/adapt_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "src/cli/demo/demo_day.h"

namespace lethe {
namespace {

using testing::HasSubstr;

// N climbs to 40 at noon and comes back; compact's stays.
std::vector<AdaptSample> Day() {
  std::vector<AdaptSample> samples;
  for (int hour = 0; hour <= 24; ++hour) {
    const double sun = 1 - std::abs(hour - 12) / 12.0;
    samples.push_back({.at = absl::Hours(hour),
                       .load = 100 + 900 * sun,
                       .published = {.fpp = 1e-14 * std::pow(10, 7 * sun),
                                     .past_generations = std::round(40 * sun),
                                     .period = absl::Minutes(90 / (1 + std::round(40 * sun)))},
                       .compact = {.fpp = 1e-9, .past_generations = 16, .period = absl::Minutes(5)}});
  }
  return samples;
}

std::vector<std::string> Lines(const std::string& text) { return absl::StrSplit(text, '\n'); }

int Columns(const std::string& line) {
  return static_cast<int>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST(AdaptChart, HasAsManyLinesAsItSaysAndNoneIsTooWide) {
  for (const bool blocks : {false, true}) {
    for (const int width : {60, 79, 110}) {
      for (const std::vector<AdaptSample>& samples : {std::vector<AdaptSample>(), Day()}) {
        const std::vector<std::string> lines =
            Lines(DrawAdaptChart(samples, 1e-6, {.blocks = blocks}, width));
        EXPECT_EQ(lines.size(), kAdaptChartLines + 1u);
        EXPECT_TRUE(lines.back().empty());
        for (const std::string& line : lines) EXPECT_LE(Columns(line), width) << line;
      }
    }
  }
}

TEST(AdaptChart, EachCurveIsWhereItsFiguresAre) {
  const std::vector<std::string> lines = Lines(DrawAdaptChart(Day(), 1e-6, {}, 82));
  const auto title = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return absl::StartsWith(line, "N,"); });
  ASSERT_NE(title, lines.end());
  // N is at the top at noon only, and at the bottom at midnight only.
  const std::string top = title[1];
  const std::string bottom = title[4];
  constexpr size_t kLeft = 10;
  constexpr size_t kNoon = kLeft + 36;
  EXPECT_EQ(top[kNoon], '*') << top;
  EXPECT_EQ(top[kLeft + 1], ' ') << top;
  EXPECT_EQ(bottom[kLeft], '*') << bottom;
  EXPECT_EQ(bottom[kNoon], ' ') << bottom;
  EXPECT_EQ(std::count(title[3].begin() + kLeft, title[3].end(), 'o') +
                std::count(title[3].begin() + kLeft, title[3].end(), '*'),
            72)
      << title[3];
  EXPECT_THAT(top, HasSubstr("40"));
  // The target's line is above both curves, beside its figure.
  EXPECT_THAT(lines[1], HasSubstr("1e-06 "));
  EXPECT_EQ(std::count(lines[1].begin() + kLeft, lines[1].end(), '-') +
                std::count(lines[1].begin() + kLeft, lines[1].end(), '*'),
            72)
      << lines[1];
}

// Dots of one colour look alike.
TEST(AdaptChart, CurvesAreToldApartWithoutColours) {
  EXPECT_EQ(DrawAdaptChart(Day(), 1e-6, {.blocks = true}, 82), DrawAdaptChart(Day(), 1e-6, {}, 82));
  EXPECT_NE(DrawAdaptChart(Day(), 1e-6, {.colour = true, .blocks = true}, 82),
            DrawAdaptChart(Day(), 1e-6, {.colour = true}, 82));
}

TEST(AdaptChart, ALineOfTextHasTheSameFigures) {
  const std::vector<std::string> words = absl::StrSplit(AdaptLine(Day()[12]), ' ', absl::SkipEmpty());
  EXPECT_EQ(words,
            (std::vector<std::string>{"12:00", "1000", "40", "2m11s", "1.0e-07", "16", "5m", "1.0e-09"}));
}

TEST(DemoDay, SendsItsEventsInOrderAndEachRetryWithinTheHorizon) {
  DemoDay day(20'000, 42);
  absl::Duration last;
  std::map<std::string, absl::Duration> first;
  int64_t copies = 0;
  std::vector<int64_t> by_hour(24);
  while (const auto sending = day.Next()) {
    EXPECT_GE(sending->at, last);
    last = sending->at;
    ASSERT_LT(last, DemoDay::kLength);
    const auto [event, is_new] = first.emplace(sending->id, sending->at);
    if (is_new) ++by_hour[static_cast<size_t>(absl::ToInt64Hours(last))];
    copies += is_new ? 0 : 1;
    EXPECT_LE(sending->at - event->second, DemoDay::kLatestRetry);
  }
  EXPECT_LT(DemoDay::kLatestRetry, DemoDay::kHorizon);
  EXPECT_EQ(first.size(), day.ids().size());
  EXPECT_EQ(day.sent(), static_cast<int64_t>(first.size()) + copies);
  EXPECT_NEAR(static_cast<double>(first.size()), 20'000, 200);
  EXPECT_NEAR(static_cast<double>(copies), 20'000 * DemoDay::kLostAcknowledgements, 300);  // 7 deviations
  // Two peaks, the second one higher, with a valley between.
  EXPECT_GT(by_hour[7], 5 * by_hour[2]);
  EXPECT_LT(by_hour[10], by_hour[7]);
  EXPECT_GT(by_hour[12], 2 * by_hour[7]);
  EXPECT_LT(by_hour[20], by_hour[7] / 5);
}

}  // namespace
}  // namespace lethe
