#include "src/pipeline/restore/restore_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lethe {
namespace {

constexpr absl::Duration kSample = absl::Milliseconds(500);
constexpr double kNewest = 0.3;  // the weight of the last sample

}  // namespace

bool RestoreProgress::At(int64_t next, absl::Time now) {
  next_ = std::clamp(next, from_, to_);
  if (sample_time_ == absl::InfinitePast()) {
    sample_time_ = now;
    sample_next_ = next_;
    tell_at_ = now + kTellEvery;
  }
  if (now - sample_time_ >= kSample) {
    const double rate = static_cast<double>(next_ - sample_next_) / absl::ToDoubleSeconds(now - sample_time_);
    per_second_ = per_second_ == 0 ? rate : kNewest * rate + (1 - kNewest) * per_second_;
    sample_time_ = now;
    sample_next_ = next_;
  }
  if (now < tell_at_) return false;
  tell_at_ = now + kTellEvery;
  return true;
}

std::optional<absl::Duration> RestoreProgress::time_left() const {
  if (left() <= 0) return absl::ZeroDuration();
  if (per_second_ <= 0) return std::nullopt;
  return absl::Seconds(static_cast<double>(left()) / per_second_);
}

std::string RestoreProgress::ToString() const {
  const double share =
      to_ > from_ ? static_cast<double>(next_ - from_) / static_cast<double>(to_ - from_) : 1;
  std::string text = absl::StrFormat("offset %d of %d, %.0f %%", next_, to_, 100 * share);
  if (const std::optional<absl::Duration> time = time_left(); time && left() > 0) {
    absl::StrAppendFormat(&text, ", %.0f offsets/s, some %s left", per_second_,
                          absl::FormatDuration(absl::Ceil(*time, absl::Seconds(1))));
  }
  return text;
}

}  // namespace lethe
