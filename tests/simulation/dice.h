// Random choices that a seed repeats.
#ifndef LETHE_TESTS_SIMULATION_DICE_H_
#define LETHE_TESTS_SIMULATION_DICE_H_

#include <cstdint>
#include <initializer_list>

#include "absl/time/time.h"

namespace lethe::simulation {

// SplitMix64: the same numbers on every machine, and nothing to set up.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  // Below `bound`, which is above 0. The bias of a small bound is far below what any test would see.
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound)); }
  // Both included.
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least + absl::Microseconds(Below(absl::ToInt64Microseconds(most - least) + 1));
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  template <class T>
  T Choose(std::initializer_list<T> from) {
    return from.begin()[Below(static_cast<int64_t>(from.size()))];
  }

 private:
  uint64_t state_;
};

}  // namespace lethe::simulation

#endif  // LETHE_TESTS_SIMULATION_DICE_H_
