// Stream time: what a partition's records say of the time, robust to records with wild timestamps.
#ifndef LETHE_SRC_ADAPT_STREAM_TIME_H_
#define LETHE_SRC_ADAPT_STREAM_TIME_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lethe/filter.h"

namespace lethe {

class FieldReader;
class FieldWriter;

// The running maximum of the median of the last 101 timestamps; it does not move until 101 were seen. So
// up to 50 wild timestamps in any 101 records change nothing, also at the very start, and it is a function
// of the records alone: reading them again gives the same times. It lags by some 50 records, which only
// makes ids be remembered longer.
//
// Records come nearly in order, so the oldest timestamp is near the lowest and the newest near the highest:
// an observation costs a few nanoseconds then, and some forty in a random order.
//
// Invariant: once ring_ is full, the kWindow values of sorted_ from lowest_ on are its values, ascending;
// now_ms_ never decreases. Does not allocate; a copy (2.1 KB) is a saved state. Thread-compatible.
class StreamTime {
 public:
  static constexpr size_t kWindow = 101;
  // Timestamps beyond this on either side of 1970 (73 million years) count as this, so that no
  // difference of two times, and no sum of a time and a horizon, overflows.
  static constexpr int64_t kFarthestMs = int64_t{1} << 61;

  // Takes a record's timestamp (kNoStreamTime: it has none, and changes nothing); returns now_ms().
  int64_t Observe(int64_t timestamp_ms);

  // Stream time is at least this. Only before the first timestamp: for reading that starts in the middle
  // of a log.
  void StartAt(int64_t stream_time_ms);

  // kNoStreamTime until it has started to move.
  int64_t now_ms() const { return now_ms_; }

  // For a snapshot. False if that is not what one has saved.
  void Save(FieldWriter* fields) const;
  bool Restore(FieldReader* fields);

 private:
  template <typename Self, typename Fields>
  static void Transfer(Self& self, Fields& fields);
  void SortRing();
  void Replace(int64_t oldest, int64_t newest);
  void Exchange(size_t from, size_t to, int64_t newest);

  // The sorted values move up by one place with nearly every record, and back when they are at the end.
  static constexpr size_t kPlaces = kWindow + 59;

  std::array<int64_t, kWindow> ring_{};
  std::array<int64_t, kPlaces> sorted_{};
  size_t lowest_ = 0;
  size_t next_ = 0;  // where in ring_ the next timestamp goes: over the oldest one, if it is full
  bool full_ = false;
  int64_t now_ms_ = kNoStreamTime;
};

}  // namespace lethe

#endif  // LETHE_SRC_ADAPT_STREAM_TIME_H_
