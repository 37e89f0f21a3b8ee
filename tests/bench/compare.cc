#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/contender.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

// Of which ListLayouts() has all figures; of other sizes, the time.
constexpr double kTabledIds = 1e6;

}  // namespace

absl::StatusOr<Table> CompareLayouts(const Extent& extent, double window, double target_fpp,
                                     std::vector<Figures>* all) {
  Table table{
      .columns = {"layout", "bits per id", "FPP", "ns, batched", "times compact", "from nothing", "single"}};
  double compact = 0;
  for (const std::string& name : LayoutNames(window, target_fpp)) {
    absl::StatusOr<Figures> figures =
        Measure(extent, {name, [&] { return MakeLayout(name, window, target_fpp); }}, window, target_fpp,
                PlanFor(extent, name, window, target_fpp));
    if (!figures.ok()) return figures.status();
    if (name == "compact") compact = figures->ns_batch;
    table.rows.push_back({figures->layout + figures->fault, FigureText(figures->bits_per_id),
                          FppText(*figures), FigureText(figures->ns_batch),
                          FigureText(figures->ns_batch / compact), FigureText(figures->ns_from_nothing),
                          FigureText(figures->ns_single)});
    NoteFault(*figures, &table);
    all->push_back(*std::move(figures));
  }
  return table;
}

absl::StatusOr<Table> ListLayouts(const Extent&, std::vector<Figures>* all) {
  Table table{.columns = {"layout", "bits per id", "FPP", "from nothing", "single"}};
  const auto times = static_cast<std::ptrdiff_t>(table.columns.size());
  std::vector<double> windows;
  for (const Figures& figures : *all) {
    if (figures.target_fpp != kDefaultTarget) continue;
    if (windows.empty() || windows.back() != figures.window) windows.push_back(figures.window);
  }
  for (const double window : windows) table.columns.push_back(absl::StrCat(IdsText(window), ", batched"));
  for (const std::string& name : LayoutNames(kTabledIds, kDefaultTarget)) {
    std::vector<std::string> row(table.columns.size());
    row[0] = name;
    for (const Figures& figures : *all) {
      if (figures.layout != name || figures.target_fpp != kDefaultTarget) continue;
      const auto at = std::find(windows.begin(), windows.end(), figures.window) - windows.begin();
      row[0] += figures.fault;
      row[static_cast<size_t>(times + at)] = FigureText(figures.ns_batch);
      if (figures.window != kTabledIds) continue;
      row[1] = FigureText(figures.bits_per_id);
      row[2] = FppText(figures);
      row[3] = FigureText(figures.ns_from_nothing);
      row[4] = FigureText(figures.ns_single);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

absl::StatusOr<Table> ListCompact(const Extent&, std::vector<Figures>* all) {
  Table table{.columns = {"ids", "target", "bits per id", "at most", "FPP", "ns, batched", "from nothing",
                          "falling", "single"}};
  for (const Figures& figures : *all) {
    if (figures.layout != "compact") continue;
    table.rows.push_back({IdsText(figures.window), absl::StrFormat("%g", figures.target_fpp),
                          FigureText(figures.bits_per_id), FigureText(figures.most_bits_per_id),
                          FppText(figures), FigureText(figures.ns_batch), FigureText(figures.ns_from_nothing),
                          FigureText(figures.ns_falling), FigureText(figures.ns_single)});
  }
  return table;
}

}  // namespace lethe::bench
