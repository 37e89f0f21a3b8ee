// A topic of totals, as a feed reads it.
#ifndef LETHE_SRC_PIPELINE_TOTALS_TOTALS_LOG_H_
#define LETHE_SRC_PIPELINE_TOTALS_TOTALS_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// Committed records only. Belongs to one thread, but for HighWatermark().
class TotalsLog {
 public:
  virtual ~TotalsLog() = default;

  // Reads from these offsets on, by partition, until Close().
  virtual absl::Status Open(const std::map<int32_t, int64_t>& offsets) = 0;
  virtual void Close() = 0;
  // The next record, or an event in its place: the end of a partition, or an error (without `why` if it
  // passes); valid until the next call. nullopt: none came in this time.
  virtual std::optional<InputRecord> Poll(absl::Duration timeout) = 0;

  // The last stable offsets; without those of partitions that got no answer.
  virtual absl::StatusOr<std::map<int32_t, int64_t>> Ends(const std::vector<int32_t>& partitions) = 0;
  // By another thread than the one that reads.
  virtual absl::StatusOr<int64_t> HighWatermark(int32_t partition) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TOTALS_TOTALS_LOG_H_
