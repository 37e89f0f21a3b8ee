// The progress of a filter's rebuild, and the time left.
#ifndef LETHE_SRC_PIPELINE_RESTORE_RESTORE_PROGRESS_H_
#define LETHE_SRC_PIPELINE_RESTORE_RESTORE_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace lethe {

// Counts offsets, since the number of records is not known. The rate is a mean of the last seconds. Not
// thread-safe.
class RestoreProgress {
 public:
  RestoreProgress() = default;
  // Of offsets [from, to).
  RestoreProgress(int64_t from, int64_t to) : from_(from), to_(to), next_(from) {}

  // All offsets below `next` were read. True if it is time to log the progress.
  bool At(int64_t next, absl::Time now);

  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int64_t left() const { return to_ - next_; }
  // nullopt until a rate is known.
  std::optional<absl::Duration> time_left() const;
  // "offset 1200 of 5000, 24 %, 35000 offsets/s, some 12s left"
  std::string ToString() const;

  static constexpr absl::Duration kTellEvery = absl::Seconds(5);

 private:
  int64_t from_ = 0;
  int64_t to_ = 0;
  int64_t next_ = 0;
  double per_second_ = 0;
  int64_t sample_next_ = 0;
  absl::Time sample_time_ = absl::InfinitePast();
  absl::Time tell_at_ = absl::InfinitePast();
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_RESTORE_PROGRESS_H_
