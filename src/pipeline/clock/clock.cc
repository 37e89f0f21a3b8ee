#include "src/pipeline/clock/clock.h"

#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe {
namespace {

class OfTheSystem final : public Clock {
 public:
  absl::Time Steady() const override { return SteadyNow(); }
  absl::Time Wall() const override { return absl::Now(); }
  bool WaitFor(const StopFlag& stop, absl::Duration duration) const override {
    return stop.WaitFor(duration);
  }
};

}  // namespace

const Clock& SystemClock() {
  static const OfTheSystem clock;
  return clock;
}

}  // namespace lethe
