// The tables of the benchmark, each measured when it is asked for.
#ifndef LETHE_TESTS_BENCH_TABLES_H_
#define LETHE_TESTS_BENCH_TABLES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/report.h"
#include "tests/bench/steady.h"

namespace lethe::bench {

struct Extent {
  double largest_window = 1e8;
  bool quick = false;  // fewer probes
  BenchProgress* progress = nullptr;
};

// A table as it is known before it is measured. While the progress plans, `measure` announces its steps and
// measures nothing; later it adds to `all` what belongs into the file of figures. The heading is put over the
// table by the caller.
struct PlannedTable {
  std::string heading;
  std::function<absl::StatusOr<Table>(const Extent& extent, std::vector<Figures>* all)> measure;
  bool in_readme = false;
};

// All tables, in their order.
std::vector<PlannedTable> AllTables(const Extent& extent);

// All layouts for so many ids and a target. Of what was measured so: all layouts at the default target with
// 10^6 ids, and their times with other numbers; and compact.
absl::StatusOr<Table> CompareLayouts(const Extent& extent, double window, double target_fpp,
                                     std::vector<Figures>* all);
absl::StatusOr<Table> ListLayouts(const Extent& extent, std::vector<Figures>* all);
absl::StatusOr<Table> ListCompact(const Extent& extent, std::vector<Figures>* all);

// Single calls of the default filter while it grows from nothing, holds its size, and shrinks.
absl::StatusOr<Table> MeasureStalls(const Extent& extent);

// Partitions saved to a file and loaded from it.
absl::StatusOr<Table> MeasureSnapshots(const Extent& extent);

// What the stage adds to the filter, and what threads and shards make of it.
absl::StatusOr<Table> MeasureStage(const Extent& extent);
absl::StatusOr<Table> MeasureThreads(const Extent& extent);

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_TABLES_H_
