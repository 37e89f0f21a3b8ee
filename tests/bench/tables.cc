#include "tests/bench/tables.h"

#include "absl/strings/str_format.h"

namespace lethe::bench {

std::vector<PlannedTable> AllTables(const Extent& extent) {
  std::vector<PlannedTable> tables;
  for (const double window : {1e5, 1e6, 1e7, 1e8}) {
    if (window > extent.largest_window) break;
    for (const double target_fpp : {1e-4, 1e-6}) {
      tables.push_back({absl::StrFormat("%s ids, target %g", IdsText(window), target_fpp),
                        [=](const Extent& e, std::vector<Figures>* all) {
                          return CompareLayouts(e, window, target_fpp, all);
                        }});
    }
  }
  // For those that have no figures for the file.
  const auto alone = [](absl::StatusOr<Table> (*measure)(const Extent&)) {
    return [measure](const Extent& e, std::vector<Figures>*) { return measure(e); };
  };
  tables.push_back({"The largest window", MeasureLargestWindow});
  tables.push_back({"Targets: compact, 10^6 ids", CompareTargets});
  tables.push_back(
      {"Stage: what it adds to the filter (10^6 ids, target 1e-06, one shard)", alone(MeasureStage)});
  tables.push_back({"Threads: ids per second on one partition, blocks of 512", alone(MeasureThreads)});
  tables.push_back({"Snapshots: a partition to a file and back, target 1e-06", alone(MeasureSnapshots)});
  tables.push_back(
      {"Stalls: single calls of the default filter, compact, target 1e-06", alone(MeasureStalls)});
  return tables;
}

}  // namespace lethe::bench
