#include "tests/bench/contender.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe::bench {
namespace {

// What a plan runs through, at most.
constexpr double kMostHorizons = 7;

// Those that take a cache miss or more for each bit.
bool IsSlow(const std::string& name) { return name == "published" || name == "apbf"; }

// For the progress: what it takes on a machine with two processors and 32 MiB of last-level cache, roughly.
double ExpectedSeconds(const std::string& name, double window, double target_fpp, const Plan& plan) {
  double nanos = 100;
  if (name == "compact") nanos = 50;
  if (name == "exact" || name == "exact-engine") nanos = 230;
  if (IsSlow(name)) nanos = 900;
  if (name == "RocksDB") nanos = 20'000;
  nanos *= window > 5e7 ? 1 : window > 5e6 ? 0.4 : 0.15;
  const double calls = plan.warm + plan.batched + 1.5 * plan.single + 2 * plan.each_timed + 0.15;
  const double probes = std::min(plan.most_probes, plan.false_hits / target_fpp);
  return (calls * window + 0.7 * probes) * (nanos + 12) * 1e-9;
}

}  // namespace

// Fewer rounds where each is long. After a warm-up each generation has been filled once, and in the apbf each
// id has gone through all slices.
Plan PlanFor(const Extent& extent, const std::string& name, double window, double target_fpp) {
  Plan plan;
  if (window > 5e6) plan = {.warm = 1.5, .batched = 1, .single = 0.5, .each_timed = 0.5};
  if (window > 5e7) plan = {.warm = 1.25, .batched = 0.5, .single = 0.25, .each_timed = 0.25};
  if (name == "RocksDB") plan = {.warm = 2, .batched = 0.5, .single = 0.25, .each_timed = 0.25};
  plan.false_hits = extent.quick || window > 5e6 ? 100 : 400;
  const double most = IsExact(name) || name == kFloor || target_fpp < 1e-8 ? 1e6
                      : extent.quick                                       ? 2e7
                      : window > 5e6 && IsSlow(name)                       ? 5e7
                                                                           : 6e8;
  plan.most_probes = std::min(most, 2 * plan.false_hits / target_fpp);
  return plan;
}

absl::StatusOr<Figures> Measure(const Extent& extent, const Contender& contender, double window,
                                double target_fpp, const Plan& plan) {
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
  } else if (contender.name != kFloor && figures.missed > 20 + 2 * figures.fpp * copies) {
    figures.fault = absl::StrFormat(" (FAULT: %.0f copies passed)", figures.missed);
  }
  return figures;
}

void NoteFault(const Figures& figures, Table* table) {
  if (!figures.fault.empty()) table->faults.push_back(absl::StrCat(figures.layout, figures.fault));
}

}  // namespace lethe::bench
