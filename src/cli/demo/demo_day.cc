#include "src/cli/demo/demo_day.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

struct Peak {
  double hour;
  double half_width;  // hours
  double height;      // of the highest peak
};
constexpr double kNight = 0.025;
constexpr Peak kPeaks[] = {{8, 2.5, 0.4}, {13, 3, 1}};
constexpr absl::Duration kStep = absl::Seconds(1);

// In heights of the highest peak. A peak is a squared sine, which has half its width as its area.
double Shape(double hour) {
  double shape = kNight;
  for (const Peak& peak : kPeaks) {
    const double from_top = std::abs(hour - peak.hour) / peak.half_width;
    if (from_top >= 1) continue;
    const double sine = std::cos(from_top * M_PI / 2);
    shape += (peak.height - kNight) * sine * sine;
  }
  return shape;
}

double Area() {
  double area = kNight * 24;
  for (const Peak& peak : kPeaks) area += (peak.height - kNight) * peak.half_width;
  return area;
}

}  // namespace

double DemoDay::Load(absl::Duration at, int64_t events) {
  return static_cast<double>(events) * Shape(absl::ToDoubleHours(at)) / Area();
}

DemoDay::Sending DemoDay::NewEvent() {
  for (; due_ < 1 && clock_ < kLength; clock_ += kStep) {
    due_ += Load(clock_, events_) * absl::ToDoubleHours(kStep);
  }
  due_ -= 1;
  return {clock_, absl::StrCat(absl::Hex(random_(), absl::kZeroPad16))};
}

std::optional<DemoDay::Sending> DemoDay::Next() {
  if (!next_.has_value()) next_ = NewEvent();
  Sending sending = *next_;
  if (!retries_.empty() && retries_.top().at <= next_->at) {
    sending = retries_.top();
    retries_.pop();
  } else if (next_->at >= kLength) {
    return std::nullopt;
  } else {
    next_.reset();
    if (std::uniform_real_distribution<>(0, 1)(random_) < kLostAcknowledgements) {
      const double later = std::uniform_real_distribution<>(0, 1)(random_);
      Sending retry = {sending.at + later * kLatestRetry, sending.id};
      if (retry.at < kLength) retries_.push(std::move(retry));
    }
    ids_.insert(sending.id);
  }
  ++sent_;
  return sending;
}

}  // namespace lethe
