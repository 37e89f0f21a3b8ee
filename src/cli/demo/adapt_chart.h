// What `lethe demo --adapt` shows while it runs.
#ifndef LETHE_SRC_CLI_DEMO_ADAPT_CHART_H_
#define LETHE_SRC_CLI_DEMO_ADAPT_CHART_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/cli/terminal/terminal.h"

namespace lethe {

// A filter at one moment, from its daemon's metrics.
struct AdaptFigures {
  double fpp = 0;               // modelled
  double past_generations = 0;  // N
  absl::Duration period;        // t
  double memory_bytes = 0;
};

struct AdaptSample {
  absl::Duration at;  // since midnight, by the stream time of `published`
  double load = 0;    // new events an hour
  AdaptFigures published;
  AdaptFigures compact;
};

// 13:30.
std::string ClockTime(absl::Duration since_midnight);

// Four charts above each other (FPP against `target`, N, t, load) over a day, as far as it has gone: always
// kAdaptChartLines lines, none wider than `width` (60 or more) columns, each with its end.
inline constexpr int kAdaptChartLines = 21;
std::string DrawAdaptChart(absl::Span<const AdaptSample> samples, double target, const TextStyle& style,
                           int width);

// The same figures as a line of text, without its end, and the line above the first.
std::string AdaptLine(const AdaptSample& sample);
std::string AdaptLineTitle();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_ADAPT_CHART_H_
