// The time, and who runs when, for all of the pipeline.
#ifndef LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_
#define LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/clock/wake_up.h"

namespace lethe {

// Of Clock::Start().
class StartedThread {
 public:
  // It has ended.
  virtual ~StartedThread() = default;

  // Returns when it has ended.
  virtual void Join() = 0;
};

// Where time, threads and chance come from: the system, or a test that plays days in a moment, and decides
// who runs when. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // For timeouts and intervals; nobody sets it. Compare it only with itself.
  virtual absl::Time Steady() const = 0;
  // For times of records, snapshots and reports. It may be set back by an hour.
  virtual absl::Time Wall() const = 0;
  // Waits for the request to stop, at most `duration`; whether it came.
  virtual bool WaitFor(const StopFlag& stop, absl::Duration duration) const = 0;

  // Waits to be woken, also by one who did that since the last wait, at most `duration`; whether it was.
  virtual bool Await(WakeUp& wake_up, absl::Duration duration) const { return wake_up.WaitFor(duration); }
  // Runs `work` in a thread of its own.
  virtual std::unique_ptr<StartedThread> Start(std::function<void()> work) const;
  // Nobody can foresee it.
  virtual uint32_t Random() const;
};

const Clock& SystemClock();

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_CLOCK_H_
