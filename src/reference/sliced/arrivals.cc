#include "src/reference/sliced/arrivals.h"

#include <algorithm>

namespace lethe {

Arrivals::Arrivals(int64_t horizon_ms)
    : slot_ms_(std::max<int64_t>(1, horizon_ms / kSlotsPerHorizon)),
      largest_step_ms_(std::max<int64_t>(1, horizon_ms / kStepsPerHorizon)) {}

void Arrivals::Add(int64_t count, int64_t now_ms) {
  total_ += count;
  if (start_ms_ == kNoStreamTime) start_ms_ = now_ms;
  const int64_t now = start_ms_ == kNoStreamTime ? 0 : now_ms - start_ms_;
  if (now > now_ms_) {
    MoveTo(count, now);
  } else {
    SlotAt(now_ms_ / slot_ms_) += static_cast<double>(count);
  }
}

// The ids are spread over the time that has passed since the last call.
void Arrivals::MoveTo(int64_t count, int64_t now_ms) {
  const int64_t step = std::min(now_ms - now_ms_, largest_step_ms_);
  step_ms_ = std::max(step, step_ms_ - step_ms_ / 8);
  const int64_t from = now_ms_ / slot_ms_;
  const int64_t to = now_ms / slot_ms_;
  now_ms_ = now_ms;
  if (from == to) {
    SlotAt(to) += static_cast<double>(count);
    return;
  }
  const double share = static_cast<double>(count) / static_cast<double>(to - from);
  for (int64_t slot = std::max(from + 1, to - kSlots + 1); slot <= to; ++slot) SlotAt(slot) = share;
}

double Arrivals::Expected(double ahead_ms) const {
  if (start_ms_ == kNoStreamTime) return static_cast<double>(total_);
  const auto slot_ms = static_cast<double>(slot_ms_);
  // What came in less than that at the beginning was all there was: to take it for what comes in all of that
  // time would let a new filter grow too late, and waste its columns on a few ids each. But the first moments
  // of a stream say nothing of a month.
  const auto now = static_cast<double>(now_ms_);
  const double since_start = std::max(now, ahead_ms / kForesight / kFirstMoments);
  const double finest = std::max(slot_ms, 2 * static_cast<double>(step_ms_));
  const double look_back = std::max(std::min(ahead_ms / kForesight, since_start), finest);
  const double expected = ahead_ms * Rate(look_back);
  if (now >= ahead_ms / kForesight) return expected;
  // A stream may have begun with a burst, which is over.
  return std::min(expected, ahead_ms * kUnrest * Rate(std::max(now / 2, finest)));
}

double Arrivals::Rate(double look_back_ms) const {
  const auto slot_ms = static_cast<double>(slot_ms_);
  const int64_t last = now_ms_ / slot_ms_;
  double seen = SlotAt(last);
  double left = look_back_ms - static_cast<double>(now_ms_ - last * slot_ms_);
  for (int64_t slot = last - 1; slot >= 0 && slot > last - kSlots && left > 0; --slot, left -= slot_ms) {
    seen += SlotAt(slot) * std::min(1.0, left / slot_ms);
  }
  return seen / look_back_ms;
}

}  // namespace lethe
