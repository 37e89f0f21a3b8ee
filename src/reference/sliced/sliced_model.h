// The false-positive model of the sliced forgetful Bloom filter (src/reference/sliced/sliced_lines.h).
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
// Three things are left out.
//
// *Chance between filters.* The lines of an id are independent (SlicedLines::Word), one met twice included:
// of a given filter the mean over its lines, to the power of L = lines_per_id, is exact, and SlicedEstimate
// is that. But in a filter of few lines that mean itself varies, and the mean of a power is more than the
// power of the mean. With p a line's probability and n_i the ids of an interval in it, of which the sum over
// all lines is given,
//   E[(mean of p)^L] = E[p]^L (1 + C(L, 2) v / lines),
//   v = (Var p - sum of Cov(p, n_i)^2 / Var n_i) / E[p]^2,
// less L / (2 lines) times the sum of E n_i E[second difference of p by n_i] / E[p], since the ids in a line
// are rather binomial than Poisson. For full intervals in the fewest lines that a filter has these come to
//   target         1e-2   1e-3   1e-4   1e-6   1e-9   1e-12
//   more by        0.1 %  0.2 %  0.4 %  1.0 %  2.6 %  6.5 %
// and to 1 / n of that in n times as many.
//
// *Neighbours.* Two neighbouring pairs have a column in common and are met together more often than here: the
// model is 8 % too high at 0.1, 2.6 % at 1e-2, 0.9 % at 1e-3, 0.03 % at 1e-6.
//
// *Whole ids.* An interval ends with the id, or the step of up to a 64th of its ids, that brings it to the
// cap; on the other side, when it does, the oldest column has been swept and is missing. Steadily full
// filters of 128 lines had, with chance and neighbours, 0.87 to 0.94 of the target at 1e-2 to 1e-9, and 1.12
// at 1e-12, where an interval has 50 ids and one more is a fifth more false positives.
//
// Pure functions; a pair costs some microseconds.
#ifndef LETHE_SRC_REFERENCE_SLICED_SLICED_MODEL_H_
#define LETHE_SRC_REFERENCE_SLICED_SLICED_MODEL_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace lethe {

// What the model needs to know of a layout. Every line has 64 bytes.
struct SlicedShape {
  int columns = 16;      // generations, N + 2, one bit of a cell each
  int lines_per_id = 4;  // L

  // The bits of a cell: as few as there are words for.
  int cell_columns() const { return columns <= 8 ? 8 : columns <= 16 ? 16 : columns <= 32 ? 32 : 64; }
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

// No filter has fewer lines; where cells are wider than 16 bits none has fewer cells than so many lines of
// those (with 128 lines of 8 cells, chance between filters was 2.4 % over a target of 1e-6).
inline constexpr int64_t kFewestSlicedLines = 128;
inline int64_t FewestSlicedLines(const SlicedShape& shape) {
  return kFewestSlicedLines * std::max(1, shape.cell_columns() / 16);
}

// The load at which an interval is full: columns - 1 pairs of full intervals sum to the target.
double SlicedCap(const SlicedShape& shape, double target_fpp);

// Intervals that the columns hold besides the present one, when a sixteenth of an interval goes to sweeping.
double SlicedWindowIntervals(const SlicedShape& shape);

// Memory per id of the guaranteed window, in bits, with full intervals.
double SlicedBitsPerId(const SlicedShape& shape, double target_fpp);

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_SLICED_MODEL_H_
