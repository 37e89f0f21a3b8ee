// What a sliced filter needs under a steady load.
#ifndef LETHE_TESTS_SUPPORT_SLICED_PLAN_H_
#define LETHE_TESTS_SUPPORT_SLICED_PLAN_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/reference/sliced/sliced_model.h"

namespace lethe {

// Lines of 64 bytes for so many ids in a horizon: a sixteenth more than the model's mean, since intervals end
// at whole steps and arrivals scatter.
inline double SlicedLinesFor(double ids, double target_fpp) {
  const SlicedShape shape = SlicedShapeFor(target_fpp);
  const double ids_per_line = SlicedCap(shape, target_fpp) * SlicedWindowIntervals(shape) / (1 + 1.0 / 16);
  return std::max<double>(kFewestSlicedLines, std::ceil(ids / ids_per_line));
}

// The memory limit of a stage in which filters double as they need it: twice that, and the audit's eighth.
inline int64_t SlicedLimitBytes(double ids, double target_fpp) {
  return static_cast<int64_t>(2 * 8.0 / 7 * 64 * SlicedLinesFor(ids, target_fpp)) + (64 << 10);
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_SLICED_PLAN_H_
