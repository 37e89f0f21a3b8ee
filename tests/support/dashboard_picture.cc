#include "tests/support/dashboard_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace lethe::test {
namespace {

constexpr double kColumn = 50;  // of 24
constexpr double kRow = 26;
constexpr double kGap = 4;
constexpr double kHead = 34;
constexpr double kLegendLine = 12;
constexpr const char* kPalette[] = {"#56a64b", "#e0b400", "#3274d9", "#ff780a",
                                    "#8f3bb8", "#00a3a3", "#e02f44"};
const std::map<std::string, std::string> kColors = {{"green", "#56a64b"},  {"orange", "#ff780a"},
                                                    {"red", "#e02f44"},    {"blue", "#3274d9"},
                                                    {"purple", "#8f3bb8"}, {"yellow", "#e0b400"}};

struct Box {
  double x, y, w, h;
};

// A scale of values (or times) to pixels.
struct Scale {
  double low, high;  // values
  double from, to;   // pixels
  bool logarithmic = false;

  double operator()(double value) const {
    const auto place = [this](double v) { return logarithmic ? std::log10(std::max(v, low)) : v; };
    return from + (place(value) - place(low)) / (place(high) - place(low)) * (to - from);
  }
};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

std::string ColorOf(const std::string& name) {
  const auto known = kColors.find(name);
  return known == kColors.end() ? name : known->second;
}

void AppendText(double x, double y, const std::string& text, const std::string& style, std::string* svg) {
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, style, Escape(text));
}

// What is drawn fits: some 6 pixels a letter at size 11.
std::string Cut(const std::string& text, double width) {
  const auto letters = static_cast<size_t>(std::max(width / 6.0, 4.0));
  return text.size() <= letters ? text : absl::StrCat(text.substr(0, letters - 2), "..");
}

const SeriesStyle& StyleOf(const Panel& panel, const std::string& name) {
  static const SeriesStyle none;
  const auto named = panel.styles.find(name);
  if (named != panel.styles.end()) return named->second;
  for (const auto& [matcher, style] : panel.styles) {
    if (matcher.size() < 2 || matcher.front() != '/' || matcher.back() != '/') continue;
    if (std::regex_search(name, std::regex(matcher.substr(1, matcher.size() - 2)))) return style;
  }
  return none;
}

std::string SeriesColor(const Panel& panel, const std::vector<NamedSeries>& all, size_t index) {
  const SeriesStyle& style = StyleOf(panel, all[index].name);
  return style.color.empty() ? kPalette[index % std::size(kPalette)] : ColorOf(style.color);
}

std::string UnitOnRight(const Panel& panel) {
  std::string unit = panel.unit;
  for (const auto& [name, style] : panel.styles) {
    if (style.right_axis && !style.unit.empty()) unit = style.unit;
  }
  return unit;
}

// The next higher value that reads well, and whose half does: 1, 2, 3, 4, 5, 6, 8 or 10 in its unit's
// magnitude.
double RoundUp(double value, bool bytes) {
  double unit = 1;
  while (bytes && value >= 1024 * unit) unit *= 1024;
  const double magnitude = std::pow(10, std::floor(std::log10(value / unit))) * unit;
  for (const double step : {1, 2, 3, 4, 5, 6, 8}) {
    if (value <= step * magnitude * (1 + 1e-9)) return step * magnitude;
  }
  return 10 * magnitude;
}

// Powers on either side, an even number of them apart, so that the middle is one, too. None is above `most`.
void RoundLogarithms(double base, double most, double* low, double* high) {
  const auto log = [&](double value) { return std::log(value) / std::log(base); };
  double first = std::floor(log(*low) + 1e-9);
  double last = std::max(std::ceil(log(*high) - 1e-9), first + 1);
  if (std::fmod(last - first, 2) != 0) --first;
  if (const double above = last - std::floor(log(most) + 1e-9); above > 0) {
    first -= above;
    last -= above;
  }
  *low = std::pow(base, first);
  *high = std::pow(base, last);
}

// Values of the series on one axis; nothing if there are none.
bool AxisOf(const Panel& panel, const std::vector<NamedSeries>& all, bool right, const Box& box,
            Scale* scale) {
  const bool logarithmic = panel.logarithmic && !right;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const NamedSeries& series : all) {
    if (StyleOf(panel, series.name).right_axis != right) continue;
    for (const auto& [time, value] : series.series.points) {
      if (!std::isfinite(value) || (logarithmic && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (low > high) return false;
  if (logarithmic) {
    low = std::max(low, high * 1e-9);
    RoundLogarithms(panel.unit == "bytes" ? 4 : 10, panel.maximum, &low, &high);
  } else {
    if (panel.from_zero || right) low = std::min(low, 0.0);
    if (high <= low) high = low + 1;
    // A curve at the very edge would look cut.
    if (low == 0)
      high = RoundUp(1.03 * high, (right ? UnitOnRight(panel) : panel.unit) == "bytes");
    else
      high += 0.08 * (high - low);
  }
  *scale = {low, high, box.y + box.h, box.y, logarithmic};
  return true;
}

void DrawAxis(const Scale& scale, const std::string& unit, const Box& box, bool right, std::string* svg) {
  for (int i = 0; i <= 2; ++i) {
    double value = scale.low + (scale.high - scale.low) * i / 2;
    if (scale.logarithmic) value = scale.low * std::pow(scale.high / scale.low, i / 2.0);
    const double y = scale(value);
    if (!right) {
      absl::StrAppendFormat(svg, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"g\"/>\n",
                            box.x, box.x + box.w, y, y);
    }
    AppendText(right ? box.x + box.w + 4 : box.x - 4, y + 3, InUnit(value, unit),
               right ? "class=\"a\"" : "class=\"a\" text-anchor=\"end\"", svg);
  }
}

void DrawLine(const NamedSeries& named, const SeriesStyle& style, const Scale& time, const Scale& scale,
              const std::string& color, std::string* svg) {
  std::string path;
  bool drawing = false;
  double before = 0;
  for (const auto& [at, value] : named.series.points) {
    const bool has_place = std::isfinite(value) && (!scale.logarithmic || value > 0);
    if (!has_place || at - before > 1.5) drawing = false;
    before = at;
    if (!has_place) continue;
    absl::StrAppendFormat(&path, "%s%.1f %.1f", drawing ? "L" : "M", time(at), scale(value));
    drawing = true;
  }
  absl::StrAppendFormat(svg, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s/>\n", path,
                        color, style.dashed ? " stroke-dasharray=\"7 4\"" : "");
}

// Each series on top of the ones before it.
std::vector<NamedSeries> Stacked(std::vector<NamedSeries> all) {
  std::map<double, double> sums;
  for (NamedSeries& named : all) {
    for (auto& [time, value] : named.series.points) value = sums[time] += std::isfinite(value) ? value : 0;
  }
  return all;
}

double LegendWidth(const std::string& name) { return 26 + 6.2 * static_cast<double>(name.size()); }

int LegendLines(const std::vector<NamedSeries>& all, const Box& box) {
  int lines = 1;
  double width = 0;
  for (const NamedSeries& named : all) {
    if (width > 0 && width + LegendWidth(named.name) > box.w - 60) {
      ++lines;
      width = 0;
    }
    width += LegendWidth(named.name);
  }
  return lines;
}

void DrawLegend(const Panel& panel, const std::vector<NamedSeries>& all, const Box& box, std::string* svg) {
  double x = 0;
  double y = box.y + box.h - 5 - kLegendLine * (LegendLines(all, box) - 1);
  for (size_t i = 0; i < all.size(); ++i) {
    if (x > 0 && x + LegendWidth(all[i].name) > box.w - 60) {
      x = 0;
      y += kLegendLine;
    }
    absl::StrAppendFormat(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"3\" fill=\"%s\"/>\n",
                          box.x + 52 + x, y - 5, SeriesColor(panel, all, i));
    AppendText(box.x + 66 + x, y, all[i].name, "class=\"a\"", svg);
    x += LegendWidth(all[i].name);
  }
}

void DrawSeries(const Panel& panel, const std::vector<NamedSeries>& answers, const DashboardAnswers& all,
                const Box& box, std::string* svg) {
  const std::vector<NamedSeries> drawn = panel.stacked ? Stacked(answers) : answers;
  const bool has_right = std::any_of(drawn.begin(), drawn.end(), [&](const NamedSeries& named) {
    return StyleOf(panel, named.name).right_axis;
  });
  const Box plot = {box.x + 52, box.y + 6, box.w - 60 - (has_right ? 40 : 0),
                    box.h - 22 - kLegendLine * LegendLines(drawn, box)};
  const Scale time = {all.from, all.to, plot.x, plot.x + plot.w};
  for (const auto& [at, color] : all.annotations) {
    absl::StrAppendFormat(svg,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                          "stroke-width=\"0.7\" stroke-dasharray=\"3 3\"/>\n",
                          time(at), time(at), plot.y, plot.y + plot.h, ColorOf(color));
  }
  for (const bool right : {false, true}) {
    Scale scale = {};
    if (!AxisOf(panel, drawn, right, plot, &scale)) continue;
    DrawAxis(scale, right ? UnitOnRight(panel) : panel.unit, plot, right, svg);
    for (size_t i = 0; i < drawn.size(); ++i) {
      const SeriesStyle& style = StyleOf(panel, drawn[i].name);
      if (style.right_axis == right) {
        DrawLine(drawn[i], style, time, scale, SeriesColor(panel, drawn, i), svg);
      }
    }
  }
  DrawLegend(panel, drawn, box, svg);
}

double LastValue(const Series& series) {
  for (auto point = series.points.rbegin(); point != series.points.rend(); ++point) {
    if (std::isfinite(point->second)) return point->second;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void DrawStat(const Panel& panel, const std::vector<NamedSeries>& answers, const Box& box, std::string* svg) {
  const double value = answers.empty() ? std::nan("") : LastValue(answers[0].series);
  std::string color = "#333";
  for (const auto& [from, name] : panel.thresholds) {
    if (value >= from) color = ColorOf(name);
  }
  const auto text = panel.value_texts.find(absl::StrCat(value));
  AppendText(
      box.x + box.w / 2, box.y + box.h / 2 + 8,
      text == panel.value_texts.end() ? InUnit(value, panel.unit) : text->second,
      absl::StrCat("font-size=\"24\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"", color, "\""), svg);
}

// One line for each series: its labels, and its value where that says something.
void DrawTable(const std::vector<NamedSeries>& answers, const Box& box, std::string* svg) {
  double y = box.y + 14;
  for (const NamedSeries& named : answers) {
    std::string line;
    for (const auto& [name, value] : named.series.labels) {
      if (name != "__name__" && name != "job") absl::StrAppend(&line, name, "=", value, "  ");
    }
    // As wide as the panel, in as many lines as that takes.
    for (size_t at = 0; at < line.size() && y < box.y + box.h - 4; y += 14) {
      const auto letters = static_cast<size_t>((box.w - 90) / 6);
      size_t end = at + letters < line.size() ? line.rfind(' ', at + letters) : line.size();
      if (end == std::string::npos || end <= at) end = at + letters;
      AppendText(box.x + 10, y, line.substr(at, end - at), "class=\"a\"", svg);
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
    AppendText(box.x + box.w - 12, y - 14, InUnit(LastValue(named.series), "short"),
               "class=\"a\" text-anchor=\"end\"", svg);
    if (y >= box.y + box.h - 4) return;
  }
}

// Buckets from the bottom up, darker the more is in them.
void DrawHeatmap(std::vector<NamedSeries> answers, const DashboardAnswers& all, const Box& box,
                 std::string* svg) {
  const auto bound = [](const NamedSeries& named) {
    double value = std::numeric_limits<double>::infinity();
    return absl::SimpleAtod(named.name, &value) ? value : std::numeric_limits<double>::infinity();
  };
  std::sort(answers.begin(), answers.end(),
            [&](const NamedSeries& a, const NamedSeries& b) { return bound(a) < bound(b); });
  const Box plot = {box.x + 52, box.y + 6, box.w - 60, box.h - 16};
  const Scale time = {all.from, all.to, plot.x, plot.x + plot.w};
  const double height = plot.h / static_cast<double>(std::max<size_t>(1, answers.size()));
  std::map<double, double> below;
  double most = 1e-9;
  for (size_t i = answers.size(); i-- > 1;) {
    std::map<double, double> lower(answers[i - 1].series.points.begin(), answers[i - 1].series.points.end());
    for (auto& [at, value] : answers[i].series.points) most = std::max(most, value -= lower[at]);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const double y = plot.y + plot.h - static_cast<double>(i + 1) * height;
    if (i % 3 == 0) {
      AppendText(plot.x - 4, y + height, InUnit(bound(answers[i]), "s"), "class=\"a\" text-anchor=\"end\"",
                 svg);
    }
    for (const auto& [at, value] : answers[i].series.points) {
      if (!(value > 0)) continue;
      absl::StrAppendFormat(svg,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#3274d9\" "
                            "fill-opacity=\"%.2f\"/>\n",
                            time(at), y, time(1) - time(0) - 0.5, height - 0.5,
                            0.15 + 0.85 * std::sqrt(value / most));
    }
  }
}

void DrawPanel(const Panel& panel, const DashboardAnswers& all, std::string* svg) {
  const Box outer = {panel.x * kColumn + kGap, kHead + panel.y * kRow + kGap, panel.w * kColumn - kGap,
                     panel.h * kRow - kGap};
  if (panel.is_folded) return;
  if (panel.type == "row") {
    const std::string folded =
        panel.folded > 0 ? absl::StrCat(" (", panel.folded, panel.folded == 1 ? " panel)" : " panels)") : "";
    AppendText(outer.x + 4, outer.y + 16, absl::StrCat(panel.title, folded), "class=\"r\"", svg);
    return;
  }
  absl::StrAppendFormat(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"p\"/>\n",
                        outer.x, outer.y, outer.w, outer.h);
  AppendText(outer.x + 8, outer.y + 15, Cut(panel.title, outer.w - 8), "class=\"t\"", svg);
  const Box box = {outer.x, outer.y + 20, outer.w, outer.h - 20};
  const auto found = all.panels.find(panel.id);
  const std::vector<NamedSeries> none;
  const std::vector<NamedSeries>& answers = found == all.panels.end() ? none : found->second;
  if (panel.type == "stat") return DrawStat(panel, answers, box, svg);
  if (panel.type == "table") return DrawTable(answers, box, svg);
  if (panel.type == "heatmap") return DrawHeatmap(answers, all, box, svg);
  DrawSeries(panel, answers, all, box, svg);
}

}  // namespace

std::string InUnit(double value, const std::string& unit) {
  if (std::isnan(value)) return "no data";
  if (std::isinf(value)) return "+Inf";
  // Three figures, and never a power of ten.
  const auto figures = [](double v) {
    return std::abs(v) >= 100 ? absl::StrFormat("%.0f", v) : absl::StrFormat("%.3g", v);
  };
  const auto scaled = [&](double v, double base, std::initializer_list<const char*> suffixes) {
    auto suffix = suffixes.begin();
    while (std::abs(v) >= base && suffix + 1 != suffixes.end()) v /= base, ++suffix;
    return absl::StrCat(figures(v), *suffix);
  };
  if (unit == "percentunit") return absl::StrFormat("%.3g%%", value * 100);
  if (unit == "sci") return value == 0 ? "0" : absl::StrFormat("%.1e", value);
  if (unit == "bytes") return scaled(value, 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
  if (unit == "Bps") return scaled(value, 1000, {" B/s", " kB/s", " MB/s", " GB/s"});
  if (unit == "cps") return scaled(value, 1000, {"/s", "k/s", "M/s"});
  if (unit != "s") return scaled(value, 1000, {"", " K", " Mil", " Bil"});
  if (value != 0 && std::abs(value) < 1) return absl::StrCat(figures(value * 1000), " ms");
  if (std::abs(value) >= 7200) return absl::StrCat(figures(value / 3600), " h");
  if (std::abs(value) >= 120) return absl::StrCat(figures(value / 60), " min");
  return absl::StrCat(figures(value), " s");
}

std::string DrawDashboard(const Dashboard& dashboard, const DashboardAnswers& answers) {
  int rows = 0;
  for (const Panel& panel : dashboard.panels) {
    if (!panel.is_folded) rows = std::max(rows, panel.y + panel.h);
  }
  const double width = 24 * kColumn + kGap;
  const double height = kHead + rows * kRow + 2 * kGap;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"DejaVu "
      "Sans\">\n"
      "<style>.t{font-size:11px;font-weight:bold;fill:#222}.r{font-size:12px;font-weight:bold;fill:#555}"
      ".a{font-size:9.5px;fill:#444}.g{stroke:#ddd;stroke-width:0.7}"
      ".p{fill:#fff;stroke:#ccc;stroke-width:1}</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#f4f5f5\"/>\n",
      width, height);
  AppendText(8, 23, dashboard.title, "font-size=\"17\" font-weight=\"bold\" fill=\"#222\"", &svg);
  for (const Panel& panel : dashboard.panels) DrawPanel(panel, answers, &svg);
  absl::StrAppend(&svg, "</svg>\n");
  return svg;
}

}  // namespace lethe::test
