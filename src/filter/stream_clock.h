// The clock of a filter.
#ifndef LETHE_SRC_FILTER_STREAM_CLOCK_H_
#define LETHE_SRC_FILTER_STREAM_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"
#include "lethe/filter.h"

namespace lethe {

// In milliseconds, the unit of stream time, rounded up; at most INT64_MAX.
inline int64_t WholeMilliseconds(absl::Duration duration) {
  return absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1)));
}

// Stream time as a filter sees it, cut into intervals of equal length that begin at the multiples of that
// length: so the bounds depend on stream time alone, and a filter that is rebuilt from the middle of a
// log refreshes when the first one did. Never goes back. Thread safety: none.
class StreamClock {
 public:
  // Stream times reach from the year -292 million to 292 million; an interval has at least 1 ms.
  explicit StreamClock(int64_t interval_ms) : interval_ms_(interval_ms) {}

  // Moves to `stream_time_ms` unless that is in the past or no time. Returns how many intervals began: 0
  // when the first time is seen.
  uint64_t AdvanceTo(int64_t stream_time_ms) {
    if (stream_time_ms <= now_ms_) return 0;  // kNoStreamTime is the lowest of all times
    const uint64_t begun = IntervalsUntil(stream_time_ms);
    if (now_ms_ == kNoStreamTime) first_ms_ = stream_time_ms;
    now_ms_ = stream_time_ms;
    interval_ = FloorDivide(stream_time_ms, interval_ms_);
    return begun;
  }

  // What AdvanceTo() would return.
  uint64_t IntervalsUntil(int64_t stream_time_ms) const {
    if (stream_time_ms <= now_ms_ || now_ms_ == kNoStreamTime) return 0;
    return static_cast<uint64_t>(FloorDivide(stream_time_ms, interval_ms_)) -
           static_cast<uint64_t>(interval_);
  }

  bool started() const { return now_ms_ != kNoStreamTime; }
  int64_t now_ms() const { return now_ms_; }
  int64_t interval_ms() const { return interval_ms_; }

  // The time since the beginning of the interval that began `intervals` before the current one, but not
  // more than has passed since the first time that was seen.
  absl::Duration Since(int64_t intervals) const {
    const __int128 begin = (static_cast<__int128>(interval_) - intervals) * interval_ms_;
    return SinceTime(begin > first_ms_ ? begin : first_ms_);
  }
  absl::Duration SinceStart() const { return SinceTime(first_ms_); }
  // Zero from times to come.
  absl::Duration SinceTime(__int128 begin_ms) const {
    const __int128 elapsed = now_ms_ - begin_ms;
    if (!started() || elapsed < 0) return absl::ZeroDuration();
    return elapsed > INT64_MAX ? absl::InfiniteDuration() : absl::Milliseconds(static_cast<int64_t>(elapsed));
  }

 private:
  static int64_t FloorDivide(int64_t x, int64_t y) { return x / y - (x % y < 0 ? 1 : 0); }

  const int64_t interval_ms_;
  int64_t now_ms_ = kNoStreamTime;
  int64_t first_ms_ = kNoStreamTime;
  int64_t interval_ = 0;  // the current one's number; interval 0 began at time 0
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_STREAM_CLOCK_H_
