#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/bench/layouts.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

// What a plan runs through, at most.
constexpr double kMostHorizons = 7;

// Those that take a cache miss or more for each bit.
bool IsSlow(const std::string& name) { return name == "published" || name == "plain-ring" || name == "apbf"; }

// Fewer rounds where each is long. After a warm-up each generation has been filled once, and in the apbf each
// id has gone through all slices.
Plan PlanFor(const Extent& extent, const std::string& name, double window, double target_fpp) {
  Plan plan;
  if (window > 5e6) plan = {.warm = 1.5, .batched = 1, .single = 0.5, .each_timed = 0.5};
  if (window > 5e7) plan = {.warm = 1.25, .batched = 0.5, .single = 0.25, .each_timed = 0.25};
  if (window > 5e7 && IsSlow(name)) {
    plan = {.warm = 1.1, .warm_by_insert = true, .batched = 0.05, .single = 0.02, .each_timed = 0.02};
    if (name == "apbf") plan.warm = 1.4;
  }
  if (extent.quick || (window > 5e6 && IsSlow(name))) plan.false_hits = 100;
  plan.most_probes = std::min(extent.quick ? 2e7 : 6e8, 2 * plan.false_hits / target_fpp);
  if (window > 5e6 && IsSlow(name)) plan.most_probes = std::min(plan.most_probes, 5e7);
  if (IsExact(name)) plan.most_probes = 1e6;
  return plan;
}

// For the progress: what it takes on a machine with two processors and 32 MiB of last-level cache, roughly.
double ExpectedSeconds(const std::string& name, double window, double target_fpp, const Plan& plan) {
  double nanos = 100;
  if (name == "sliced" || name == "plain-ring-sliced") nanos = 50;
  if (name == "exact" || name == "exact-engine") nanos = 230;
  if (IsSlow(name)) nanos = 900;
  nanos *= window > 5e7 ? 1 : window > 5e6 ? 0.4 : 0.15;
  const double calls = plan.warm + plan.batched + 1.5 * plan.single + 2 * plan.each_timed + 0.15;
  const double probes = std::min(plan.most_probes, plan.false_hits / target_fpp);
  return (calls * window + 0.7 * probes) * (nanos + 12) * 1e-9;
}

// A layout by name, made when its turn comes.
struct Contender {
  std::string name;
  std::function<absl::StatusOr<Layout>()> make;
};

absl::StatusOr<Figures> Measure(const Extent& extent, const Contender& contender, double window,
                                double target_fpp) {
  const Plan plan = PlanFor(extent, contender.name, window, target_fpp);
  if (!extent.progress->Begin(
          absl::StrCat(contender.name, ", ", IdsText(window), " ids, target ", target_fpp),
          ExpectedSeconds(contender.name, window, target_fpp, plan))) {
    return Figures{};
  }
  const absl::StatusOr<Layout> layout = contender.make();
  if (!layout.ok()) return layout.status();
  Figures figures = MeasureSteady(layout->filter.get(), window, plan);
  figures.layout = layout->name;
  figures.generations = layout->generations;
  figures.target_fpp = target_fpp;
  // A copy may pass if its first was a false positive, which is not stored.
  const double copies = kDuplicates * window * kMostHorizons;
  if (figures.window_kept < 1) {
    figures.fault = absl::StrFormat(" (FAULT: a window of %.3f horizons)", figures.window_kept);
  } else if (figures.missed > 20 + 2 * figures.fpp * copies) {
    figures.fault = absl::StrFormat(" (FAULT: %.0f copies passed)", figures.missed);
  }
  return figures;
}

std::vector<std::string> Row(const Figures& figures, const Figures& sliced) {
  return {figures.layout + figures.fault,  absl::StrCat(figures.generations),
          FigureText(figures.bits_per_id), FppText(figures),
          FigureText(figures.ns_batch),    FigureText(figures.ns_batch / sliced.ns_batch),
          FigureText(figures.ns_single),   FigureText(figures.slowest_us)};
}

}  // namespace

absl::StatusOr<Table> CompareLayouts(const Extent& extent, double window, double target_fpp,
                                     std::vector<Figures>* all) {
  Table table{.heading = absl::StrFormat("%s ids, target %g", IdsText(window), target_fpp),
              .text = "",
              .columns = {"layout", "generations", "bits per id", "FPP measured", "ns per id, batched",
                          "times sliced", "ns, single", "slowest call, us"}};
  Figures sliced;
  for (const std::string& name : LayoutNames()) {
    absl::StatusOr<Figures> figures =
        Measure(extent, {name, [&] { return MakeLayout(name, window, target_fpp); }}, window, target_fpp);
    if (!figures.ok()) return figures.status();
    if (name == "sliced") sliced = *figures;
    table.rows.push_back(Row(*figures, sliced));
    all->push_back(*std::move(figures));
  }
  return table;
}

absl::StatusOr<Table> CompareTargets(const Extent& extent, std::vector<Figures>* all) {
  constexpr double kWindow = 1e6;
  Table table{.heading = "Targets: the sliced filter, 10^6 ids",
              .text = "",
              .columns = {"target", "bits per id", "FPP measured", "FPP modelled", "ns per id, batched",
                          "ns, single"}};
  for (const double target_fpp : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9}) {
    absl::StatusOr<Figures> figures = Measure(
        extent, {"sliced", [&] { return MakeLayout("sliced", kWindow, target_fpp); }}, kWindow, target_fpp);
    if (!figures.ok()) return figures.status();
    table.rows.push_back({absl::StrFormat("%g", target_fpp), FigureText(figures->bits_per_id),
                          FppText(*figures), FigureText(figures->fpp_modelled), FigureText(figures->ns_batch),
                          FigureText(figures->ns_single)});
    // The comparison of the layouts has these two already.
    if (target_fpp != 1e-4 && target_fpp != 1e-6) all->push_back(*std::move(figures));
  }
  return table;
}

absl::StatusOr<Table> CompareGenerations(const Extent& extent) {
  constexpr double kBitsPerId = 32;
  constexpr double kTarget = 1e-4;  // for the number of probes
  Table table{.heading = "Generations: N = 6, 14 and 30 at 32 bits per id",
              .text = "",
              .columns = {"layout", "ids", "N", "bits per id", "FPP measured", "ns per id, batched",
                          "times N = 6", "ns, single"}};
  for (const double window : {1e6, 1e7}) {
    if (window > extent.largest_window) break;
    for (const bool sliced : {true, false}) {
      double first_ns = 0;
      for (const int generations : {8, 16, 32}) {
        const absl::StatusOr<Figures> figures =
            Measure(extent,
                    {sliced ? "sliced" : "published",
                     [&] {
                       return sliced ? MakeFixedSliced(generations, window, kBitsPerId)
                                     : MakePublished(generations, window, kBitsPerId, 7);
                     }},
                    window, kTarget);
        if (!figures.ok()) return figures.status();
        if (first_ns == 0) first_ns = figures->ns_batch;
        table.rows.push_back(
            {figures->layout + figures->fault, IdsText(window), absl::StrCat(generations - 2),
             FigureText(figures->bits_per_id), FppText(*figures), FigureText(figures->ns_batch),
             absl::StrFormat("%.2f", figures->ns_batch / first_ns), FigureText(figures->ns_single)});
      }
    }
  }
  return table;
}

}  // namespace lethe::bench
