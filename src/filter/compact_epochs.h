// The generations of a compact filter: when each ends, and when it is forgotten.
#ifndef LETHE_SRC_FILTER_COMPACT_EPOCHS_H_
#define LETHE_SRC_FILTER_COMPACT_EPOCHS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "lethe/filter.h"
#include "src/filter/compact_line.h"
#include "src/snapshot/fields.h"

namespace lethe {

// Epochs are numbered. Each ends when its ids times its duration reach their share: of the ids of a horizon,
// as they come now, times the horizon, one kInHorizon^2-th. For their number, epochs that end so hold the
// fewest ids that are too old (by Cauchy and Schwarz: an epoch keeps its ids for its duration too long). So
// an epoch lasts a sixteenth of the horizon while the load is steady, less while it rises or in a burst, down
// to a hundredth, and more while it falls, up to an eighth. It leaves room for the next ones to end by then.
//
// An epoch is forgotten once its last id is older than the horizon. So an id that came at s is found until s
// + H, and no more after s + (1 + 1/8) H. An epoch begins with its first id: time without ids makes none.
//
// Invariant: at most kMost epochs are live. Thread safety: none.
class CompactEpochs {
 public:
  static constexpr int kInHorizon = 16;      // while the load is steady
  static constexpr int kLeastInHorizon = 8;  // as long as ids come
  static constexpr int kMost = kCompactMostEpochs;

  struct Epoch {
    int64_t first_ms = kNoStreamTime;
    int64_t last_ms = kNoStreamTime;
    int64_t check_ms = INT64_MAX;  // when to check whether it is over
    int64_t ids = 0;
    int64_t weighed_ids = 0;  // those that `fpp` counts
    double fpp = 0;           // the sum of their rates
  };

  explicit CompactEpochs(int64_t horizon_ms);
  CompactEpochs(const CompactEpochs&) = delete;
  CompactEpochs& operator=(const CompactEpochs&) = delete;

  // Moves time, never back. True if an epoch was forgotten.
  bool AdvanceTo(int64_t stream_time_ms) {
    if (stream_time_ms <= now_ms_) return false;
    if (__builtin_expect(stream_time_ms > idle_until_ms_, 0)) return Advance(stream_time_ms);
    now_ms_ = stream_time_ms;
    return false;
  }

  // Begins an epoch if there is none or the newest is over, by time or because it has `most_ids`. True if one
  // began. Comes before each new id.
  bool BeginIfDue(int64_t most_ids) {
    if (__builtin_expect(now_ms_ < newest_->check_ms && newest_->ids < most_ids, 1)) return false;
    return Begin(most_ids);
  }
  // Counts one more id in the newest epoch, now.
  void Add() {
    ++newest_->ids;
    newest_->last_ms = now_ms_;
    ++ids_;
  }
  // An id of an older epoch came again: it goes into the newest.
  void Renew(int64_t epoch);
  // An id of the newest epoch came again.
  void Touch();

  // Up to so many ids of a live epoch are lost. Returns how many.
  int64_t Drop(int64_t epoch, int64_t ids);

  // The rate of an entry that is inserted from now on: the probability that an id that was never inserted
  // equals it.
  void SetRate(double rate);
  // The sum of the rates of all ids, `risen` included, which their epochs' entries have risen by since; of
  // each epoch's, at least what it were if each had `least`.
  double Fpp(const CompactRates& risen, double least = 0) const;
  // After Restore: the sum of the rates of an epoch's ids.
  void SetFpp(int64_t epoch, double fpp);

  // Forgets the oldest epoch before its time.
  void ForgetOldest();

  // Snapshots.
  void Save(FieldWriter* fields) const;
  bool Restore(FieldReader* fields);
  // Ids of the newest epoch that are not counted yet; their times are anywhere within it.
  void AddUncounted(int64_t ids);

  const CompactSpan& span() const { return span_; }
  // Of the epochs that would be live at a time to come.
  CompactSpan SpanAt(int64_t stream_time_ms) const {
    if (__builtin_expect(stream_time_ms > idle_until_ms_, 0)) return SpanAfter(stream_time_ms);
    return span_;
  }
  int live() const { return static_cast<int>(span_.newest + 1 - span_.oldest); }
  const Epoch& operator[](int64_t number) const { return epochs_[CompactPlaceOf(number)]; }
  int64_t ids() const { return ids_; }
  int64_t begun() const { return span_.newest; }
  int64_t now_ms() const { return now_ms_; }
  int64_t horizon_ms() const { return horizon_ms_; }
  // The longest that an epoch may last, unless the memory limit has made too many short ones.
  int64_t longest_ms() const { return longest_ms_; }
  // The time between the beginnings of the last two epochs; without two, that under a steady load.
  absl::Duration RefreshPeriod() const;
  // All ids that came within this time are held.
  absl::Duration Window() const;

 private:
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  Epoch& Newest() { return *newest_; }
  void NoteNewest();
  void Weigh();
  int64_t NextCheck() const;
  // Of the newest epoch: whether it has as many ids, for as long, as it should.
  bool HasItsShare() const;
  // Whether there are never more than kMost if an epoch begins now, and others at an even pace after it.
  bool HasRoomForNext() const;
  bool Advance(int64_t stream_time_ms);
  CompactSpan SpanAfter(int64_t stream_time_ms) const;
  bool Begin(int64_t most_ids);

  const int64_t horizon_ms_;
  const int64_t longest_ms_;
  CompactSpan span_;
  int64_t now_ms_ = kNoStreamTime;
  int64_t idle_until_ms_ = kNoStreamTime;  // until then no epoch expires
  int64_t covered_since_ms_ = kNoStreamTime;
  bool lost_before_time_ = false;  // an epoch was forgotten before stream time started
  int64_t ids_ = 0;
  double rate_ = 0;
  std::array<Epoch, kCompactPlaces> epochs_ = {};
  Epoch none_ = {.check_ms = INT64_MIN};
  Epoch* newest_ = &none_;  // which has ended, if none is live
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_EPOCHS_H_
