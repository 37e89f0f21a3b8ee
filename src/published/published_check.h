// What the filters on the published layout have in common: the check, and the look at their bits.
#ifndef LETHE_SRC_PUBLISHED_PUBLISHED_CHECK_H_
#define LETHE_SRC_PUBLISHED_PUBLISHED_CHECK_H_

#include <cstddef>

#include "absl/types/span.h"
#include "src/published/bit_array.h"

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

// What the set bits of generations (newest first, at least two, of one size) imply.
struct PublishedEstimate {
  double fpp = 0;
  // The standard deviation of `fpp` as an estimate from a sample of words: by leaving out a 32nd of the
  // sample after the other (a jackknife), and less as the sample comes nearer to all words. 0 if it is all
  // words.
  double deviation = 0;
  double present_fill = 0;  // the share of the present's bits that are set
};

// From 4096 words of each generation, the same in all, or from all words if there are fewer.
PublishedEstimate EstimatePublished(absl::Span<const BitArray* const> generations);

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_PUBLISHED_CHECK_H_
