// Offsets from which a rebuild of a filter finds every id that is still needed, with the stream time of the
// live run.
#ifndef LETHE_SRC_PIPELINE_RESTORE_RESTART_POINTS_H_
#define LETHE_SRC_PIPELINE_RESTORE_RESTART_POINTS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// Records before the offset were judged at this stream time or earlier.
struct RestartPoint {
  int64_t offset = 0;
  absl::Time stream_time = absl::InfinitePast();
};

// Some 32 points to a horizon, oldest first; the first is where reading started.
//
// A record is needed while its time is within the horizon. A rebuild must start kWarmup records before the
// first needed one: until the running median is full, its clock stands still, puts records into an older
// interval than the live run did, and forgets them too early. (In a topic with 60 records to a horizon the
// clock would stand still for all of it.)
//
// Invariant: points_ is never empty; offsets and stream times increase. Not thread-safe.
class RestartPoints {
 public:
  // Records after which stream time is that of a run over all of the log.
  static constexpr int64_t kWarmup = 101;

  RestartPoints(absl::Duration horizon, RestartPoint start);

  // All records below `offset` were read, `records` of them since the start. Offsets ascend, except after
  // Truncate().
  void Note(int64_t offset, int64_t records, absl::Time stream_time);

  // Removes the points beyond `offset`, after an abort.
  void Truncate(int64_t offset);

  // The point from which to rebuild at this stream time.
  RestartPoint For(absl::Time stream_time) const;
  void Drop(const RestartPoint& before);

  // After Drop(For(committed stream time)): the point from which to rebuild.
  const RestartPoint& oldest() const { return points_.front().at; }

  // "OFFSET:TIME:RECORDS,..." with times as in the commit metadata.
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
