#include "src/fpp/sliced_estimate.h"

#include <cmath>

namespace lethe {

SlicedEstimate::SlicedEstimate(const SlicedShape& shape, int future, int live)
    : shape_(shape), future_(future), live_(live) {
  const int cells = shape.cells_per_line();
  for (int set = 0; set <= cells; ++set) {
    both_set_[static_cast<size_t>(set)] = static_cast<double>(set * (set - 1)) / (cells * (cells - 1));
  }
}

void SlicedEstimate::AddLine(absl::Span<const uint8_t> occupied) {
  PairSums& sums = sums_[static_cast<size_t>(lines_++) % kParts];
  const auto columns = static_cast<size_t>(shape_.cell_columns());
  auto column = static_cast<size_t>(future_);
  double newer = both_set_[occupied[column]];
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_); ++pair) {
    column = (column + columns - 1) % columns;
    const double older = both_set_[occupied[column]];
    sums[pair] += newer * older;
    newer = older;
  }
}

double SlicedEstimate::Fpp(const PairSums& sums, int64_t lines) const {
  double none = 1;
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_); ++pair) {
    none *= 1 - std::pow(sums[pair] / static_cast<double>(lines), shape_.lines_per_id);
  }
  return 1 - none;
}

double SlicedEstimate::Fpp() const { return Fpp(Total(), lines_); }

double SlicedEstimate::Deviation() const {
  constexpr auto kPartCount = static_cast<int64_t>(kParts);
  if (lines_ < kPartCount) return 0;
  const PairSums total = Total();
  std::array<double, kParts> without{};
  double mean = 0;
  for (size_t part = 0; part < kParts; ++part) {
    PairSums rest = total;
    for (size_t pair = 0; pair < rest.size(); ++pair) rest[pair] -= sums_[part][pair];
    const int64_t lines_in_part = (lines_ - static_cast<int64_t>(part) + kPartCount - 1) / kPartCount;
    without[part] = Fpp(rest, lines_ - lines_in_part);
    mean += without[part] / kParts;
  }
  double squares = 0;
  for (const double value : without) squares += (value - mean) * (value - mean);
  return std::sqrt(squares * (kParts - 1) / kParts);
}

SlicedEstimate::PairSums SlicedEstimate::Total() const {
  PairSums total{};
  for (const PairSums& sums : sums_) {
    for (size_t pair = 0; pair < total.size(); ++pair) total[pair] += sums[pair];
  }
  return total;
}

}  // namespace lethe
