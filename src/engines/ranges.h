// What a filter may be asked for.
#ifndef LETHE_SRC_ENGINES_RANGES_H_
#define LETHE_SRC_ENGINES_RANGES_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lethe {

// Stream time counts milliseconds, so a shorter horizon says nothing. The upper end only keeps sums of
// times far from their limits.
inline constexpr absl::Duration kShortestHorizon = absl::Milliseconds(1);
inline constexpr absl::Duration kLongestHorizon = absl::Hours(24 * 36525);

// The lowest is where figures end, not where hashes do.
//
// *Hashes.* An id is its 128 bits (IdHash), of which the ids of one shard have up to eight in common. So a
// new id has the hash of one of the n that are stored with the chance n / 2^120. The largest memory limit, 64
// TiB, holds fewer than 2^46 ids at any target: that floor is below 2^-74, or 6e-23, under every rate of any
// engine.
//
// *Figures.* A rate is computed as one less a product over the pairs of generations, each factor and each
// product rounded by 2^-54 at most: for 63 pairs wrong by up to 7e-15. That is less than a hundredth of
// 1e-12, and all of 1e-14; and who steers by a figure must be able to trust it.
//
// *Measurements.* At 1e-12 a filter that judges a million ids a second takes eleven days to a false positive.
// Under that no audit, no test and no user would ever see whether the target is kept.
inline constexpr double kLowestTargetFpp = 1e-12;

// Of compact, which gains nothing above. Other engines take what is a probability at all.
inline constexpr double kHighestDefaultTarget = 0.1;
inline constexpr double kHighestTargetFpp = 0.99;

// For a value that is out of its range.
inline absl::Status Invalid(absl::string_view option, absl::string_view wrong, absl::string_view nearest) {
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", wrong, "; the nearest that can be is ", nearest));
}

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_RANGES_H_
