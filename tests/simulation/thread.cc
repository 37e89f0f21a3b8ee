#include "tests/simulation/thread.h"

#include <algorithm>

#include "absl/cleanup/cleanup.h"

namespace lethe::simulation {
namespace {

class ThreadOfProcess final : public StartedThread {
 public:
  explicit ThreadOfProcess(std::function<void()> join) : join_(std::move(join)) {}
  void Join() override { join_(); }

 private:
  const std::function<void()> join_;
};

}  // namespace

std::unique_ptr<StartedThread> ProcessClock::Start(std::function<void()> work) const {
  Actor& actor = *actors_.emplace_back(std::make_unique<Actor>(world_, std::move(work), [this] { Look(); }));
  actor.SetName(name_);
  return std::make_unique<ThreadOfProcess>([this, turn = &actor.turn()] {
    Wait([turn] { return turn->actor == nullptr || turn->actor->has_ended(); }, absl::InfiniteDuration());
  });
}

bool ProcessClock::Wait(absl::FunctionRef<bool()> has_come, absl::Duration duration) const {
  Actor* const self = world_.running();
  if (self == nullptr || self->is_dying() || has_come()) return has_come();
  const absl::Duration end = world_.now() + std::max(duration, absl::ZeroDuration());
  Waiting waiting = {self, has_come};
  waiting_.push_back(&waiting);
  const absl::Cleanup done = [&] { std::erase(waiting_, &waiting); };
  do {
    waiting.is_woken = false;
    self->Sleep(end - world_.now());
  } while (!has_come() && world_.now() < end);
  return has_come();
}

void ProcessClock::Look() const {
  for (Waiting* each : waiting_) {
    if (each->is_woken || each->actor->is_running() || !each->has_come()) continue;
    each->is_woken = true;
    each->actor->Wake();
  }
}

void ProcessClock::Freeze(absl::Duration duration) const {
  for (const auto& actor : actors_) actor->Freeze(duration);
}

void ProcessClock::Kill() {
  for (auto& actor : actors_) actor.reset();
}

void Thread::Pass() {
  Actor* const running = world_.running();
  if (running == nullptr || running->is_dying()) return;  // before it runs, or after
  running->Live();
  turn_ = &running->turn();
  ++calls_;
  if (dies_at_call_ >= 0 && calls_ >= dies_at_call_ && !std::exchange(is_dead_, true)) {
    world_.After(absl::ZeroDuration(), on_death_);
    running->Die();
  }
  if (world_.dice().OneIn(kOthersRunOneIn)) running->Sleep(absl::Microseconds(world_.dice().Below(3000)));
}

void Thread::Sleep(absl::Duration duration) {
  if (Actor* const running = world_.running(); running != nullptr) return running->Sleep(duration);
  bool is_over = false;
  world_.After(duration, [&is_over] { is_over = true; });
  while (!is_over) world_.Step();
}

}  // namespace lethe::simulation
