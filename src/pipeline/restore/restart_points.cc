#include "src/pipeline/restore/restart_points.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "src/assertion.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe {

RestartPoints::RestartPoints(absl::Duration horizon, RestartPoint start) : horizon_(horizon) {
  points_.push_back({start, 0});
}

void RestartPoints::Note(int64_t offset, int64_t records, absl::Time stream_time) {
  const Point& last = points_.back();
  // 32 points to a horizon keep the list short, and cost a rebuild 3 % more than it needs to read.
  if (offset <= last.at.offset || stream_time == last.at.stream_time) return;
  if (stream_time - last.at.stream_time < horizon_ / 32) return;
  LETHE_ASSERT(stream_time > last.at.stream_time);
  points_.push_back({{offset, stream_time}, records});
}

void RestartPoints::Truncate(int64_t offset) {
  while (points_.size() > 1 && points_.back().at.offset > offset) points_.pop_back();
}

RestartPoint RestartPoints::For(absl::Time stream_time) const {
  // The newest point before which no record is needed...
  size_t needed = points_.size() - 1;
  while (needed > 0 && !(points_[needed].at.stream_time < stream_time - horizon_)) --needed;
  // ... and back by kWarmup records, or to the first point, where the live run's clock was empty, too.
  size_t start = needed;
  while (start > 0 && points_[needed].records - points_[start].records < kWarmup) --start;
  return points_[start].at;
}

void RestartPoints::Drop(const RestartPoint& before) {
  while (points_.size() > 1 && points_[1].at.offset <= before.offset) points_.pop_front();
  LETHE_ASSERT(!points_.empty());
}

std::string RestartPoints::ToString() const {
  return absl::StrJoin(points_, ",", [](std::string* out, const Point& point) {
    absl::StrAppend(out, point.at.offset, ":", TimeText(point.at.stream_time), ":", point.records);
  });
}

std::optional<RestartPoints> RestartPoints::Parse(absl::Duration horizon, absl::string_view text) {
  RestartPoints points(horizon, {});
  points.points_.clear();
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> numbers = absl::StrSplit(word, ':');
    Point point;
    if (numbers.size() != 3 || !absl::SimpleAtoi(numbers[0], &point.at.offset) ||
        !ParseTime(numbers[1], &point.at.stream_time) || !absl::SimpleAtoi(numbers[2], &point.records)) {
      return std::nullopt;
    }
    if (!points.points_.empty()) {
      const Point& last = points.points_.back();
      if (point.at.offset <= last.at.offset || point.at.stream_time < last.at.stream_time)
        return std::nullopt;
    }
    points.points_.push_back(point);
  }
  return points;
}

}  // namespace lethe
