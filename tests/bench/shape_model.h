// The model of src/reference/sliced/sliced_model.h for shapes that the engine does not have.
#ifndef LETHE_TESTS_BENCH_SHAPE_MODEL_H_
#define LETHE_TESTS_BENCH_SHAPE_MODEL_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace lethe::bench {

// A line of line_bytes has as many cells as columns bits fit into it; an id has cells_per_line different
// cells for each parity in each of its lines.
struct Shape {
  int columns = 16;
  int lines_per_id = 4;    // L
  int cells_per_line = 2;  // q
  int line_bytes = 64;
};

// The probability that q cells of a line are set by n ids with q different cells each, for all n below
// `size`: by inclusion and exclusion over which of them are clear.
inline std::vector<double> AllSet(const Shape& shape, size_t size) {
  const double cells = 8.0 * shape.line_bytes / shape.columns;
  const int q = shape.cells_per_line;
  std::vector<double> all_set(size, 0.0);
  double ways = 1;  // to choose which `clear` of the q are clear
  for (int clear = 0; clear <= q; ++clear) {
    // That one id leaves these clear.
    double left_clear = 1;
    for (int i = 0; i < q; ++i) left_clear *= std::max(cells - clear - i, 0.0) / (cells - i);
    double term = clear % 2 == 0 ? ways : -ways;
    for (double& value : all_set) {
      value += term;
      term *= left_clear;
    }
    ways = ways * (q - clear) / (clear + 1);
  }
  return all_set;
}

// The FPP of a pair of columns when all intervals have that load, in ids over lines.
inline double ShapePairFpp(const Shape& shape, double load) {
  const double mean = load * shape.lines_per_id;
  std::vector<double> poisson(static_cast<size_t>(mean + 9 * std::sqrt(mean) + 12));
  for (size_t n = 0; n < poisson.size(); ++n) {
    const auto count = static_cast<double>(n);
    poisson[n] = std::exp(count * std::log(mean) - mean - std::lgamma(count + 1));
  }
  const std::vector<double> all_set = AllSet(shape, 2 * poisson.size());
  double line = 0;
  for (size_t shared = 0; shared < poisson.size(); ++shared) {
    double one = 0;
    for (size_t own = 0; own < poisson.size(); ++own) one += poisson[own] * all_set[own + shared];
    line += poisson[shared] * one * one;
  }
  return std::pow(line, shape.lines_per_id);
}

// The load at which the pairs sum to the target.
inline double ShapeCap(const Shape& shape, double target_fpp) {
  double low = 0;
  double high = 16.0 * shape.line_bytes / 64;
  for (int i = 0; i < 32; ++i) {
    const double load = (low + high) / 2;
    ((shape.columns - 1) * ShapePairFpp(shape, load) > target_fpp ? high : low) = load;
  }
  return low;
}

// Memory per id of the window, in bits, if a sixteenth of an interval goes to sweeping, as in the engine.
inline double ShapeBitsPerId(const Shape& shape, double target_fpp) {
  return 8 * shape.line_bytes / (ShapeCap(shape, target_fpp) * (shape.columns - 2 - 1.0 / 16));
}

// What independent bits, half of them set, would need for so many pairs: no lines, and none of the columns
// without use.
inline double LimitBitsPerId(const Shape& shape, double target_fpp) {
  return std::log2((shape.columns - 1) / target_fpp) / std::log(2);
}

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_SHAPE_MODEL_H_
