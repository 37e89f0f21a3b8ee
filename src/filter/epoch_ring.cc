#include "src/filter/epoch_ring.h"

#include <algorithm>

namespace lethe {

EpochRing::EpochRing(absl::Duration horizon, int slices)
    : horizon_ms_(WholeMilliseconds(horizon)),
      slices_(slices),
      tags_(slices + 2),
      clock_(WholeMilliseconds(horizon / slices)) {}

bool EpochRing::AdvanceTo(int64_t stream_time_ms) {
  const bool had_time = clock_.started();
  const bool over = clock_.AdvanceTo(stream_time_ms) > 0;
  if (!had_time && clock_.started()) {
    // What came before the first time counts as of that time.
    for (Epoch& epoch : epochs_) epoch.end_ms = clock_.now_ms() + 1;
    current_end_ms_ = clock_.interval_end_ms();
    covered_since_ms_ = clock_.now_ms();
  }
  return over;
}

void EpochRing::Begin() {
  // Ids of the present millisecond may be in an epoch that ends within its slice.
  if (clock_.started()) {
    const int64_t after_now = clock_.now_ms() == INT64_MAX ? INT64_MAX : clock_.now_ms() + 1;
    epochs_[static_cast<size_t>(current_)].end_ms = std::min(current_end_ms_, after_now);
    current_end_ms_ = clock_.interval_end_ms();
  }
  current_ = current_ % tags_ + 1;
  epochs_[static_cast<size_t>(current_)] = Epoch();
  live_ |= uint64_t{1} << current_;
  ++live_count_;
  ++begun_;
  while (live_count_ > slices_ + 1 || IsPastHorizon(epochs_[static_cast<size_t>(Oldest())])) {
    if (!DropOldest()) break;
  }
}

bool EpochRing::DropOldest() {
  if (live_count_ == 1) return false;
  const int oldest = Oldest();
  Epoch& epoch = epochs_[static_cast<size_t>(oldest)];
  covered_since_ms_ = std::max(covered_since_ms_, epoch.end_ms);
  ids_ -= epoch.ids;
  epoch.ids = 0;
  live_ &= ~(uint64_t{1} << oldest);
  --live_count_;
  return true;
}

void EpochRing::NoteLost() {
  if (!clock_.started() || clock_.now_ms() == INT64_MAX) return;
  covered_since_ms_ = std::max(covered_since_ms_, clock_.now_ms() + 1);
}

bool EpochRing::IsPastHorizon(const Epoch& epoch) const {
  return clock_.started() && clock_.now_ms() - static_cast<__int128>(epoch.end_ms) >= horizon_ms_;
}

}  // namespace lethe
