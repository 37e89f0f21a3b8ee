// What the filters on the published layout have in common: the check, and the look at their bits.
#ifndef LETHE_SRC_FILTER_PUBLISHED_CHECK_H_
#define LETHE_SRC_FILTER_PUBLISHED_CHECK_H_

#include <cstddef>

#include "absl/types/span.h"
#include "src/filter/bit_array.h"
#include "src/fpp/published_model.h"

namespace lethe {

// Algorithm 2 of the Forgetful Bloom Filter's paper, in its text's order: the future alone; the pairs
// (present, past 1), (past 1, past 2), ...; and the oldest alone, always, last. in(age) says whether the id
// is in a generation, 0 being the future; there are at least two.
template <typename In>
bool PublishedCheck(size_t generations, const In& in) {
  if (in(0)) return true;
  const size_t oldest = generations - 1;
  bool in_newer = false;
  for (size_t age = 1; age <= oldest; ++age) {
    const bool in_this = in(age);
    if (in_this && (in_newer || age == oldest)) return true;
    in_newer = in_this;
  }
  return false;
}

// How full the runs of generations (newest first, of one size) are, from some 260,000 positions of each.
RunFills SampleRunFills(absl::Span<const BitArray* const> generations);

// The share of a generation's own bits that are set.
inline double FillOf(const RunFills& fills, size_t generation) {
  return fills[generation].empty() ? 0 : fills[generation].front();
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_PUBLISHED_CHECK_H_
