#include "src/fpp/sliced_estimate.h"

#include <cmath>
#include <cstddef>

namespace lethe {

SlicedEstimate::SlicedEstimate(const SlicedShape& shape, int future, int live)
    : shape_(shape), future_(future), live_(live) {
  const int cells = shape.cells_per_line();
  for (int set = 0; set <= cells; ++set) {
    both_set_[static_cast<size_t>(set)] = static_cast<double>(set * (set - 1)) / (cells * (cells - 1));
  }
}

void SlicedEstimate::AddLine(absl::Span<const uint8_t> occupied) {
  ++lines_;
  const auto columns = static_cast<size_t>(shape_.columns);
  auto column = static_cast<size_t>(future_);
  double newer = both_set_[occupied[column]];
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_); ++pair) {
    column = (column + columns - 1) % columns;
    const double older = both_set_[occupied[column]];
    pair_sums_[pair] += newer * older;
    newer = older;
  }
}

double SlicedEstimate::Fpp() const {
  double none = 1;
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_); ++pair) {
    none *= 1 - std::pow(pair_sums_[pair] / static_cast<double>(lines_), shape_.lines_per_id);
  }
  return 1 - none;
}

}  // namespace lethe
