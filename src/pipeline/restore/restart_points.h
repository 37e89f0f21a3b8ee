// Where a rebuild of a partition's filter must start reading, so that it knows every id that is still
// needed and has the same stream time as the live run.
#ifndef LETHE_SRC_PIPELINE_RESTORE_RESTART_POINTS_H_
#define LETHE_SRC_PIPELINE_RESTORE_RESTART_POINTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// An offset with the stream time of that point: all records before it were judged at that time or earlier.
struct RestartPoint {
  int64_t offset = 0;
  absl::Time stream_time = absl::InfinitePast();
};

// A short list of points, some 32 to a horizon, oldest first. The first is where reading started.
//
// A record is still needed while stream time has not passed its own by more than the horizon. The rebuild
// must start before the first needed record, and far enough before it that the running median of
// kWarmup records is full by then: a rebuild whose clock stood still over needed records would put them
// into an older interval than the live run did, and forget them too early. (In a topic with 60 records to
// a horizon, a start at the first needed one would leave the clock standing for a whole horizon.)
//
// Invariant: points_ is never empty; offsets and stream times increase. Not thread-safe.
class RestartPoints {
 public:
  // Records after which stream time is what it would be had all of the log been read.
  static constexpr int64_t kWarmup = 101;

  RestartPoints(absl::Duration horizon, RestartPoint start);

  // All records below `offset` were read, `records` of them since the start; stream time is now
  // `stream_time`. Calls come in the order of offsets, but for a Truncate in between.
  void Note(int64_t offset, int64_t records, absl::Time stream_time);

  // Forgets what was noted beyond `offset` (the transaction was aborted).
  void Truncate(int64_t offset);

  // The point from which to rebuild when stream time is `stream_time`. Points before it are dropped, so
  // call it for what is committed only with times that will not be taken back.
  RestartPoint For(absl::Time stream_time) const;
  void Drop(const RestartPoint& before);

  // The oldest that is left: once For() what is committed was dropped to, the point from which to rebuild.
  const RestartPoint& oldest() const { return points_.front().at; }

  // "OFFSET:TIME:RECORDS,..." with times as in the commit metadata. nullopt if it is no such text.
  std::string ToString() const;
  static std::optional<RestartPoints> Parse(absl::Duration horizon, absl::string_view text);

 private:
  struct Point {
    RestartPoint at;
    int64_t records = 0;
  };
  absl::Duration horizon_;
  std::deque<Point> points_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_RESTORE_RESTART_POINTS_H_
