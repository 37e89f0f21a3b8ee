#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/contender.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

std::vector<std::string> Row(const Figures& figures, const Figures& compact) {
  return {figures.layout + figures.fault,      absl::StrCat(figures.generations),
          FigureText(figures.bits_per_id),     FppText(figures),
          FigureText(figures.ns_batch),        FigureText(figures.ns_batch / compact.ns_batch),
          FigureText(figures.ns_from_nothing), FigureText(figures.ns_single),
          FigureText(figures.slowest_us)};
}

}  // namespace

absl::StatusOr<Table> CompareLayouts(const Extent& extent, double window, double target_fpp,
                                     std::vector<Figures>* all) {
  Table table{.columns = {"layout", "generations", "bits per id", "FPP measured", "ns per id, batched",
                          "times compact", "ns, from nothing", "ns, single", "slowest call, us"}};
  Figures compact;
  for (const std::string& name : LayoutNames()) {
    absl::StatusOr<Figures> figures =
        Measure(extent, {name, [&] { return MakeLayout(name, window, target_fpp); }}, window, target_fpp,
                PlanFor(extent, name, window, target_fpp));
    if (!figures.ok()) return figures.status();
    if (name == "compact") compact = *figures;
    table.rows.push_back(Row(*figures, compact));
    NoteFault(*figures, &table);
    all->push_back(*std::move(figures));
  }
  return table;
}

absl::StatusOr<Table> CompareTargets(const Extent& extent, std::vector<Figures>* all) {
  constexpr double kWindow = 1e6;
  Table table{.columns = {"target", "bits per id", "FPP measured", "FPP modelled", "ns per id, batched",
                          "ns, single"}};
  for (const double target_fpp : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}) {
    absl::StatusOr<Figures> figures =
        Measure(extent, {"compact", [&] { return MakeLayout("compact", kWindow, target_fpp); }}, kWindow,
                target_fpp, PlanFor(extent, "compact", kWindow, target_fpp));
    if (!figures.ok()) return figures.status();
    table.rows.push_back({absl::StrFormat("%g", target_fpp), FigureText(figures->bits_per_id),
                          FppText(*figures), FigureText(figures->fpp_modelled), FigureText(figures->ns_batch),
                          FigureText(figures->ns_single)});
    NoteFault(*figures, &table);
    // The comparison of the layouts has these two already.
    if (target_fpp != 1e-4 && target_fpp != 1e-6) all->push_back(*std::move(figures));
  }
  return table;
}

}  // namespace lethe::bench
