// The last ten minutes of figures, for the page's curves.
#ifndef LETHE_SRC_CLI_SERVICE_STATUS_HISTORY_H_
#define LETHE_SRC_CLI_SERVICE_STATUS_HISTORY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "src/pipeline/report/report.h"
#include "src/sync/mutex.h"

namespace lethe {

// A partition at a moment.
struct StatusSample {
  absl::Time time;
  int64_t unique = 0;  // so far, as the duplicates
  int64_t duplicate = 0;
  double fpp_estimated = 0;
  int64_t ids = 0;
  int64_t memory_bytes = 0;  // of the filter
  int past_generations = 0;
  absl::Duration refresh_period = absl::ZeroDuration();
};

// Bounded: kSamples of kMostPartitions are some 8 MB, and those of a dozen partitions 90 KB. Of more
// partitions those with the lowest numbers are kept. Thread-safe.
class StatusHistory {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(5);
  static constexpr size_t kSamples = 120;
  static constexpr size_t kMostPartitions = 1000;

  // A partition that is not in the report is forgotten; if it comes back, its counts start at 0.
  void Add(const DaemonReport& report, absl::Time now);

  // Oldest first.
  std::vector<StatusSample> Of(const std::string& topic, int32_t partition) const;

 private:
  using Key = std::pair<std::string, int32_t>;  // topic and partition

  mutable Mutex mutex_;
  std::map<Key, std::deque<StatusSample>> samples_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_STATUS_HISTORY_H_
