// Stream time: the time of a partition's records, robust to records with wild timestamps.
#ifndef LETHE_SRC_STAGE_STREAM_TIME_H_
#define LETHE_SRC_STAGE_STREAM_TIME_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "lethe/filter.h"

namespace lethe {

class FieldReader;
class FieldWriter;

// The running maximum of the median of the last 101 timestamps. So up to 50 wild timestamps in any 101
// records change nothing, also at the very start, and it is a function of the records alone: reading them
// again gives the same times. It lags by some 50 records, which only makes ids be remembered longer.
//
// It starts when 101 were seen and the middle half of them lies within `settled_ms`; at the latest when 303
// were seen. (A start at a wild time of the past could not be taken back: when time then moves on to the
// present, all that was remembered until then looks older than any horizon. 60 of the first 101 records dated
// 0 made the copies of the 50 next ones pass. To start later costs nothing: what has come before counts as
// remembered at the start.)
//
// Records come nearly in order, so the oldest timestamp is near the lowest and the newest near the highest:
// an observation costs a few nanoseconds then, and some forty in a random order.
//
// Invariant: once windows_ > 0, the kWindow values of sorted_ from lowest_ on are its values, ascending;
// now_ms_ never decreases. Does not allocate; a copy (2.1 KB) is a saved state. Thread-compatible.
class StreamTime {
 public:
  static constexpr size_t kWindow = 101;
  // Timestamps beyond this on either side of 1970 (73 million years) count as this, so that no
  // difference of two times, and no sum of a time and a horizon, overflows.
  static constexpr int64_t kFarthestMs = int64_t{1} << 61;
  // Of few, and seldom: std::sort is large.
  static void SortInto(const int64_t* times_ms, size_t size, int64_t* sorted);

  StreamTime() : StreamTime(INT64_MAX) {}
  explicit StreamTime(int64_t settled_ms) : settled_ms_(settled_ms) {}
  // Of a partition.
  static StreamTime For(absl::Duration horizon) {
    return StreamTime(absl::ToInt64Milliseconds(horizon / 32));
  }

  // Takes a record's timestamp (kNoStreamTime: it has none, and changes nothing); returns now_ms().
  int64_t Observe(int64_t timestamp_ms);

  // Stream time is at least this. Only before the first timestamp: for reading that starts in the middle
  // of a log.
  void StartAt(int64_t stream_time_ms);

  // Stream time is at least this, whatever was seen, but not beyond its limit. Returns now_ms().
  int64_t AdvanceTo(int64_t stream_time_ms);

  // Stream time goes no further than this, from now on; INT64_MAX: there is no limit. It does not go back.
  void LimitTo(int64_t latest_ms) { latest_ms_ = latest_ms; }

  // kNoStreamTime until it has started to move.
  int64_t now_ms() const { return now_ms_; }

  // For a snapshot. False if the fields are not a saved stream time.
  void Save(FieldWriter* fields) const;
  bool Restore(FieldReader* fields);

 private:
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  bool MayMove() const;
  void SortRing();
  void Replace(int64_t oldest, int64_t newest);
  void Exchange(size_t from, size_t to, int64_t newest);

  // The sorted values move up by one place with nearly every record, and back when they are at the end.
  static constexpr size_t kPlaces = kWindow + 59;
  static constexpr int kMostWindows = 3;

  std::array<int64_t, kWindow> ring_{};
  std::array<int64_t, kPlaces> sorted_{};
  size_t lowest_ = 0;
  size_t next_ = 0;  // where in ring_ the next timestamp goes: over the oldest one, if it is full
  int windows_ = 0;  // how often ring_ was filled, counted until time starts; kMostWindows at most
  int64_t now_ms_ = kNoStreamTime;
  int64_t latest_ms_ = INT64_MAX;
  int64_t settled_ms_;
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_STREAM_TIME_H_
