#include "src/stage/stream_time.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/assertion.h"

namespace lethe {
namespace {

// How far from its end of the window a timestamp is looked for place by place.
constexpr size_t kNear = 8;

// How many of kWindow ascending values are below `value`. Multiplies instead of branching: which half a
// timestamp of a merged stream falls into cannot be foretold.
size_t CountBelow(const int64_t* values, int64_t value) {
  const int64_t* base = values;
  for (size_t size = StreamTime::kWindow; size > 1;) {
    const size_t half = size / 2;
    base += static_cast<size_t>(base[half - 1] < value) * half;
    size -= half;
  }
  return static_cast<size_t>(base - values) + static_cast<size_t>(*base < value);
}

// The same, for a value that is likely among the lowest, or among the highest.
size_t CountBelowFromLowest(const int64_t* values, int64_t value) {
  for (size_t count = 0; count < kNear; ++count) {
    if (values[count] >= value) return count;
  }
  return CountBelow(values, value);
}
size_t CountBelowFromHighest(const int64_t* values, int64_t value) {
  for (size_t count = StreamTime::kWindow; count > StreamTime::kWindow - kNear; --count) {
    if (values[count - 1] < value) return count;
  }
  return CountBelow(values, value);
}

int64_t Clamp(int64_t time_ms) {
  return std::clamp(time_ms, -StreamTime::kFarthestMs, StreamTime::kFarthestMs);
}

}  // namespace

int64_t StreamTime::Observe(int64_t timestamp_ms) {
  if (timestamp_ms == kNoStreamTime) return now_ms_;
  const int64_t time_ms = Clamp(timestamp_ms);
  const int64_t oldest = std::exchange(ring_[next_], time_ms);
  next_ = next_ + 1 == kWindow ? 0 : next_ + 1;
  if (windows_ > 0) {
    Replace(oldest, time_ms);
    if (next_ == 0 && now_ms_ == kNoStreamTime && windows_ < kMostWindows) ++windows_;
  } else if (next_ == 0) {
    windows_ = 1;
    SortRing();
  }
  LETHE_DEBUG_ASSERT(windows_ == 0 || std::is_sorted(&sorted_[lowest_], &sorted_[lowest_] + kWindow));
  if (MayMove()) now_ms_ = std::max(now_ms_, std::min(sorted_[lowest_ + kWindow / 2], latest_ms_));
  return now_ms_;
}

bool StreamTime::MayMove() const {
  if (windows_ == 0) return false;
  if (now_ms_ != kNoStreamTime || windows_ == kMostWindows) return true;
  const int64_t* const values = sorted_.data() + lowest_;
  return values[kWindow * 3 / 4] - values[kWindow / 4] <= settled_ms_;
}

void StreamTime::StartAt(int64_t stream_time_ms) {
  if (stream_time_ms != kNoStreamTime) now_ms_ = Clamp(stream_time_ms);
}

int64_t StreamTime::AdvanceTo(int64_t stream_time_ms) {
  if (stream_time_ms != kNoStreamTime) {
    now_ms_ = std::max(now_ms_, std::min(Clamp(stream_time_ms), latest_ms_));
  }
  return now_ms_;
}

void StreamTime::SortRing() {
  lowest_ = 0;
  SortInto(ring_.data(), kWindow, sorted_.data());
}

void StreamTime::SortInto(const int64_t* times_ms, size_t size, int64_t* sorted) {
  for (size_t i = 0; i < size; ++i) {
    size_t place = i;
    for (; place > 0 && sorted[place - 1] > times_ms[i]; --place) sorted[place] = sorted[place - 1];
    sorted[place] = times_ms[i];
  }
}

void StreamTime::Replace(int64_t oldest, int64_t newest) {
  if (lowest_ + kWindow == kPlaces) {
    std::memmove(sorted_.data(), sorted_.data() + lowest_, kWindow * sizeof(int64_t));
    lowest_ = 0;
  }
  int64_t* const values = sorted_.data() + lowest_;
  if (oldest == values[0] && newest >= values[kWindow - 1]) {
    values[kWindow] = newest;
    ++lowest_;
    return;
  }
  Exchange(CountBelowFromLowest(values, oldest), CountBelowFromHighest(values, newest), newest);
}

// Removes the value at `from`, and inserts the newest before the value at `to`. Moves the values between
// them, or those around them: whichever are fewer.
void StreamTime::Exchange(size_t from, size_t to, int64_t newest) {
  int64_t* const values = sorted_.data() + lowest_;
  const auto move = [values](size_t target, size_t source, size_t count) {
    std::memmove(values + target, values + source, count * sizeof(int64_t));
  };
  if (from >= to) {
    move(to + 1, to, from - to);
    values[to] = newest;
  } else if (to - from <= kWindow / 2) {
    move(from, from + 1, to - 1 - from);
    values[to - 1] = newest;
  } else {
    // The lowest value is now at the second place, and there is room behind the highest.
    move(1, 0, from);
    move(to + 1, to, kWindow - to);
    values[to] = newest;
    ++lowest_;
  }
}

}  // namespace lethe
