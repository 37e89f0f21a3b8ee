#include "src/published/paper.h"

#include <algorithm>
#include <cmath>

#include "src/assertion.h"
#include "src/published/published_model.h"

namespace lethe {
namespace {

constexpr int64_t kSecondMs = 1000;
constexpr int64_t kAsksPerPeriod = 10;
// Of the target.
constexpr double kAloneShare = 0.3;
constexpr double kPairsShare = 0.6;
constexpr double kDownFrom = 0.1;
// Times the filters, by what their pairs may add up to in a horizon of steps up.
constexpr double kPairsFor = 3.5;
constexpr int64_t kFullPerFilters = 4;  // one full interval to so many filters calls for no step up

// What the checks of a filter add up to that has so many ids in each interval.
struct EvenFpp {
  double alone;  // the future, with one interval's ids, and the oldest generation, with two's
  double pairs;  // of kPairsFor times the filters
};

EvenFpp Even(double ids, int past, int64_t bits, int hashes) {
  const auto m = static_cast<double>(bits);
  // A position is set in both of a pair by the interval that they share, or by each one's own.
  const double touched = -std::expm1(-hashes * ids / m);
  const double pair = std::pow(touched + (1 - touched) * touched * touched, hashes);
  return {.alone = BloomFpp(ids, m, hashes) + BloomFpp(2 * ids, m, hashes),
          .pairs = kPairsFor * (past + 2) * pair};
}

}  // namespace

PaperPolicy::PaperPolicy(int64_t horizon_ms, double target_fpp, int64_t bits, int hashes)
    : horizon_ms_(horizon_ms), target_fpp_(target_fpp), bits_(bits), hashes_(hashes) {
  SetPast(past_);
}

PaperPolicy::Step PaperPolicy::Wanted(const Intervals& intervals, int64_t now_ms) {
  next_ms_ = now_ms + std::clamp<int64_t>(refresh_period_ms() / kAsksPerPeriod, 1, kSecondMs);
  if (IsNearTarget(intervals)) return Step::kUp;
  if (shown_ && past_ > 1 && IsFarUnderTarget(intervals)) return Step::kDown;
  return Step::kNone;
}

bool PaperPolicy::IsNearTarget(const Intervals& intervals) const {
  return kFullPerFilters * intervals.full > past_ + 2;
}

bool PaperPolicy::IsFarUnderTarget(const Intervals& intervals) const {
  if (kFullPerFilters * intervals.full > past_ + 1) return false;
  const double ids_after = static_cast<double>(intervals.most_ids) * (past_ + 1) / past_;
  const EvenFpp after = Even(ids_after, past_ - 1, bits_, hashes_);
  return after.alone + after.pairs <= kDownFrom * target_fpp_;
}

int PaperPolicy::PastAfterUp() const { return std::min(2 * (past_ + 2) - 2, kMostPast); }

void PaperPolicy::StepUp() { SetPast(PastAfterUp()); }

void PaperPolicy::StepDown() { SetPast(past_ - 1); }

void PaperPolicy::SetPast(int past) {
  past_ = past;
  LETHE_DEBUG_ASSERT(past_ >= 1 && past_ <= kMostPast && (past_ + 1) * refresh_period_ms() >= horizon_ms_);
  shown_ = false;
  int64_t few = 1;
  int64_t many = bits_ + 1;  // that many set nearly all
  while (many - few > 1) {
    const int64_t ids = few + (many - few) / 2;
    const EvenFpp even = Even(static_cast<double>(ids), past_, bits_, hashes_);
    const bool is_too_full = even.alone > kAloneShare * target_fpp_ || even.pairs > kPairsShare * target_fpp_;
    (is_too_full ? many : few) = ids;
  }
  most_ids_ = few;
}

}  // namespace lethe
