// The false-positive model of the sliced forgetful Bloom filter (src/filter/sliced_lines.h).
//
// The load of an interval is the sum over its inserts of 1 / lines. An id touches `lines_per_id` lines,
// so a line is touched by Poisson(load x lines_per_id) ids of the interval; the lines' loads vary, which
// is why a column's overall fill says too little. In a touched line an id sets two different cells of
// each parity, so after n ids both cells of a probe are set with the probability
//   both(n) = 1 - 2 (1 - 2/c)^n + ((c - 2)(c - 3) / (c (c - 1)))^n      (c cells in a line).
// Two neighbouring columns share one interval's ids, each under a mapping of its own, and each holds the
// ids of one more interval. Given the line's loads they are independent, so the pair of an interval with
// load y between intervals with loads x and z is a false positive with the probability
//   (E_y[ E_x[both(x + y)] E_z[both(y + z)] ]) ^ lines_per_id.
//
// Pure functions; a pair costs some microseconds.
#ifndef LETHE_FPP_SLICED_MODEL_H_
#define LETHE_FPP_SLICED_MODEL_H_

#include "absl/types/span.h"

namespace lethe {

// What the model needs to know of a layout. Every line has 64 bytes.
struct SlicedShape {
  int columns = 16;      // generations, N + 2, one bit of a cell each
  int lines_per_id = 4;  // L

  // The bits of a cell: as few as there are words for.
  int cell_columns() const { return columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
  int cells_per_line() const { return 512 / cell_columns(); }
};

// The layout for a target.
//
// The rows were made by searching columns of 16, 32 and 64, 1 to 7 lines and 1 to 4 cells per line with
// this model for the fewest bits per id; of those within a twentieth of the best with at most six lines
// the one with the fewest lines was taken. 16 columns and two cells win everywhere: wider cells leave a
// line so few of them that the lines' loads vary more than the finer generations save.
//   target        lines   bits per id of the guaranteed window (1e-2, 1e-3 / 1e-4, 1e-5 / ...)
//   >= 1e-3       3       18, 25
//   >= 1e-5       4       30, 37
//   >= 1e-7       5       43, 50
//   below         6       55, 63
SlicedShape SlicedShapeFor(double target_fpp);

// The FPP of the pair of columns that share an interval of load `shared`; the other intervals that the
// two hold have the loads `older` and `newer`.
double SlicedPairFpp(const SlicedShape& shape, double older, double shared, double newer);

// The FPP of a filter whose intervals have these loads, oldest first, the present one last. The first is
// no longer answered for; its ids merely lie in the oldest column. Empty or one load: 0.
double SlicedFpp(const SlicedShape& shape, absl::Span<const double> loads);

// The load at which an interval is full: columns - 1 pairs of full intervals sum to the target.
double SlicedCap(const SlicedShape& shape, double target_fpp);

// Intervals that the columns hold besides the present one, when a sixteenth of an interval goes to sweeping.
double SlicedWindowIntervals(const SlicedShape& shape);

// Memory per id of the guaranteed window, in bits, with full intervals.
double SlicedBitsPerId(const SlicedShape& shape, double target_fpp);

}  // namespace lethe

#endif  // LETHE_FPP_SLICED_MODEL_H_
