// The thread of one lane of a process, as the interfaces see it.
#ifndef LETHE_TESTS_SIMULATION_THREAD_H_
#define LETHE_TESTS_SIMULATION_THREAD_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// The time of a process: its own wall clock may be wrong.
class ProcessClock final : public Clock {
 public:
  ProcessClock(const World& world, absl::Time begin, absl::Duration ahead)
      : world_(world), begin_(begin), ahead_(ahead) {}

  absl::Time Steady() const override { return begin_ + world_.now(); }
  absl::Time Wall() const override { return begin_ + ahead_ + world_.now(); }
  bool WaitFor(const StopFlag& stop, absl::Duration duration) const override {
    if (!stop.requested()) wait(duration);
    return stop.requested();
  }

  // Set before anything waits.
  std::function<void(absl::Duration)> wait;

 private:
  const World& world_;
  const absl::Time begin_;
  const absl::Duration ahead_;
};

// Between any two calls of an interface others may run, the process may stand still, and it may die.
class Thread {
 public:
  explicit Thread(World& world) : world_(world) {}

  World& world() { return world_; }
  void SetActor(Actor* actor) { actor_ = actor; }
  Actor& actor() { return *actor_; }
  // Every call begins and ends with this.
  void Pass() {
    if (actor_ == nullptr) return;  // before it runs, or after
    actor_->Live();
    ++calls_;
    if (dies_at_call_ >= 0 && calls_ >= dies_at_call_) {
      is_dead_ = true;
      world_.After(absl::ZeroDuration(), on_death_);
      throw Death();
    }
    if (world_.dice().OneIn(kOthersRunOneIn)) actor_->Sleep(absl::Microseconds(world_.dice().Below(3000)));
  }
  // Without an actor, as a test calls the interfaces, all others run meanwhile.
  void Sleep(absl::Duration duration) {
    if (actor_ != nullptr) return actor_->Sleep(duration);
    bool is_over = false;
    world_.After(duration, [&is_over] { is_over = true; });
    while (!is_over) world_.Step();
  }
  void Wake() {
    if (actor_ != nullptr) actor_->Wake();
  }

  // It dies at the call that is so many from now.
  void DieIn(int64_t calls, std::function<void()> on_death) {
    dies_at_call_ = calls_ + calls;
    on_death_ = std::move(on_death);
  }
  bool is_dead() const { return is_dead_; }
  bool is_running() const { return actor_ != nullptr && actor_->is_running(); }
  int64_t calls() const { return calls_; }

 private:
  static constexpr int64_t kOthersRunOneIn = 8;

  World& world_;
  Actor* actor_ = nullptr;
  int64_t calls_ = 0;
  int64_t dies_at_call_ = -1;
  bool is_dead_ = false;
  std::function<void()> on_death_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_THREAD_H_
