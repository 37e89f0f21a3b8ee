// Whether a thread still goes round.
#ifndef LETHE_SRC_PIPELINE_CLOCK_HEARTBEAT_H_
#define LETHE_SRC_PIPELINE_CLOCK_HEARTBEAT_H_

#include <atomic>
#include <chrono>

#include "absl/time/time.h"

namespace lethe {

// The thread beats wherever it goes round, also while it waits for a broker: so what does not beat hangs.
// Thread-safe. The clock is one that nobody sets.
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

#endif  // LETHE_SRC_PIPELINE_CLOCK_HEARTBEAT_H_
