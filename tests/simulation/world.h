// The time of a simulation, and who runs when.
#ifndef LETHE_TESTS_SIMULATION_WORLD_H_
#define LETHE_TESTS_SIMULATION_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/fiber.h"

namespace lethe::simulation {

class Actor;

// Whose turn it is. A resumption that was told before the last sleep began is of no effect.
struct Turn {
  Actor* actor;  // null: it is no more
  uint64_t sleep = 0;
  absl::Duration resumes_at = absl::InfiniteDuration();  // the first time that was told in this sleep
};

// Things that happen one after the other, in one thread, by the order of their times. The dice decide how
// long everything takes, and so who comes first. Not thread-safe.
class World {
 public:
  // `keeps_log`: else Say() says nothing, which is faster.
  World(uint64_t seed, bool keeps_log) : dice_(seed), keeps_log_(keeps_log) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Since the beginning.
  absl::Duration now() const { return absl::Microseconds(now_us_); }
  Dice& dice() { return dice_; }

  void After(absl::Duration delay, std::function<void()> what);
  // What the clocks of all machines show is moved by so much from now on.
  void MoveClocks(absl::Duration by) { clocks_ahead_ += by; }
  absl::Duration clocks_ahead() const { return clocks_ahead_; }
  // Nothing, now. It counts as a thing that happens.
  void Pause() { soon_.push_back({next_number_++, {}}); }
  // Lets the next thing happen. False: nothing will ever happen.
  bool Step();

  // What happens, a line each.
  template <class... Args>
  void Say(const Args&... args) {
    ++said_;
    if (keeps_log_) absl::StrAppend(&log_, Stamp(), args..., "\n");
  }
  // Lasts as long as this: what is still to come may be after the actor's end.
  Turn& AddTurn(Actor* actor) { return turns_.emplace_back(Turn{actor}); }
  // The actor that runs now; null: none does.
  Actor* running() const { return running_; }
  bool keeps_log() const { return keeps_log_; }
  const std::string& log() const { return log_; }
  int64_t said() const { return said_; }

 private:
  // Things of one time come in the order in which they were told.
  struct Later {
    int64_t at_us;
    uint64_t number;
    size_t place;  // in `whats_`: a heap moves its entries again and again
    bool operator<(const Later& other) const {
      return at_us != other.at_us ? at_us > other.at_us : number > other.number;
    }
  };
  struct Soon {
    uint64_t number;
    std::function<void()> what;  // null: nothing
  };
  std::string Stamp() const;

  Dice dice_;
  const bool keeps_log_;
  int64_t now_us_ = 0;
  absl::Duration clocks_ahead_;
  uint64_t next_number_ = 0;
  std::deque<Soon> soon_;     // at the present time
  std::vector<Later> later_;  // a heap
  std::vector<std::function<void()>> whats_;
  std::vector<size_t> free_;  // places in it
  std::deque<Turn> turns_;
  std::string log_;
  int64_t said_ = 0;
  friend class Actor;
  Actor* running_ = nullptr;
};

// Thrown where an actor dies. Of no standard type: nobody else catches it.
struct Death {};

// One that runs by itself, on a fiber: a thread of a process. It ends by itself, or it dies. What it is told
// by others never runs it at once.
class Actor {
 public:
  // `after_turn` is called whenever it has run, by who runs then.
  Actor(World& world, std::function<void()> work, std::function<void()> after_turn = nullptr);
  // Dies, where it has not ended.
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  // Called by itself: others run for so long, or until it is woken. Throws Death; where it is dying already,
  // as in the destructors on its stack, it does nothing.
  void Sleep(absl::Duration duration);
  // Dies here, if it is to die.
  void Live() {
    if (dies_ && !std::exchange(is_dying_, true)) throw Death();
  }
  bool is_dying() const { return is_dying_; }
  // Dies here.
  void Die() {
    is_dying_ = true;
    throw Death();
  }
  Turn& turn() { return turn_; }
  // Of its process, for people.
  void SetName(std::string name) { name_ = std::move(name); }
  const std::string& name() const { return name_; }

  // Called by others.
  void Wake();
  // It does not run for so long, and then goes on as if nothing had happened.
  void Freeze(absl::Duration duration);
  bool is_frozen() const { return world_.now() < frozen_until_; }
  bool has_ended() const { return fiber_.has_ended(); }
  bool is_running() const { return fiber_.is_running(); }

 private:
  // Goes on where it sleeps, if it still does.
  void ResumeAfter(absl::Duration delay);
  void Run();

  World& world_;
  Fiber fiber_;
  const std::function<void()> after_turn_;
  bool dies_ = false;
  bool is_dying_ = false;
  absl::Duration frozen_until_;
  std::string name_;
  Turn& turn_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_WORLD_H_
