// Adaptation as the Forgetful Bloom Filter's paper has it: how many filters, and how often they refresh.
#ifndef LETHE_SRC_REFERENCE_PUBLISHED_PAPER_H_
#define LETHE_SRC_REFERENCE_PUBLISHED_PAPER_H_

#include <cstdint>

#include "lethe/filter.h"

namespace lethe {

// Algorithm 3 ("dynamic resizing") of Subramanyam, Gupta, Leslie and Wang, "Idempotent Distributed Counters
// Using a Forgetful Bloom Filter", once a second of stream time. The policy decides, the filter carries out:
//
//   procedure TriggerDynamicResizing()                  Wanted()
//     if curFPP() >= 0.9 * targetFPP() then             Step::kUp
//       scaleUpFilters()                                StepUp(): N + 2 becomes 2 (N + 2)
//       decreaseRefreshPeriod()                         and t is horizon / (N + 1)
//     else if curFPP() <= 0.1 * targetFPP() then        Step::kDown
//       scaleDownFilters()                              StepDown(): N becomes N - 1
//       increaseRefreshPeriod()                         and t is horizon / (N + 1)
//
// To the letter it breaks the horizon and the target (tests/lab). Corrections:
// 1. The paper's t - 1 and t + 1 scale: (N + 1) t is the horizon. With t - 1 more filters lengthen the window
//    and lower nothing; with t + 1 one filter less can end it before the horizon.
// 2. curFPP() is not Equation 3, which takes neighbours for independent: a pair counts with the ids that both
//    of its generations hold.
// 3. It looks ahead: at a filter whose intervals all have as many ids as the open one (up), or as the fullest
//    one would have in the longer period (down). What the filter has now shows the load of a horizon ago, too
//    late for a step up.
// 4. A burst does not wait for the next second: the id with which the open interval reaches nine tenths ends
//    it. More than a quarter of N + 2 intervals that ended so call for a step up; if each of them did, bursts
//    would double the filters faster than steps down can undo it. Where a tenth of t is less than a second,
//    steps down are thought of at each tenth.
// 5. A step down waits until an interval has ended since the last step, for its effect must have shown.
// 6. What is closed now stays for a horizon, beside what follows a step up. So three of the nine tenths are
//    for the generations that are checked alone, and six for the pairs of 3.5 times the filters. Of these 3.5
//    the N + 1 full periods of a horizon bring less than 1, and the full intervals, with those after them,
//    less than 2.5: the most where a load climbs from three filters to a thousand at once, 2 / 3 at N = 1, 1
//    / 3 and 1 / 4 at the next two, and less at each further one.
//
// So the probability of a false positive is at no moment over nine tenths of the target, whatever the load
// does, as the mean over all filters with these loads. One filter's own varies about that by a standard
// deviation of some k / (2 sqrt(m)) of what a full generation alone brings: the last tenth is room for it.
// Where the memory limit refuses a step up, but not yet one more filter, it is the whole target; where it
// refuses that too, the window gives way. Memory is not promised: a horizon with bursts may have up to eight
// times as many filters as hold its ids, and the way back is one filter for each period.
//
// Invariant: 1 <= past_generations() <= kMostPast, and (past_generations() + 1) * refresh_period_ms() is at
// least the horizon. Thread safety: none.
class PaperPolicy {
 public:
  enum class Step { kNone, kUp, kDown };
  // Beyond some thousand filters a check is slower than any other engine's.
  static constexpr int kMostPast = 1022;

  // Of generations of so many bits, with so many of them set for an id.
  PaperPolicy(int64_t horizon_ms, double target_fpp, int64_t bits, int hashes);

  int past_generations() const { return past_; }
  int64_t refresh_period_ms() const { return PeriodFor(past_); }

  // The interval ends with that many ids, if not before by its period; 1 or more.
  int64_t most_ids() const { return most_ids_; }

  // Whether it is time to ask for a step. (It is, too, when an interval has ended by its ids.)
  bool IsDue(int64_t now_ms) const { return now_ms >= next_ms_; }

  // The intervals of which ids are held.
  struct Intervals {
    int64_t full = 0;      // that ended with most_ids() or more
    int64_t most_ids = 0;  // of any other
  };
  // The step that is called for now; nothing is changed by it.
  Step Wanted(const Intervals& intervals, int64_t now_ms);

  // The past generations after a step up. It is for the filter to see if there is memory for them.
  int PastAfterUp() const;
  bool CanGoUp() const { return PastAfterUp() > past_; }
  void StepUp();
  void StepDown();

  // The filter has refreshed.
  void IntervalEnded() { shown_ = true; }

 private:
  int64_t PeriodFor(int past) const { return (horizon_ms_ + past) / (past + 1); }
  void SetPast(int past);

  const int64_t horizon_ms_;
  const double target_fpp_;
  const int64_t bits_;
  const int hashes_;
  int past_ = 1;
  int64_t most_ids_ = 1;
  int64_t next_ms_ = kNoStreamTime;
  bool shown_ = false;  // an interval has ended since the last step
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_PUBLISHED_PAPER_H_
