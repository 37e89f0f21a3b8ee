// Values by size, as Prometheus' histograms have them.
#ifndef LETHE_SRC_PIPELINE_REPORT_HISTOGRAM_H_
#define LETHE_SRC_PIPELINE_REPORT_HISTOGRAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lethe {

// Invariant: counts()[i] values are above bounds()[i - 1] and not above bounds()[i]; one more count than
// bounds is for what is above them all. Not thread-safe; a copy is a picture of the moment.
class Histogram {
 public:
  Histogram() = default;  // without bounds: counts only
  // `bounds` rise, and outlive the histogram.
  explicit Histogram(absl::Span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void Add(double value, int64_t times = 1) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<size_t>(bucket)] += times;
    sum_ += value * static_cast<double>(times);
  }

  absl::Span<const double> bounds() const { return bounds_; }
  absl::Span<const int64_t> counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  absl::Span<const double> bounds_;
  std::vector<int64_t> counts_ = {0};
  double sum_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_HISTOGRAM_H_
