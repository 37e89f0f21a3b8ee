// The false-positive rate of a sliced filter from the bits that are really set.
#ifndef LETHE_SRC_REFERENCE_SLICED_SLICED_ESTIMATE_H_
#define LETHE_SRC_REFERENCE_SLICED_SLICED_ESTIMATE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/reference/sliced/sliced_model.h"

namespace lethe {

// Made line by line, since lines are unequally full and a false positive needs several full places in the
// same few lines: from a column's overall fill it would come out at less than half of the truth. A probe
// finds both its cells of a parity set, in a line with `occ` of c cells set, with the probability
// occ (occ - 1) / (c (c - 1)); that of a pair of columns is the mean over lines of the product of both, to
// the power of the lines of an id. Two neighbouring pairs have a column in common, so that they are met
// together more often than by chance; that of both is the same mean over the three columns' product, and the
// pairs make a chain in which each depends on the one before. (Taken for
// independent they would come out 8 % too high at a rate of 0.1, 2.6 % at 1e-2, 0.9 % at 1e-3, 0.03 % at
// 1e-6.)
//
// The lines of an id are independent and uniform (SlicedLines::Word), one line met twice included; so where
// all lines are counted this is no estimate, but the probability that the filter as it is calls a new id a
// duplicate, and its interval is that number. What is measured then varies as a count does, and no more.
// Where a part of the lines is counted, Deviation() says how far off that may be.
//
// Thread safety: none.
class SlicedEstimate {
 public:
  // Of the `live` columns that end at column `future` (modulo the bits of a cell).
  SlicedEstimate(const SlicedShape& shape, int future, int live);

  // Adds a line: for each column, the cells that have its bit set.
  void AddLine(absl::Span<const uint8_t> occupied);

  double Fpp() const;
  // The standard deviation of Fpp() as an estimate from a sample of that many lines: by leaving out a part of
  // the sample after the other (a jackknife), less the share of the variance that goes with what was counted
  // (the correction for a finite population, 1 - sample / lines). 0 if the lines added are all there are, or
  // fewer than parts.
  double Deviation(int64_t of_lines) const;

 private:
  static constexpr size_t kParts = 32;
  // Sums over lines. Pair i is that of the i-th newest column and the next older one.
  struct Sums {
    std::array<double, 64> pair{};
    std::array<double, 64> with_newer{};  // of pair i and pair i - 1 together; 0 for the first
  };

  Sums Total() const;
  double Fpp(const Sums& sums, int64_t lines) const;

  const SlicedShape shape_;
  const int future_;
  const int live_;
  int64_t lines_ = 0;
  // Of occ cells set: the probability that both cells of a probe are.
  std::array<double, 65> both_set_{};
  std::array<Sums, kParts> sums_{};  // line i in part i mod kParts
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_SLICED_ESTIMATE_H_
