// Adaptation as the Forgetful Bloom Filter's paper has it: how many filters, and how often they refresh.
#ifndef LETHE_SRC_PUBLISHED_PAPER_H_
#define LETHE_SRC_PUBLISHED_PAPER_H_

#include <cstdint>
#include <type_traits>

#include "lethe/filter.h"

namespace lethe {

// Algorithm 3 ("dynamic resizing") of Subramanyam, Gupta, Leslie and Wang, "Idempotent Distributed Counters
// Using a Forgetful Bloom Filter", once a second of stream time. The policy decides, the filter carries out:
//
//   procedure TriggerDynamicResizing()                  Wanted():
//     if curFPP() >= 0.9 * targetFPP() then               IsNearTarget()
//       scaleUpFilters()                                  StepUp(): N + 2 becomes 2 (N + 2)
//       decreaseRefreshPeriod()                           and t is horizon / (N + 1)
//     else if curFPP() <= 0.1 * targetFPP() then          IsFarUnderTarget()
//       scaleDownFilters()                                StepDown(): N becomes N - 1
//       increaseRefreshPeriod()                           and t is horizon / (N + 1)
//     end if
//
// To the letter it breaks the horizon and the target (tests/lab). Corrections:
// 1. (N + 1) t is the horizon. With the paper's t - 1 more filters lengthen the window and lower nothing;
// with
//    its t + 1 one filter less can end the window before the horizon.
// 2. curFPP() is not Equation 3, which takes neighbours for independent: a pair shares the ids of an
// interval.
// 3. curFPP() looks ahead, at a filter whose intervals all have as many ids as the open one (up), or as the
//    fullest one would have in the longer period (down): what is held now shows the load of a horizon ago.
// 4. A burst does not wait for the next second: the id that brings the open interval to nine tenths ends it.
// A
//    step up is called for when more than a quarter of N + 2 intervals ended so: if each of them did, bursts
//    would double the filters faster than steps down can undo it. Where a tenth of t is less than a second,
//    steps down are thought of at each tenth.
// 5. A step down waits until an interval has ended since the last step, so that its effect has shown.
// 6. What is closed now stays for a horizon, beside what follows a step up. So three of the nine tenths are
//    for the generations that are checked alone, and six for the pairs of 3.5 times the filters: the N + 1
//    full periods of a horizon bring less than 1, and the full intervals, with those after them, less than
//    2.5. (Most where a load climbs from three filters to a thousand at once: 2 / 3 at N = 1, 1 / 3 and 1 / 4
//    at the next two, and less at each further one.)
//
// So the FPP is at no moment over nine tenths of the target, whatever the load does, as the mean over all
// filters with these loads. The last tenth is room for one filter's own, which varies about that by a
// standard deviation of some k / (2 sqrt(m)) of what a full generation alone brings. Where the memory limit
// refuses a step up, but not yet one more filter, it is the whole target; where it refuses that too, the
// window gives way. Memory is not promised: a horizon with bursts may have up to eight times as many filters
// as hold its ids, and the way back is one filter for each period.
//
// Invariant: 1 <= past_generations() <= kMostPast, and (past_generations() + 1) * refresh_period_ms() is at
// least the horizon. Thread safety: none.
class PaperPolicy {
 public:
  enum class Step { kNone, kUp, kDown };
  // Beyond some thousand filters a check is slower than any other engine's.
  static constexpr int kMostPast = 1022;
  // Of a generation; beyond all memory limits.
  static constexpr int64_t kMostWords = int64_t{1} << 32;

  // Of generations of so many bits, with so many of them set for an id.
  PaperPolicy(int64_t horizon_ms, double target_fpp, int64_t bits, int hashes);

  int64_t bits() const { return bits_; }  // of a generation
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

  // In a snapshot, with the bits of a generation. `self` is const to save.
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);

  // The filter has refreshed.
  void IntervalEnded() { shown_ = true; }

 private:
  // In enough of the intervals that are held the rate reached nine tenths of the target.
  bool IsNearTarget(const Intervals& intervals) const;
  // With one filter less it would be a tenth of the target at most, and no step up would be called for.
  bool IsFarUnderTarget(const Intervals& intervals) const;
  int64_t PeriodFor(int past) const { return (horizon_ms_ + past) / (past + 1); }
  void SetPast(int past);

  const int64_t horizon_ms_;
  const double target_fpp_;
  int64_t bits_;
  const int hashes_;
  int past_ = 1;
  int64_t most_ids_ = 1;
  int64_t next_ms_ = kNoStreamTime;
  bool shown_ = false;  // an interval has ended since the last step
};

template <typename Self, typename Fields>
void PaperPolicy::Transfer(Self& self, Fields& fields) {
  int64_t words = self.bits_ / 64;
  int past = self.past_;
  bool shown = self.shown_;
  fields.Int(words, 1, kMostWords);
  fields.Int(past, 1, kMostPast);
  fields.Int(shown, 0, 1);
  fields.Time(self.next_ms_);
  if constexpr (!std::is_const_v<Self>) {
    self.bits_ = 64 * words;
    self.SetPast(past);
    self.shown_ = shown;
  }
}

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_PAPER_H_
