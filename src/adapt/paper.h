// Adaptation as the Forgetful Bloom Filter's paper has it: how many filters, and how often they refresh.
#ifndef LETHE_SRC_ADAPT_PAPER_H_
#define LETHE_SRC_ADAPT_PAPER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "lethe/filter.h"

namespace lethe {

// Algorithm 3 ("dynamic resizing") of Subramanyam, Gupta, Leslie and Wang, "Idempotent Distributed Counters
// Using a Forgetful Bloom Filter": once a second of stream time, at a false-positive probability of 0.9
// times the target or more, the filters become twice as many and the refresh period a unit shorter; at 0.1
// times the target or less there is one filter less, and the period is a unit longer. It decides; the filter
// carries out.
//
// Where it departs from the letter of the paper, since the letter would break the horizon or the target:
// - The unit scales. N and t move together such that (N + 1) t is the horizon: a step up leads from N to
//   2 (N + 2) - 2 past filters, and t falls to horizon / (N + 1), about a half. With t - 1 alone, more
//   filters lengthen the window and lower nothing; with one filter less and t + 1, the window can end
//   before the horizon.
// - Equation 3 is asked of a filter whose generations are all as full as the present one, for a step up, or
//   as the fullest one, for a step down. Its greatest term is the oldest generation alone, which shows the
//   load of a horizon ago: too late for a step up, and a step up cannot make it less.
// - A step down waits until an interval has ended since the last step, for its effect must have shown.
// - Seconds are short beside the paper's periods of 3 s to 13 s. Where a tenth of t is less than a second,
//   it is asked at each tenth.
//
// What it cannot do: all ids that come between two such moments are in the open generations before it acts,
// so a burst passes the target by as much as it brings in a second; and Equation 3 takes neighbouring
// generations for independent, so that the true rate is higher than what is held, most so where an id sets
// few bits.
//
// Invariant: 1 <= past_generations() <= kMostPast, and (past_generations() + 1) * refresh_period_ms() is at
// least the horizon. Thread safety: none.
class PaperPolicy {
 public:
  enum class Step { kNone, kUp, kDown };
  // Beyond some thousand filters a check is slower than any other engine's.
  static constexpr int kMostPast = 1022;

  PaperPolicy(int64_t horizon_ms, double target_fpp);

  int past_generations() const { return past_; }
  int64_t refresh_period_ms() const { return PeriodFor(past_); }

  // Whether it is time to ask for a step.
  bool IsDue(int64_t now_ms) const { return now_ms >= next_ms_; }

  // The step that is called for now; nothing is changed by it. generation_fpp is Equation 1 for each
  // generation, newest first: future, present, past 1, ...; at least two.
  Step Wanted(absl::Span<const double> generation_fpp, int64_t now_ms);

  // The past generations after a step up. It is for the filter to see if there is memory for them.
  int PastAfterUp() const;
  bool CanGoUp() const { return PastAfterUp() > past_ && PeriodFor(PastAfterUp()) < PeriodFor(past_); }
  void StepUp();
  void StepDown();

  // The filter has refreshed.
  void IntervalEnded() { shown_ = true; }

 private:
  int64_t PeriodFor(int past) const { return (horizon_ms_ + past) / (past + 1); }

  const int64_t horizon_ms_;
  const double target_fpp_;
  int past_ = 1;
  int64_t next_ms_ = kNoStreamTime;
  bool shown_ = false;  // an interval has ended since the last step
};

}  // namespace lethe

#endif  // LETHE_SRC_ADAPT_PAPER_H_
