// The totals of counters, restored when a partition is assigned.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_
#define LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Reads the totals of these partitions of one flow, after their committed offsets. A partition whose totals
// do not fit its commit fails. Unavailable: no broker answers; ask again. Cancelled: `go_on`
// returned false.
absl::Status RestoreTotals(const std::vector<Task*>& tasks, Cluster& cluster, const Clock& clock,
                           const GoOn& go_on);

// Why a partition stops whose commit says of so many totals, where there are none.
std::string LostTotals(const DaemonOptions& options, const CounterOptions& counter, int32_t partition,
                       int64_t keys);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_
