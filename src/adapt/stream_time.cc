#include "src/adapt/stream_time.h"

#include <algorithm>
#include <cstring>

namespace lethe {
namespace {

// How many of the first `size` values are below `value`. Without branches that depend on the data: the
// timestamps of a live stream are almost sorted, those of a merged one are not, and both should be fast.
size_t CountBelow(const int64_t* values, size_t size, int64_t value) {
  const int64_t* base = values;
  while (size > 1) {
    const size_t half = size / 2;
    base += base[half - 1] < value ? half : 0;
    size -= half;
  }
  return static_cast<size_t>(base - values) + (size == 1 && *base < value ? 1 : 0);
}

int64_t Clamp(int64_t time_ms) {
  return std::clamp(time_ms, -StreamTime::kFarthestMs, StreamTime::kFarthestMs);
}

}  // namespace

int64_t StreamTime::Observe(int64_t timestamp_ms) {
  if (timestamp_ms == kNoStreamTime) return now_ms_;
  const int64_t time_ms = Clamp(timestamp_ms);
  if (count_ < kWindow) {
    int64_t* const place = sorted_.data() + CountBelow(sorted_.data(), count_, time_ms);
    std::copy_backward(place, sorted_.data() + count_, sorted_.data() + count_ + 1);
    *place = time_ms;
    ++count_;
  } else {
    Replace(ring_[next_], time_ms);
  }
  ring_[next_] = time_ms;
  next_ = next_ + 1 == kWindow ? 0 : next_ + 1;
  if (count_ == kWindow) now_ms_ = std::max(now_ms_, sorted_[kWindow / 2]);
  return now_ms_;
}

void StreamTime::StartAt(int64_t stream_time_ms) {
  if (stream_time_ms != kNoStreamTime) now_ms_ = std::max(now_ms_, Clamp(stream_time_ms));
}

void StreamTime::Replace(int64_t oldest, int64_t newest) {
  int64_t* const values = sorted_.data();
  const size_t from = CountBelow(values, kWindow, oldest);
  const size_t to = CountBelow(values, kWindow, newest);
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
