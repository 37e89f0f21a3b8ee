// The time of a clock that nobody sets.
#ifndef LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_
#define LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace lethe {

// For whatever is due, or is to end, some time from now: absl::Now() may be set back by an hour, and what
// waits for it would wait for as long. It says nothing about the date, and is only to be compared with
// itself; the times of records, of snapshots and of what is shown are absl::Now().
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_
