#include "src/pipeline/clock/clock.h"

#include <random>
#include <thread>
#include <utility>

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

class ThreadOfTheSystem final : public StartedThread {
 public:
  explicit ThreadOfTheSystem(std::function<void()> work) : thread_(std::move(work)) {}
  void Join() override { thread_.join(); }

 private:
  std::thread thread_;
};

}  // namespace

std::unique_ptr<StartedThread> Clock::Start(std::function<void()> work) const {
  return std::make_unique<ThreadOfTheSystem>(std::move(work));
}

uint32_t Clock::Random() const { return std::random_device()(); }

const Clock& SystemClock() {
  static const OfTheSystem clock;
  return clock;
}

}  // namespace lethe
