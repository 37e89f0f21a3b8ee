// How many ids came lately, and how many to expect.
#ifndef LETHE_SRC_REFERENCE_SLICED_ARRIVALS_H_
#define LETHE_SRC_REFERENCE_SLICED_ARRIVALS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lethe/filter.h"

namespace lethe {

// Counts of the recent past in slots of stream time, from which the near future is guessed: what will come
// in the next d is kForesight times what came in the last d / kForesight. So a forecast for soon looks at
// the last moments, and one for a horizon ahead is not made from a burst of a second; but at the beginning,
// when there is no more to look at than what has come so far, from all of that, unless it was a burst that is
// over.
//
// Stream time may be coarse (timestamps in whole seconds), and then all of a second's ids come at once. So
// nothing is concluded from less than the recent steps of time.
//
// Thread safety: none.
class Arrivals {
 public:
  explicit Arrivals(int64_t horizon_ms);

  // `count` ids came between the last call and `now_ms`, which may be kNoStreamTime at first.
  void Add(int64_t count, int64_t now_ms);

  // The ids expected in the next `ahead_ms`, as seen at the last call; before time has begun, as many as
  // came so far.
  double Expected(double ahead_ms) const;

  // Whether twice the time has passed that a forecast for `ahead_ms` looks back on.
  bool LooksBackTwice(double ahead_ms) const {
    return static_cast<double>(now_ms_) >= 2 * ahead_ms / kForesight;
  }

  // Simulated with jumps of 0.01 to 100 times the load, bursts, and days and nights: with 2 to 8, lines were
  // doubled once more than with 16 after a jump, since it was noticed late; with 32 and 64, bursts that were
  // over soon doubled them for nothing.
  static constexpr double kForesight = 16;
  // A stream that is younger than this part of the look back is taken to be so old. With 2, filters in the
  // planned memory had to drop ids at the end of their first horizon; with 8 and more, a minute at the
  // beginning was taken for a month, and memory for it.
  static constexpr double kFirstMoments = 4;

  // While all of a stream is looked at, its later half must have had at least one in so many of the ids that
  // it would have at the rate of all.
  static constexpr double kUnrest = 2;
  // What a snapshot holds of it: `self` is written to, or read from, `fields`.
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields) {
    fields.Time(self.start_ms_);
    fields.Int(self.now_ms_, 0, 2 * kFarthestMs);
    fields.Int(self.step_ms_, 0, 2 * kFarthestMs);
    fields.Count(self.total_);
    for (auto& slot : self.slots_) fields.Float(slot, 0, 1e18);
  }

 private:
  // Times lie within this on either side of 1970.
  static constexpr int64_t kFarthestMs = int64_t{1} << 60;
  // The slots reach a little further than the longest look back, which is horizon / kForesight.
  static constexpr int64_t kSlots = 128;
  static constexpr int64_t kSlotsPerHorizon = 120 * static_cast<int64_t>(kForesight);
  // A step of time that is larger than a share of the horizon is a gap, not a coarse clock.
  static constexpr int64_t kStepsPerHorizon = 64;

  double& SlotAt(int64_t index) { return slots_[static_cast<size_t>(index % kSlots)]; }
  double SlotAt(int64_t index) const { return slots_[static_cast<size_t>(index % kSlots)]; }
  void MoveTo(int64_t count, int64_t now_ms);
  // Ids in a millisecond, in the last `look_back_ms`.
  double Rate(double look_back_ms) const;

  const int64_t slot_ms_;
  const int64_t largest_step_ms_;
  int64_t start_ms_ = kNoStreamTime;
  int64_t now_ms_ = 0;   // since the start
  int64_t step_ms_ = 0;  // the largest recent step of time, fading
  int64_t total_ = 0;
  std::array<double, kSlots> slots_{};  // slot i of time in slots_[i mod kSlots]
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_ARRIVALS_H_
