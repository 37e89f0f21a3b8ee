#include "src/cli/demo/adapt_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/cli/demo/demo_day.h"
#include "src/text/format.h"

namespace lethe {
namespace {

constexpr int kRows = 4;               // of one chart
constexpr int kMargin = 10;            // columns left of a chart
constexpr double kDecades = 5;         // of the FPP, one above its target
constexpr double kLeastMinutes = 0.5;  // t

enum class Series { kNone, kTarget, kCompact, kPublished };

// Braille's dots look alike without colours.
bool DrawsDots(const TextStyle& style) { return style.blocks && style.colour; }

// Lines in a field of characters: with Braille's two by four dots in each, or with one letter.
class Canvas {
 public:
  explicit Canvas(int columns) : columns_(columns), cells_(Index(0, kRows)) {}

  // Points from the left (0) to the right (1) and from the bottom (0) to the top (1).
  struct Point {
    double x;
    double y;
  };
  void Line(Point from, Point to, Series series) {
    const double width = 2.0 * columns_ - 1;
    const double height = 4.0 * kRows - 1;
    const double steps = std::max(
        {1.0, std::ceil(std::abs(to.x - from.x) * width), std::ceil(std::abs(to.y - from.y) * height)});
    for (double i = 0; i <= steps; ++i) {
      const double x = from.x + (to.x - from.x) * i / steps;
      const double y = from.y + (to.y - from.y) * i / steps;
      Dot(static_cast<int>(std::lround(std::clamp(x, 0.0, 1.0) * width)),
          static_cast<int>(std::lround((1 - std::clamp(y, 0.0, 1.0)) * height)), series);
    }
  }

  std::string Row(int row, const TextStyle& style) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      text += Text(cells_[Index(column, row)], style);
    }
    return text;
  }

 private:
  struct Cell {
    uint8_t dots = 0;  // as Unicode numbers Braille's
    Series series = Series::kNone;
  };

  size_t Index(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(columns_) + static_cast<size_t>(column);
  }

  void Dot(int x, int y, Series series) {
    constexpr uint8_t kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& cell = cells_[Index(x / 2, y / 4)];
    cell.dots |= kDots[y % 4][x % 2];
    cell.series = std::max(cell.series, series);
  }

  static std::string Text(const Cell& cell, const TextStyle& style) {
    if (cell.series == Series::kNone) return " ";
    std::string text;
    if (DrawsDots(style)) {  // U+2800 and the dots, in UTF-8
      text = {'\xE2', static_cast<char>(0xA0 | (cell.dots >> 6)),
              static_cast<char>(0x80 | (cell.dots & 0x3F))};
    }
    switch (cell.series) {
      case Series::kPublished:
        return style.Cyan(DrawsDots(style) ? text : "*");
      case Series::kCompact:
        return style.Yellow(DrawsDots(style) ? text : "o");
      case Series::kTarget:
      case Series::kNone:
        return style.Red(DrawsDots(style) ? text : "-");
    }
    return text;
  }

  const int columns_;
  std::vector<Cell> cells_;
};

using ChartValue = std::function<double(const AdaptFigures&)>;

struct Chart {
  std::string title;
  std::string top;
  std::string bottom;
  ChartValue value;  // 0 to 1, of the axis; of the load nullptr
};

std::string InLeftMargin(const std::string& text) { return absl::StrFormat("%*s ", kMargin - 1, text); }

double Highest(absl::Span<const AdaptSample> samples, const ChartValue& value, double least) {
  for (const AdaptSample& sample : samples) {
    least = std::max({least, value(sample.published), value(sample.compact)});
  }
  return least;
}

std::string Minutes(double minutes) {
  return minutes < 10 ? absl::StrFormat("%.1f min", minutes) : absl::StrFormat("%.0f min", minutes);
}

std::string Ends(const Chart& chart, int row) {
  return InLeftMargin(row == 0 ? chart.top : row + 1 == kRows ? chart.bottom : "");
}

}  // namespace

std::string ClockTime(absl::Duration since_midnight) {
  const int64_t minutes = absl::ToInt64Minutes(since_midnight);
  return absl::StrFormat("%02d:%02d", minutes / 60, minutes % 60);
}

std::string DrawAdaptChart(absl::Span<const AdaptSample> samples, double target, const TextStyle& style,
                           int width) {
  const ChartValue past = [](const AdaptFigures& figures) { return figures.past_generations; };
  const ChartValue period = [](const AdaptFigures& figures) { return absl::ToDoubleMinutes(figures.period); };
  const double most_past = Highest(samples, past, 4);
  const double longest = Highest(samples, period, 1);
  double most_load = 1;
  for (const AdaptSample& sample : samples) most_load = std::max(most_load, sample.load);
  const double least_fpp = 10 * target / std::pow(10, kDecades);
  const auto fpp_height = [least_fpp](double fpp) {
    return std::log10(std::max(fpp, least_fpp) / least_fpp) / kDecades;
  };
  const Chart charts[] = {
      {"FPP", absl::StrFormat("%.0e", target),
       absl::StrFormat("%.0e", least_fpp),  // its line is in the top row
       [&](const AdaptFigures& figures) { return fpp_height(figures.fpp); }},
      {"N, past generations", absl::StrFormat("%.0f", most_past), "0",
       [&](const AdaptFigures& figures) { return past(figures) / most_past; }},
      {"t, time between refreshes", Minutes(longest), Minutes(kLeastMinutes),
       [&](const AdaptFigures& figures) {
         return std::log(std::max(period(figures), kLeastMinutes) / kLeastMinutes) /
                std::log(longest / kLeastMinutes);
       }},
      {"load, new events an hour", FormatCount(static_cast<int64_t>(most_load)), "0", nullptr},
  };
  const int columns = std::max(width - kMargin, 1);
  const auto x = [](const AdaptSample& sample) { return absl::FDivDuration(sample.at, DemoDay::kLength); };
  std::string text;
  for (const Chart& chart : charts) {
    Canvas canvas(columns);
    const bool is_load = chart.value == nullptr;
    std::string legend;
    if (&chart == &charts[0]) {
      canvas.Line({0, fpp_height(target)}, {1, fpp_height(target)}, Series::kTarget);
      const auto sign = [&](const char* letter) { return DrawsDots(style) ? "\u2500\u2500 " : letter; };
      legend = absl::StrCat("  ", style.Red(absl::StrCat(sign("- "), "target")), "  ",
                            style.Cyan(absl::StrCat(sign("* "), "published")), "  ",
                            style.Yellow(absl::StrCat(sign("o "), "compact")));
    }
    for (size_t i = 0; i < samples.size(); ++i) {
      const AdaptSample& before = samples[i == 0 ? 0 : i - 1];
      const AdaptSample& now = samples[i];
      if (is_load) {
        canvas.Line({x(before), before.load / most_load}, {x(now), now.load / most_load}, Series::kPublished);
        continue;
      }
      for (const auto& [of, series] : {std::pair(&AdaptSample::compact, Series::kCompact),
                                       std::pair(&AdaptSample::published, Series::kPublished)}) {
        canvas.Line({x(before), chart.value(before.*of)}, {x(now), chart.value(now.*of)}, series);
      }
    }
    absl::StrAppend(&text, style.Bold(chart.title), legend, "\n");
    for (int row = 0; row < kRows; ++row) {
      absl::StrAppend(&text, style.Dim(Ends(chart, row)), canvas.Row(row, style), "\n");
    }
  }
  std::string hours(static_cast<size_t>(width), ' ');
  for (const int hour : {0, 6, 12, 18, 24}) {
    const std::string name = absl::StrFormat("%02d:00", hour);
    const int at = std::min(kMargin + hour * columns / 24 - 2, width - static_cast<int>(name.size()));
    hours.replace(static_cast<size_t>(std::max(at, 0)), name.size(), name);
  }
  absl::StrAppend(&text, style.Dim(hours), "\n");
  return text;
}

std::string AdaptLineTitle() {
  return absl::StrFormat("%-6s %9s   %-28s   %-28s\n%-6s %9s   %4s %12s %10s   %4s %12s %10s", "", "load",
                         "published", "compact", "time", "per hour", "N", "t", "FPP", "N", "t", "FPP");
}

std::string AdaptLine(const AdaptSample& sample) {
  std::string line = absl::StrFormat("%-6s %9.0f", ClockTime(sample.at), sample.load);
  for (const AdaptFigures& figures : {sample.published, sample.compact}) {
    absl::StrAppendFormat(&line, "   %4.0f %12s %10.1e", figures.past_generations,
                          absl::FormatDuration(absl::Trunc(figures.period, absl::Seconds(1))), figures.fpp);
  }
  return line;
}

}  // namespace lethe
