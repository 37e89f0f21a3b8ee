// The sliced forgetful Bloom filter: the default engine.
#ifndef LETHE_SRC_REFERENCE_SLICED_SLICED_FBF_H_
#define LETHE_SRC_REFERENCE_SLICED_SLICED_FBF_H_

#include <memory>

#include "absl/status/statusor.h"
#include "lethe/filter.h"

namespace lethe {

// The past generations (N) that one has at most: what users get, and what it can be made with.
inline constexpr int kDefaultPastGenerations = 14;
inline constexpr int kMostPastGenerations = 61;

// A forgetful Bloom filter (Subramanyam, Gupta, Leslie, Wang: "Idempotent Distributed Counters Using a
// Forgetful Bloom Filter") with its generations as bits of a cell (sliced_lines.h), which sizes itself
// (src/reference/sliced/budget.h). It starts with some KiB and grows with its load, in place and without a
// stall: such work is spread over insertions, none of which does more than some ten microseconds of it, page
// faults aside.
//
// Where it departs from the paper: an id is looked for in pairs of neighbouring generations only, also at
// both ends (an id of the present interval is in future and present; one that is in the oldest alone is
// at the end of its time), so every term of the false-positive rate is a product of two.
//
// Horizon and target have been found valid, and there is a budget; the engine is not looked at.
// `past_generations` is the most that there are (N), from 1 to kMostPastGenerations; N and t follow the load
// under it. Cells have 8, 16, 32 or 64 bits, the fewest that hold N + 2. The default takes the least memory
// (sliced_model.h) and is what users get. More generations cut the horizon more finely, for more bits per id;
// with fewer than five, a load that rises a hundredfold just before an interval ends has no column to spare
// while lines are doubled, so that it was seen to take up to 6.5 times what it needs, instead of up to 2.1,
// and with one or two what a load needs is some five or three times as much, and memory is kept for two or
// three horizons more when it falls. ResourceExhausted if the memory budget has no room for the smallest
// filter.
absl::StatusOr<std::unique_ptr<Filter>> NewSlicedFbf(const FilterOptions& options,
                                                     int past_generations = kDefaultPastGenerations);

// What one takes to begin with, at most, whatever the budget and the target: with n times as much n of them
// can be made.
int64_t SmallestSlicedFbfBytes(int past_generations = kDefaultPastGenerations);

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_SLICED_FBF_H_
