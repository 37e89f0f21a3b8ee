#include "src/reference/sliced/sliced_estimate.h"

#include <algorithm>
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
  Sums& sums = sums_[static_cast<size_t>(lines_++) % kParts];
  const auto columns = static_cast<size_t>(shape_.cell_columns());
  auto column = static_cast<size_t>(future_);
  double newest = 0;
  double newer = both_set_[occupied[column]];
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_); ++pair) {
    column = (column + columns - 1) % columns;
    const double older = both_set_[occupied[column]];
    sums.pair[pair] += newer * older;
    sums.with_newer[pair] += newest * newer * older;
    newest = newer;
    newer = older;
  }
}

double SlicedEstimate::Fpp(const Sums& sums, int64_t lines) const {
  const auto of_all_lines = [&](double sum) {
    return std::pow(sum / static_cast<double>(lines), shape_.lines_per_id);
  };
  double none = 1;
  double newer = 0;
  for (size_t pair = 0; pair + 1 < static_cast<size_t>(live_) && none > 0; ++pair) {
    const double one = of_all_lines(sums.pair[pair]);
    // Given that there is none at the newer pair.
    none *= 1 - (one - of_all_lines(sums.with_newer[pair])) / (1 - newer);
    newer = one;
  }
  return 1 - std::max(none, 0.0);
}

double SlicedEstimate::Fpp() const { return Fpp(Total(), lines_); }

double SlicedEstimate::Deviation(int64_t of_lines) const {
  constexpr auto kPartCount = static_cast<int64_t>(kParts);
  if (lines_ < kPartCount || lines_ >= of_lines) return 0;
  const Sums total = Total();
  std::array<double, kParts> without{};
  double mean = 0;
  for (size_t part = 0; part < kParts; ++part) {
    Sums rest = total;
    for (size_t pair = 0; pair < rest.pair.size(); ++pair) {
      rest.pair[pair] -= sums_[part].pair[pair];
      rest.with_newer[pair] -= sums_[part].with_newer[pair];
    }
    const int64_t lines_in_part = (lines_ - static_cast<int64_t>(part) + kPartCount - 1) / kPartCount;
    without[part] = Fpp(rest, lines_ - lines_in_part);
    mean += without[part] / kParts;
  }
  double squares = 0;
  for (const double value : without) squares += (value - mean) * (value - mean);
  const double not_counted = 1 - static_cast<double>(lines_) / static_cast<double>(of_lines);
  return std::sqrt(squares * (kParts - 1) / kParts * not_counted);
}

SlicedEstimate::Sums SlicedEstimate::Total() const {
  Sums total;
  for (const Sums& sums : sums_) {
    for (size_t pair = 0; pair < total.pair.size(); ++pair) {
      total.pair[pair] += sums.pair[pair];
      total.with_newer[pair] += sums.with_newer[pair];
    }
  }
  return total;
}

}  // namespace lethe
