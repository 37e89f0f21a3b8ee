#include "src/filter/compact_epochs.h"

#include <algorithm>
#include <type_traits>

#include "src/assertion.h"

namespace lethe {
namespace {

// Times beyond these count as these, and sums of times do not overflow.
constexpr int64_t kEarliestMs = -(int64_t{1} << 60);
constexpr int64_t kLatestMs = int64_t{1} << 60;

// Whether the newest epoch is over is checked first when it has lasted a part of the horizon, so that a burst
// takes few epochs, and then after each of these smaller parts.
constexpr int64_t kMostInHorizon = 100;
constexpr int64_t kChecksInHorizon = 1024;
// A new epoch leaves room for so many in the horizon that follows. More than kLeastInHorizon, so that a load
// that rises for long does not force the epochs after it to last their longest.
constexpr int kReservedInHorizon = 12;
static_assert(kReservedInHorizon >= CompactEpochs::kLeastInHorizon);
static_assert(kReservedInHorizon < CompactEpochs::kMost);

}  // namespace

CompactEpochs::CompactEpochs(int64_t horizon_ms)
    : horizon_ms_(horizon_ms), longest_ms_(std::max<int64_t>(1, horizon_ms / kLeastInHorizon)) {}

bool CompactEpochs::Advance(int64_t stream_time_ms) {
  const int64_t now_ms = std::clamp(stream_time_ms, kEarliestMs, kLatestMs);
  if (now_ms <= now_ms_) return false;
  if (now_ms_ == kNoStreamTime) {
    // Ids that came before the first time count as of that time.
    covered_since_ms_ = now_ms + (lost_before_time_ ? 1 : 0);
    for (int64_t number = span_.oldest; number <= span_.newest; ++number) {
      epochs_[CompactPlaceOf(number)].first_ms = epochs_[CompactPlaceOf(number)].last_ms = now_ms;
    }
    now_ms_ = now_ms;
    if (live() > 0) Newest().check_ms = NextCheck();
    return false;
  }
  now_ms_ = now_ms;
  bool forgot = false;
  while (live() > 0 && epochs_[CompactPlaceOf(span_.oldest)].last_ms + horizon_ms_ < now_ms) {
    ForgetOldest();
    forgot = true;
  }
  // It expires later if it gets more ids.
  const int64_t last_ms = live() > 0 ? epochs_[CompactPlaceOf(span_.oldest)].last_ms : now_ms;
  idle_until_ms_ = std::min(last_ms + horizon_ms_, kLatestMs);
  return forgot;
}

CompactSpan CompactEpochs::SpanAfter(int64_t stream_time_ms) const {
  CompactSpan span = span_;
  if (now_ms_ == kNoStreamTime) return span;  // all count as of the first time
  const int64_t now_ms = std::clamp(stream_time_ms, kEarliestMs, kLatestMs);
  while (span.oldest <= span.newest && (*this)[span.oldest].last_ms + horizon_ms_ < now_ms) ++span.oldest;
  return span;
}

int64_t CompactEpochs::NextCheck() const {
  if (now_ms_ == kNoStreamTime) return INT64_MAX;
  const int64_t parts = newest_->first_ms == now_ms_ ? kMostInHorizon : kChecksInHorizon;
  return std::min(now_ms_ + std::max<int64_t>(1, horizon_ms_ / parts), newest_->first_ms + longest_ms_);
}

// Under a steady load the horizon's ids times the horizon are kInHorizon^2 times those of an epoch.
bool CompactEpochs::HasItsShare() const {
  const auto lasted_ms = static_cast<double>(now_ms_ - newest_->first_ms);
  const auto held_for_ms = static_cast<double>(now_ms_ - (*this)[span_.oldest].first_ms);
  const auto horizon_ms = static_cast<double>(horizon_ms_);
  constexpr double kShares = kInHorizon * kInHorizon;
  return static_cast<double>(newest_->ids) * lasted_ms * held_for_ms * kShares >=
         static_cast<double>(ids_) * horizon_ms * horizon_ms;
}

bool CompactEpochs::HasRoomForNext() const {
  int64_t oldest = span_.oldest;  // that is live after each part of the horizon
  for (int64_t part = 0; part <= kReservedInHorizon; ++part) {
    const int64_t time_ms = now_ms_ + horizon_ms_ * part / kReservedInHorizon;
    while (oldest <= span_.newest && (*this)[oldest].last_ms + horizon_ms_ < time_ms) ++oldest;
    const int64_t newest = span_.newest + 1 + part;
    if (newest - oldest >= kMost) return false;
  }
  return true;
}

bool CompactEpochs::Begin(int64_t most_ids) {
  // Only at the memory limit, where epochs also end by count: the newest goes on for longer.
  if (live() == kMost) return false;
  if (live() > 0 && newest_->ids < most_ids && now_ms_ - newest_->first_ms < longest_ms_ &&
      !(HasItsShare() && HasRoomForNext())) {
    Newest().check_ms = NextCheck();
    return false;
  }
  if (live() > 0) Weigh();
  ++span_.newest;
  NoteNewest();
  LETHE_DEBUG_ASSERT(live() <= kMost);
  Newest() = {.first_ms = now_ms_, .last_ms = now_ms_};
  Newest().check_ms = NextCheck();
  return true;
}

void CompactEpochs::Renew(int64_t number) {
  LETHE_DEBUG_ASSERT(number >= span_.oldest && number < span_.newest);
  Weigh();
  Epoch& epoch = epochs_[CompactPlaceOf(number)];
  Epoch& newest = Newest();
  const double fpp = epoch.fpp / static_cast<double>(epoch.ids);
  epoch.fpp -= fpp;
  newest.fpp += fpp;
  --epoch.ids;
  --epoch.weighed_ids;
  ++newest.ids;
  ++newest.weighed_ids;
  newest.last_ms = now_ms_;
}

int64_t CompactEpochs::Drop(int64_t number, int64_t ids) {
  Weigh();
  Epoch& epoch = epochs_[CompactPlaceOf(number)];
  ids = std::min(ids, epoch.ids);
  if (ids == 0) return 0;
  epoch.fpp -= epoch.fpp / static_cast<double>(epoch.ids) * static_cast<double>(ids);
  epoch.ids -= ids;
  epoch.weighed_ids -= ids;
  ids_ -= ids;
  return ids;
}

void CompactEpochs::Weigh() {
  Epoch& newest = Newest();
  newest.fpp += static_cast<double>(newest.ids - newest.weighed_ids) * rate_;
  newest.weighed_ids = newest.ids;
}

void CompactEpochs::SetRate(double rate) {
  if (live() > 0) Weigh();
  rate_ = rate;
}

double CompactEpochs::Fpp(const CompactRates& risen, double least) const {
  double fpp = 0;
  for (int64_t number = span_.oldest; number <= span_.newest; ++number) {
    const Epoch& epoch = (*this)[number];
    const double own = epoch.fpp + risen[CompactPlaceOf(number)] +
                       static_cast<double>(epoch.ids - epoch.weighed_ids) * rate_;
    fpp += std::max(own, static_cast<double>(epoch.ids) * least);
  }
  return fpp;
}

void CompactEpochs::SetFpp(int64_t number, double fpp) {
  Epoch& epoch = epochs_[CompactPlaceOf(number)];
  epoch.fpp = fpp;
  epoch.weighed_ids = epoch.ids;
}

void CompactEpochs::Touch() { Newest().last_ms = now_ms_; }

void CompactEpochs::ForgetOldest() {
  LETHE_DEBUG_ASSERT(live() > 0);
  const Epoch& oldest = epochs_[CompactPlaceOf(span_.oldest)];
  if (oldest.last_ms == kNoStreamTime) {
    lost_before_time_ = true;
  } else {
    covered_since_ms_ = std::max(covered_since_ms_, oldest.last_ms + 1);
  }
  ids_ -= oldest.ids;
  LETHE_DEBUG_ASSERT(ids_ >= 0);
  ++span_.oldest;
  NoteNewest();
}

void CompactEpochs::NoteNewest() { newest_ = live() > 0 ? &epochs_[CompactPlaceOf(span_.newest)] : &none_; }

template <typename Self, typename Fields>
void CompactEpochs::Transfer(Self& self, Fields& fields) {
  fields.Time(self.now_ms_);
  fields.Time(self.covered_since_ms_);
  fields.Int(self.lost_before_time_, 0, 1);
  fields.Count(self.span_.newest);
  int64_t past_epochs = self.span_.newest - self.span_.oldest;
  fields.Int(past_epochs, -1, std::min<int64_t>(kMost, self.span_.newest) - 1);
  if constexpr (!std::is_const_v<Self>) self.span_.oldest = self.span_.newest - past_epochs;
  if (!fields.ok()) return;
  for (int64_t number = self.span_.oldest; number <= self.span_.newest; ++number) {
    auto& epoch = self.epochs_[CompactPlaceOf(number)];
    fields.Time(epoch.first_ms);
    fields.Time(epoch.last_ms);
    fields.Int(epoch.check_ms, -kFarthestSnapshotMs, INT64_MAX);
    fields.Count(epoch.ids);
  }
}

void CompactEpochs::Save(FieldWriter* fields) const { Transfer(*this, *fields); }

void CompactEpochs::AddUncounted(int64_t ids) {
  Newest().ids += ids;
  ids_ += ids;
  if (now_ms_ == kNoStreamTime) return;
  Newest().last_ms = std::max(Newest().last_ms, Newest().first_ms + longest_ms_ - 1);
}

bool CompactEpochs::Restore(FieldReader* fields) {
  Transfer(*this, *fields);
  if (!fields->ok()) return false;
  NoteNewest();
  int64_t last_ms = kNoStreamTime;
  for (int64_t number = span_.oldest; number <= span_.newest; ++number) {
    const Epoch& epoch = (*this)[number];
    if (epoch.first_ms > epoch.last_ms || epoch.last_ms < last_ms) return false;
    for (const int64_t time_ms : {epoch.first_ms, epoch.last_ms}) {
      if ((time_ms == kNoStreamTime) != (now_ms_ == kNoStreamTime)) return false;
    }
    last_ms = epoch.last_ms;
    ids_ += epoch.ids;
  }
  return (now_ms_ == kNoStreamTime) == (covered_since_ms_ == kNoStreamTime);
}

absl::Duration CompactEpochs::RefreshPeriod() const {
  if (live() < 2 || now_ms_ == kNoStreamTime) return absl::Milliseconds(horizon_ms_) / kInHorizon;
  return absl::Milliseconds((*this)[span_.newest].first_ms - (*this)[span_.newest - 1].first_ms);
}

absl::Duration CompactEpochs::Window() const {
  if (now_ms_ == kNoStreamTime || now_ms_ < covered_since_ms_) return absl::ZeroDuration();
  return absl::Milliseconds(now_ms_ - covered_since_ms_);
}

}  // namespace lethe
