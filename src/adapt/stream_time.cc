#include "src/adapt/stream_time.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lethe {
namespace {

using Window = std::array<int64_t, StreamTime::kWindow>;

// How many of the sorted values are below `value`. Multiplies instead of branching: which half a timestamp
// of a merged stream falls into cannot be foretold.
size_t CountBelow(const Window& sorted, int64_t value) {
  const int64_t* base = sorted.data();
  for (size_t size = sorted.size(); size > 1;) {
    const size_t half = size / 2;
    base += static_cast<size_t>(base[half - 1] < value) * half;
    size -= half;
  }
  return static_cast<size_t>(base - sorted.data()) + static_cast<size_t>(*base < value);
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
  if (full_) {
    Replace(oldest, time_ms);
  } else if (next_ == 0) {
    full_ = true;
    sorted_ = ring_;
    std::sort(sorted_.begin(), sorted_.end());
  }
  if (full_) now_ms_ = std::max(now_ms_, sorted_[kWindow / 2]);
  return now_ms_;
}

void StreamTime::StartAt(int64_t stream_time_ms) {
  if (stream_time_ms != kNoStreamTime) now_ms_ = Clamp(stream_time_ms);
}

void StreamTime::Replace(int64_t oldest, int64_t newest) {
  int64_t* const values = sorted_.data();
  const size_t from = CountBelow(sorted_, oldest);
  const size_t to = CountBelow(sorted_, newest);
  if (from < to) {
    // What is between moves one place down, over the oldest.
    std::memmove(values + from, values + from + 1, (to - 1 - from) * sizeof(int64_t));
    values[to - 1] = newest;
  } else {
    std::memmove(values + to + 1, values + to, (from - to) * sizeof(int64_t));
    values[to] = newest;
  }
}

}  // namespace lethe
