// A clock that nobody sets.
#ifndef LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_
#define LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_

#include <atomic>
#include <chrono>

#include "absl/time/time.h"

namespace lethe {

// For timeouts and intervals where there is no Clock (clock.h): absl::Now() may be set back by an hour, and
// would stretch them. Compare it only with itself.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// A thread beats in each of its loops, also while it waits for a broker: without a beat it hangs.
// Thread-safe.
class Heartbeat {
 public:
  void Beat() { last_ = Now(); }
  absl::Duration SinceLast() const { return absl::FromChrono(Now() - last_.load()); }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::duration Now() { return Clock::now().time_since_epoch(); }
  std::atomic<Clock::duration> last_{Now()};
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_STEADY_TIME_H_
