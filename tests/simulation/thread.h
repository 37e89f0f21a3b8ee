// The threads of a process, and its time.
#ifndef LETHE_TESTS_SIMULATION_THREAD_H_
#define LETHE_TESTS_SIMULATION_THREAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "tests/simulation/world.h"

namespace lethe::simulation {

// What a process has for a system: its threads are actors, and its own wall clock may be wrong, and jumps.
class ProcessClock final : public Clock {
 public:
  // `name` is the process's, for people.
  ProcessClock(World& world, absl::Time begin, absl::Duration ahead, std::string name = "")
      : world_(world), begin_(begin), ahead_(ahead), name_(std::move(name)) {}

  absl::Time Steady() const override { return begin_ + world_.now(); }
  absl::Time Wall() const override { return begin_ + ahead_ + world_.clocks_ahead() + world_.now(); }
  bool WaitFor(const StopFlag& stop, absl::Duration duration) const override {
    return Wait([&] { return stop.requested(); }, duration);
  }
  bool Await(WakeUp& wake_up, absl::Duration duration) const override {
    return Wait([&] { return wake_up.is_woken(); }, duration) && wake_up.WaitFor(absl::ZeroDuration());
  }
  std::unique_ptr<StartedThread> Start(std::function<void()> work) const override;
  uint32_t Random() const override { return static_cast<uint32_t>(world_.dice().Next()); }

  // Wakes those for which something has come that they wait for. Called where another than the process's
  // threads may have made it come.
  void Look() const;
  // No thread runs for so long.
  void Freeze(absl::Duration duration) const;
  // All threads die, each where it sleeps; from then on nothing waits.
  void Kill();

 private:
  struct Waiting {
    Actor* actor;
    absl::FunctionRef<bool()> has_come;
    bool is_woken = false;
  };
  bool Wait(absl::FunctionRef<bool()> has_come, absl::Duration duration) const;

  World& world_;
  const absl::Time begin_;
  const absl::Duration ahead_;
  const std::string name_;
  mutable std::vector<std::unique_ptr<Actor>> actors_;
  mutable std::vector<Waiting*> waiting_;
};

// The thread of one lane of a process, or of its other clients, as the interfaces see it: between any two
// calls others may run, the process may stand still, and it may die.
class Thread {
 public:
  explicit Thread(World& world) : world_(world) {}

  World& world() { return world_; }
  // Every call begins and ends with this.
  void Pass();
  // Without an actor, as a test calls the interfaces, all others run meanwhile.
  void Sleep(absl::Duration duration);
  // The actor that has called last.
  void Wake() {
    if (Actor* const caller = actor(); caller != nullptr) caller->Wake();
  }
  void Freeze(absl::Duration duration) {
    if (Actor* const caller = actor(); caller != nullptr) caller->Freeze(duration);
  }

  // It dies at the call that is so many from now.
  void DieIn(int64_t calls, std::function<void()> on_death) {
    dies_at_call_ = calls_ + calls;
    on_death_ = std::move(on_death);
  }
  bool is_dead() const { return is_dead_; }

 private:
  static constexpr int64_t kOthersRunOneIn = 8;

  Actor* actor() const { return turn_ == nullptr ? nullptr : turn_->actor; }

  World& world_;
  Turn* turn_ = nullptr;
  int64_t calls_ = 0;
  int64_t dies_at_call_ = -1;
  bool is_dead_ = false;
  std::function<void()> on_death_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_THREAD_H_
