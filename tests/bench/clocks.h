// What time is told by.
#ifndef LETHE_TESTS_BENCH_CLOCKS_H_
#define LETHE_TESTS_BENCH_CLOCKS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace lethe::bench {

inline double SecondsBy(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The processor's time of this thread: what others do on the machine shows in the caches only.
inline double ThreadSeconds() { return SecondsBy(CLOCK_THREAD_CPUTIME_ID); }
// That of all threads of this process.
inline double ProcessSeconds() { return SecondsBy(CLOCK_PROCESS_CPUTIME_ID); }

// Time as it passes, in nanoseconds.
inline int64_t WallNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Counts of durations, told apart to a 32nd of their size.
class Latencies {
 public:
  void Add(int64_t nanos) {
    const auto value = static_cast<uint64_t>(std::max<int64_t>(nanos, 0));
    ++counts_[BucketOf(value)];
    ++total_;
    most_ = std::max(most_, value);
  }

  void Add(const Latencies& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
    most_ = std::max(most_, other.most_);
  }

  double total() const { return static_cast<double>(total_); }
  // Of all durations, the share that is above, but for a 32nd of its size.
  double ShareAbove(int64_t nanos) const {
    double above = 0;
    for (size_t i = BucketOf(static_cast<uint64_t>(nanos)) + 1; i < counts_.size(); ++i) {
      above += static_cast<double>(counts_[i]);
    }
    return total_ == 0 ? 0 : above / static_cast<double>(total_);
  }

  // In nanoseconds: at least that share of the durations is not above it, but for a 32nd of its size.
  double Percentile(double share) const {
    const double wanted = share * static_cast<double>(total_);
    double seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += static_cast<double>(counts_[i]);
      if (seen >= wanted) return static_cast<double>(FirstOf(i));
    }
    return Most();
  }
  double Most() const { return static_cast<double>(most_); }

 private:
  static constexpr size_t kParts = 32;

  static size_t BucketOf(uint64_t value) {
    if (value < kParts) return static_cast<size_t>(value);
    const auto shift = static_cast<size_t>(std::bit_width(value)) - 6;
    return shift * kParts + static_cast<size_t>(value >> shift);
  }
  static uint64_t FirstOf(size_t bucket) {
    if (bucket < 2 * kParts) return bucket;
    const size_t shift = bucket / kParts - 1;
    return static_cast<uint64_t>(bucket - shift * kParts) << shift;
  }

  std::array<uint64_t, 60 * kParts> counts_{};
  uint64_t total_ = 0;
  uint64_t most_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_CLOCKS_H_
