// A stream of ids at a steady rate, of which some come twice.
#ifndef LETHE_TESTS_BENCH_TRAFFIC_H_
#define LETHE_TESTS_BENCH_TRAFFIC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lethe/filter.h"

namespace lethe::bench {

inline constexpr int64_t kHorizonMs = 100'000'000;
inline constexpr double kDuplicates = 0.05;  // of all ids

// splitmix64's finish: a bijection whose values look random.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline IdHash NumberedId(uint64_t number) {
  const uint64_t a = Mix(number);
  return {a, Mix(a ^ 0x1234567)};
}

// Not thread-safe.
class Traffic {
 public:
  // `window` new ids come in a horizon. Streams of different numbers have no id in common.
  explicit Traffic(double window, uint64_t stream = 0)
      : window_(window), first_(stream << 48), next_(first_) {}

  // From now on the rate is that many times the first one.
  void SetRate(double rate) { rate_ = rate; }

  // Fills `ids`. `is_copy`, of the same size, tells which of them came before within the horizon.
  void Next(std::vector<TimedId>* ids, std::vector<bool>* is_copy) {
    for (size_t i = 0; i < ids->size(); ++i) {
      const uint64_t random = Mix(~draws_++);
      // Not those at the very end of the horizon: stream time is in whole milliseconds.
      const auto reach =
          std::min(next_ - first_, static_cast<uint64_t>(window_ * std::min(rate_, 1.0) * 0.99));
      const bool copy = reach > 0 && static_cast<double>(random >> 40) < kDuplicates * (1 << 24);
      if (!copy) time_ += static_cast<double>(kHorizonMs) / window_ / rate_;
      const uint64_t number = copy ? next_ - 1 - Mix(random) % reach : next_++;
      (*ids)[i] = {NumberedId(number), static_cast<int64_t>(time_)};
      (*is_copy)[i] = copy;
    }
  }

  // Ids that never come.
  void Strangers(std::vector<IdHash>* ids) {
    for (IdHash& id : *ids) id = NumberedId(next_stranger_++ | uint64_t{1} << 63);
  }

  double window() const { return window_; }

 private:
  const double window_;
  const uint64_t first_;
  uint64_t next_;
  uint64_t next_stranger_ = 0;
  uint64_t draws_ = 0;
  double rate_ = 1;
  double time_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_TRAFFIC_H_
