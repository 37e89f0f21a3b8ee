// The time, for all of the pipeline.
#ifndef LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_
#define LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_

#include "absl/time/time.h"
#include "src/pipeline/clock/stop_flag.h"

namespace lethe {

// Where the time comes from: the system, or a test that plays days in a moment. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // For timeouts and intervals; nobody sets it. Compare it only with itself.
  virtual absl::Time Steady() const = 0;
  // For times of records, snapshots and reports. It may be set back by an hour.
  virtual absl::Time Wall() const = 0;
  // Waits for the request to stop, at most `duration`; whether it came.
  virtual bool WaitFor(const StopFlag& stop, absl::Duration duration) const = 0;
};

const Clock& SystemClock();

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_
