// The false-positive rate of a sliced filter from the bits that are really set.
#ifndef LETHE_FPP_SLICED_ESTIMATE_H_
#define LETHE_FPP_SLICED_ESTIMATE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "src/fpp/sliced_model.h"

namespace lethe {

// Made line by line, since lines are unequally full and a false positive needs several full places in the
// same few lines: from a column's overall fill it would come out at less than half of the truth. A probe
// finds both its cells of a parity set, in a line with `occ` of c cells set, with the probability
// occ (occ - 1) / (c (c - 1)); that of a pair of columns is the mean over lines of the product of both, to
// the power of the lines of an id.
//
// Thread safety: none.
class SlicedEstimate {
 public:
  // Of the `live` columns that end at column `future` (modulo the bits of a cell).
  SlicedEstimate(const SlicedShape& shape, int future, int live);

  // Adds a line: for each column, the cells that have its bit set.
  void AddLine(absl::Span<const uint8_t> occupied);

  double Fpp() const;
  // The standard deviation of Fpp() as an estimate from a sample of lines: by leaving out a part of the lines
  // after the other (a jackknife). 0 with fewer lines than parts.
  double Deviation() const;

 private:
  static constexpr size_t kParts = 32;
  // Sums over lines, of the pair of the i-th newest column and the next older one.
  using PairSums = std::array<double, 64>;

  PairSums Total() const;
  double Fpp(const PairSums& sums, int64_t lines) const;

  const SlicedShape shape_;
  const int future_;
  const int live_;
  int64_t lines_ = 0;
  // Of occ cells set: the probability that both cells of a probe are.
  std::array<double, 65> both_set_{};
  std::array<PairSums, kParts> sums_{};  // line i in part i mod kParts
};

}  // namespace lethe

#endif  // LETHE_FPP_SLICED_ESTIMATE_H_
