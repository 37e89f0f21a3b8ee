// A clock that a test sets.
#ifndef LETHE_TESTS_SUPPORT_MANUAL_CLOCK_H_
#define LETHE_TESTS_SUPPORT_MANUAL_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"

namespace lethe::test {

// Time stands still but for Pass() and for waits, which take no time of the machine. Thread safety: none.
class ManualClock final : public Clock {
 public:
  void Pass(absl::Duration time) { now_ += time; }

  absl::Time Steady() const override { return now_; }
  absl::Time Wall() const override { return now_; }
  bool WaitFor(const StopFlag& stop, absl::Duration duration) const override {
    if (!stop.requested()) now_ += duration;
    return stop.requested();
  }
  uint32_t Random() const override { return random_ += 1 << 10; }

 private:
  mutable uint32_t random_ = 0;
  mutable absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_MANUAL_CLOCK_H_
