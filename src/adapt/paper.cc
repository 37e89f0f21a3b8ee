#include "src/adapt/paper.h"

#include <algorithm>
#include <cmath>

namespace lethe {
namespace {

constexpr int64_t kSecondMs = 1000;
constexpr int64_t kAsksPerPeriod = 10;
constexpr double kUpFrom = 0.9;    // of the target
constexpr double kDownFrom = 0.1;  // likewise

// Equation 3 for a future and N + 1 other generations that are equally full.
double EvenFpp(double future, double other, int past) {
  return -std::expm1(std::log1p(-future) + past * std::log1p(-other * other) + std::log1p(-other));
}

}  // namespace

PaperPolicy::PaperPolicy(int64_t horizon_ms, double target_fpp)
    : horizon_ms_(horizon_ms), target_fpp_(target_fpp) {}

PaperPolicy::Step PaperPolicy::Wanted(absl::Span<const double> generation_fpp, int64_t now_ms) {
  next_ms_ = now_ms + std::clamp<int64_t>(refresh_period_ms() / kAsksPerPeriod, 1, kSecondMs);
  if (EvenFpp(generation_fpp[0], generation_fpp[1], past_) >= kUpFrom * target_fpp_) return Step::kUp;
  const double fullest = *std::max_element(generation_fpp.begin() + 1, generation_fpp.end());
  const bool is_low = EvenFpp(generation_fpp[0], fullest, past_) <= kDownFrom * target_fpp_;
  return is_low && shown_ && past_ > 1 ? Step::kDown : Step::kNone;
}

int PaperPolicy::PastAfterUp() const { return std::min(2 * (past_ + 2) - 2, kMostPast); }

void PaperPolicy::StepUp() {
  past_ = PastAfterUp();
  shown_ = false;
}

void PaperPolicy::StepDown() {
  --past_;
  shown_ = false;
}

}  // namespace lethe
