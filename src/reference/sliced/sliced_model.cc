#include "src/reference/sliced/sliced_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lethe {
namespace {

// Above this many ids in a line nothing is left to tell apart.
constexpr double kSaturated = 400;

// The probabilities of 0, 1, 2, ... for a Poisson variable, as far as they matter.
std::vector<double> Poisson(double mean) {
  const auto size = static_cast<size_t>(mean + 9 * std::sqrt(mean) + 12);
  std::vector<double> probabilities(size, 0.0);
  if (mean <= 0) {
    probabilities[0] = 1;
    return probabilities;
  }
  const double log_mean = std::log(mean);
  double log_factorial = 0;
  for (size_t n = 0; n < size; ++n) {
    if (n > 0) log_factorial += std::log(static_cast<double>(n));
    probabilities[n] = std::exp(static_cast<double>(n) * log_mean - mean - log_factorial);
  }
  return probabilities;
}

// both(n) of the header, for n below `size`.
std::vector<double> BothSet(const SlicedShape& shape, size_t size) {
  const double cells = shape.cells_per_line();
  const double one_clear = 1 - 2 / cells;
  const double two_clear = (cells - 2) * (cells - 3) / (cells * (cells - 1));
  std::vector<double> both(size);
  double one = 1;
  double two = 1;
  for (double& value : both) {
    value = std::max(0.0, 1 - 2 * one + two);
    one *= one_clear;
    two *= two_clear;
  }
  return both;
}

// E_x[both(x + y)] for y below `size`, x being the ids of an interval of that load in a line.
std::vector<double> MeanBothSet(const SlicedShape& shape, double load, size_t size) {
  const std::vector<double> own = Poisson(load * shape.lines_per_id);
  const std::vector<double> both = BothSet(shape, own.size() + size);
  std::vector<double> mean(size, 0.0);
  for (size_t y = 0; y < size; ++y) {
    for (size_t x = 0; x < own.size(); ++x) mean[y] += own[x] * both[x + y];
  }
  return mean;
}

}  // namespace

SlicedShape SlicedShapeFor(double target_fpp) {
  // Targets are read from text, so a row's own bound must not fall to the next by rounding.
  const double target = target_fpp * 1.0001;
  SlicedShape shape;
  shape.lines_per_id = target >= 1e-3 ? 3 : target >= 1e-5 ? 4 : target >= 1e-7 ? 5 : 6;
  return shape;
}

double SlicedPairFpp(const SlicedShape& shape, double older, double shared, double newer) {
  if (std::max({older, shared, newer}) * shape.lines_per_id > kSaturated) return 1;
  const std::vector<double> common = Poisson(shared * shape.lines_per_id);
  const std::vector<double> left = MeanBothSet(shape, older, common.size());
  const std::vector<double> right = MeanBothSet(shape, newer, common.size());
  double line = 0;
  for (size_t y = 0; y < common.size(); ++y) line += common[y] * left[y] * right[y];
  return std::pow(line, shape.lines_per_id);
}

double SlicedFpp(const SlicedShape& shape, absl::Span<const double> loads) {
  double none = 1;
  for (size_t i = 1; i < loads.size(); ++i) {
    const double newer = i + 1 < loads.size() ? loads[i + 1] : 0;
    none *= 1 - SlicedPairFpp(shape, loads[i - 1], loads[i], newer);
  }
  return 1 - none;
}

double SlicedCap(const SlicedShape& shape, double target_fpp) {
  double low = 0;
  double high = 16;
  for (int i = 0; i < 40; ++i) {
    const double load = (low + high) / 2;
    const double fpp = (shape.columns - 1) * SlicedPairFpp(shape, load, load, load);
    (fpp > target_fpp ? high : low) = load;
  }
  return low;
}

double SlicedWindowIntervals(const SlicedShape& shape) { return shape.columns - 2 - 1.0 / 16; }

double SlicedBitsPerId(const SlicedShape& shape, double target_fpp) {
  return 512 / (SlicedCap(shape, target_fpp) * SlicedWindowIntervals(shape));
}

}  // namespace lethe
