#include "tests/bench/tables.h"

#include "absl/strings/str_format.h"
#include "tests/bench/layouts.h"

namespace lethe::bench {

std::vector<PlannedTable> AllTables(const Extent& extent) {
  std::vector<PlannedTable> tables;
  const auto compare = [&](double window, double target_fpp) {
    tables.push_back({absl::StrFormat("%s ids, target %g", IdsText(window), target_fpp),
                      [=](const Extent& e, std::vector<Figures>* all) {
                        return CompareLayouts(e, window, target_fpp, all);
                      }});
  };
  for (const double window : {1e5, 1e6, 1e7}) {
    if (window > extent.largest_window) break;
    for (const double target_fpp : {1e-4, kDefaultTarget, 1e-9}) compare(window, target_fpp);
  }
  if (extent.largest_window >= 1e8) compare(1e8, kDefaultTarget);
  // For those that have no figures for the file.
  const auto alone = [](absl::StatusOr<Table> (*measure)(const Extent&)) {
    return [measure](const Extent& e, std::vector<Figures>*) { return measure(e); };
  };
  tables.push_back({"All layouts, target 1e-06", ListLayouts, true});
  tables.push_back({"Compact", ListCompact, true});
  tables.push_back(
      {"Stage: what it adds to the filter (10^6 ids, target 1e-06, one shard)", alone(MeasureStage), true});
  tables.push_back(
      {"Threads: million ids per second on one partition, 10^6 ids", alone(MeasureThreads), true});
  tables.push_back({"Snapshots: a partition to a file and back, target 1e-06", alone(MeasureSnapshots)});
  tables.push_back(
      {"Stalls: single calls of the default filter, compact, target 1e-06", alone(MeasureStalls)});
  return tables;
}

}  // namespace lethe::bench
