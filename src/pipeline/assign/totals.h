// The totals of counters, restored when a partition is assigned.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_
#define LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lethe/counters.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Reads the totals of these partitions of one flow, after their committed offsets. A partition whose totals
// do not fit its commit fails. Unavailable: no broker answers; ask again. Cancelled: `go_on`
// returned false.
absl::Status RestoreTotals(const std::vector<Task*>& tasks, Cluster& cluster, const Clock& clock,
                           const GoOn& go_on);

// Looks for totals of the same input under another counter's name, such as a counter leaves that was renamed:
// readers of the topic add up all that is in it.
class OtherTotals {
 public:
  // Both outlive it.
  OtherTotals(const DaemonOptions& options, const CounterOptions& counter)
      : options_(options), counter_(counter) {}

  // The records of the counter's topic, those of a partition in their order.
  void Add(const CounterTotal& total, bool is_deleted);
  // What the topic has; empty: no others.
  std::string Text() const;
  static constexpr char kRemedy[] =
      "give the counter an output of its own, or its former name if it was renamed";

 private:
  const DaemonOptions& options_;
  const CounterOptions& counter_;
  std::map<std::string, std::string> found_;  // the record key of one total by counter
};

// Why a partition stops whose commit says of so many totals, where there are none.
std::string LostTotals(const DaemonOptions& options, const CounterOptions& counter, int32_t partition,
                       int64_t keys);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_TOTALS_H_
