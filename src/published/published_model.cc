#include "src/published/published_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lethe {
namespace {

// Equation 3, multiplied out, is a sum over all sets of checks, each with the sign of how many they are and
// with the product of the generations that they look at. Where neighbours are not independent that product is
// the probability of all of these generations together. So the sets are gathered by the runs of neighbours
// that they look at; this is the sum of the signs of those that look at each generation of one run.
//
// N = 1, for example: the checks are F (future), PA (present and past) and A (past). The run F alone: {F},
// -1. The run A alone: {A}, -1. The run PA: {PA} and {PA, A}, -1 + 1 = 0, and the same of F, P, A together:
// what the pair finds the past alone has found. So the FPP is p(F) + p(A) - p(F) p(A).
//
// As the run is made longer, the sum is kept for both states of its last generation, looked at or not.
class SignedCover {
 public:
  // A run that begins with generation `first` of `generations`.
  SignedCover(size_t first, size_t generations) : last_(first), generations_(generations) {
    if (first == 0) covered_ = -1;  // the future's check of its own
  }

  void Extend() {
    if (last_ == 0) {
      // There is no check of the pair (future, present): the future must be covered by its own.
      uncovered_ = covered_;
      covered_ = 0;
    } else {
      const double with_pair = -(covered_ + uncovered_);
      uncovered_ = covered_;
      covered_ = with_pair;
    }
    ++last_;
  }

  // Of the whole run. The oldest generation has a check of its own: each set that looks at it anyway counts
  // with that check and without, which cancels; the others need it.
  double Sum() const { return last_ + 1 == generations_ ? -uncovered_ : covered_; }

 private:
  size_t last_;
  const size_t generations_;
  double covered_ = 0;
  double uncovered_ = 1;
};

// The share of the positions set in each generation of a run, as the run is made longer. A generation is
// set where an id of its own interval or of the next newer one is; an interval touches a position with
// probability touched[interval], independently of the others.
class RunFill {
 public:
  RunFill(absl::Span<const double> touched, size_t first) : touched_(touched), next_(first) {
    if (first == 0) {
      newest_touched_ = 0;
      newest_untouched_ = 1;
      ExtendBy(/*newer_counts=*/false);
    } else {
      newest_touched_ = touched[first - 1];
      newest_untouched_ = 1 - touched[first - 1];
      ExtendBy(/*newer_counts=*/true);
    }
  }

  void Extend() { ExtendBy(/*newer_counts=*/true); }
  double Share() const { return newest_touched_ + newest_untouched_; }

 private:
  void ExtendBy(bool newer_counts) {
    const double own = touched_[next_++];
    const double untouched = newer_counts ? newest_touched_ * (1 - own) : 0;
    newest_touched_ = (newest_touched_ + newest_untouched_) * own;
    newest_untouched_ = untouched;
  }

  const absl::Span<const double> touched_;
  size_t next_;
  // The positions set in all generations so far, by whether the last interval looked at touched them.
  double newest_touched_;
  double newest_untouched_;
};

}  // namespace

double BloomFpp(double ids, double bits, int hashes) {
  return std::pow(-std::expm1(-hashes * ids / bits), hashes);
}

double PublishedFpp(absl::Span<const double> generation_fpp) {
  const size_t generations = generation_fpp.size();
  // Sums of log(1 - phi), so that small probabilities do not drown in the 1.
  double log_none = std::log1p(-generation_fpp[0]) + std::log1p(-generation_fpp[generations - 1]);
  for (size_t i = 1; i + 1 < generations; ++i) {
    log_none += std::log1p(-generation_fpp[i] * generation_fpp[i + 1]);
  }
  return -std::expm1(log_none);
}

bool IsNegligibleRun(double set_in_all, int hashes) { return std::pow(set_in_all, hashes) < 1e-30; }

double FppFromRunFills(const RunFills& set_in_all, int hashes) {
  // Inclusion and exclusion over the checks. A union of checks is a set of runs of generations with gaps
  // between; its probability is the product over its runs, so the sum can be built from left to right:
  // before[j] is the sum over all sets within generations 0 .. j - 1 that leave generation j - 1 out,
  // less the empty set's 1. One generation past the end stands for the last gap.
  const size_t generations = set_in_all.size();
  std::vector<double> before(generations + 2, 0.0);
  for (size_t first = 0; first <= generations; ++first) {
    before[first + 1] += before[first];
    if (first == generations) break;
    SignedCover cover(first, generations);
    for (size_t i = 0; i < set_in_all[first].size(); ++i) {
      if (i > 0) cover.Extend();
      const double run = cover.Sum() * std::pow(set_in_all[first][i], hashes);
      before[first + i + 2] += (1 + before[first]) * run;
    }
  }
  return std::clamp(-before[generations + 1], 0.0, 1.0);
}

double FppWithSharedIntervals(absl::Span<const double> interval_ids, double bits, int hashes) {
  const size_t generations = interval_ids.size();
  std::vector<double> touched(generations);
  for (size_t j = 0; j < generations; ++j) touched[j] = -std::expm1(-hashes * interval_ids[j] / bits);
  RunFills fills(generations);
  for (size_t first = 0; first < generations; ++first) {
    RunFill fill(touched, first);
    fills[first].push_back(fill.Share());
    for (size_t last = first + 1; last < generations; ++last) {
      fill.Extend();
      if (IsNegligibleRun(fill.Share(), hashes)) break;
      fills[first].push_back(fill.Share());
    }
  }
  return FppFromRunFills(fills, hashes);
}

}  // namespace lethe
