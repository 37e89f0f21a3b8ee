#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/contender.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

constexpr double kLargest = 1e9;
constexpr double kTarget = 1e-4;
// Of compact at this target, at most.
constexpr double kMostBitsPerId = 40;
// Of what the filter takes, so that nothing else on the machine is short of memory.
constexpr double kMargin = 1.25;
constexpr double kMarginBytes = double{1 << 29};
constexpr double kHalfStep = 3.162278;  // half a power of ten

// What can be had without swapping: of the machine, and of the control group if it has a limit.
double AvailableBytes() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream machine("/proc/meminfo");
  double kib = 0;
  for (std::string word; machine >> word;) {
    if (word == "MemAvailable:" && machine >> kib) available = kib * 1024;
  }
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  double limit = 0;
  double used = 0;
  if (limit_file >> limit && used_file >> used) available = std::min(available, limit - used);
  return available;
}

// 10^9, and from there down by half powers of ten to what was asked for and fits; 10^5 at least.
double LargestThatFits(const Extent& extent) {
  const double available = AvailableBytes();
  double window = kLargest;
  for (int half_powers = 18; half_powers >= 10; --half_powers) {
    window = std::pow(10.0, half_powers / 2.0);
    const double bytes = kMostBitsPerId / 8 * window;
    if (window <= 1.001 * extent.largest_window && kMargin * bytes + kMarginBytes <= available) break;
  }
  return window;
}

}  // namespace

absl::StatusOr<Table> MeasureLargestWindow(const Extent& extent, std::vector<Figures>* all) {
  Table table{
      .text =
          "Compact alone, as it grows from nothing. The last column is the time of the "
          "thread that makes its pages present meanwhile, which is in none of the others.",
      .columns = {"ids", "target", "memory, GiB", "bits per id", "FPP measured", "false hits",
                  "ns per id, batched", "ns, single", "slowest call, us", "helper thread, ns per id"}};
  const double window = LargestThatFits(extent);
  if (window < 0.999 * kLargest) {
    const bool asked_for_more = kHalfStep * window <= 1.001 * extent.largest_window;
    absl::StrAppend(&table.text, " Not 10^9 ids: ",
                    asked_for_more ? absl::StrFormat("the machine has %.1f GiB of memory available.",
                                                     AvailableBytes() / (1 << 30))
                                   : "more were not asked for.");
  }
  // The warm-up is what takes minutes. Then the rest is as many ids as there are timed at 10^8.
  const Plan plan = {.warm = 1.25,
                     .batched = 0.05,
                     .single = 0.02,
                     .each_timed = 0.02,
                     .false_hits = 400,
                     .most_probes = 2e7};
  absl::StatusOr<Figures> figures = Measure(
      extent, {"compact", [&] { return MakeLayout("compact", window, kTarget); }}, window, kTarget, plan);
  if (!figures.ok()) return figures.status();
  table.rows.push_back(
      {IdsText(window) + figures->fault, absl::StrFormat("%g", kTarget),
       FigureText(figures->bits_per_id * window / 8 / (1 << 30)), FigureText(figures->bits_per_id),
       FppText(*figures), absl::StrFormat("%.0f", figures->false_hits), FigureText(figures->ns_batch),
       FigureText(figures->ns_single), FigureText(figures->slowest_us), FigureText(figures->helper_ns)});
  NoteFault(*figures, &table);
  // The smaller ones are in the comparison of the layouts.
  if (window > 1e8) all->push_back(*std::move(figures));
  return table;
}

}  // namespace lethe::bench
