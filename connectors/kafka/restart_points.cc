#include "connectors/kafka/restart_points.h"

namespace lethe::kafka {

RestartPoints::RestartPoints(absl::Duration horizon, RestartPoint start) : horizon_(horizon) {
  points_.push_back({start, 0});
}

void RestartPoints::Note(int64_t offset, int64_t records, absl::Time stream_time) {
  const Point& last = points_.back();
  // 32 points to a horizon keep the list short, and cost a rebuild 3 % more than it needs to read.
  if (offset <= last.at.offset || stream_time == last.at.stream_time) return;
  if (stream_time - last.at.stream_time < horizon_ / 32) return;
  points_.push_back({{offset, stream_time}, records});
}

void RestartPoints::Truncate(int64_t offset) {
  while (points_.size() > 1 && points_.back().at.offset > offset) points_.pop_back();
}

RestartPoint RestartPoints::For(absl::Time stream_time) const {
  // The newest point before which nothing is needed...
  size_t needed = points_.size() - 1;
  while (needed > 0 && !(points_[needed].at.stream_time < stream_time - horizon_)) --needed;
  // ... and from it back until the clock has had its records. The first point is where reading started:
  // there the live run's clock was as empty as the rebuild's will be.
  size_t start = needed;
  while (start > 0 && points_[needed].records - points_[start].records < kWarmup) --start;
  return points_[start].at;
}

void RestartPoints::Drop(const RestartPoint& before) {
  while (points_.size() > 1 && points_[1].at.offset <= before.offset) points_.pop_front();
}

}  // namespace lethe::kafka
