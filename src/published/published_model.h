// The false-positive probability of the N-FBF: as its paper has it, and with what generations share.
//
// Subramanyam, Gupta, Leslie, Wang: "Idempotent Distributed Counters Using a Forgetful Bloom Filter",
// section IV. Everywhere: m bits in a generation, k bits set per id, generations newest first (future,
// present, past 1, ..., past N).
#ifndef LETHE_SRC_PUBLISHED_PUBLISHED_MODEL_H_
#define LETHE_SRC_PUBLISHED_PUBLISHED_MODEL_H_

#include <vector>

#include "absl/types/span.h"

namespace lethe {

// Equation 1, for one Bloom filter with `ids` in it: (1 - e^(-k ids / m))^k. The middle form that is
// printed there, (1 - (1 - 1/l)^(mk)), is a misprint; (1 - (1 - 1/m)^(k l))^k is meant, of which this is
// the usual approximation.
double BloomFpp(double ids, double bits, int hashes);

// Equation 3 (Equation 2 when there are three generations): one minus the product of (1 - phi) over the
// checks, which are the future alone, the pairs (present, past 1) to (past N - 1, past N), and past N
// alone; phi is the product of the generations' probabilities. At least three generations.
//
// It takes the generations for independent. That is false for neighbours: they hold one interval's ids
// in common, and those set the same bits in both. With m = 100,000, k = 5, N = 8 and 4,000 ids in each
// interval, 0.0065 of new ids are called contained on average, and Equation 3 says 0.0040. What it is at
// each moment, FppWithSharedIntervals below says, and that is what the filters report and decide on;
// Equation 3 is here to be compared with.
double PublishedFpp(absl::Span<const double> generation_fpp);

// set_in_all[first][i] is the share of the m positions that are set in each of the generations
// first .. first + i. A row may end early: what is missing is taken for 0.
using RunFills = std::vector<std::vector<double>>;

// Whether a run with that share set can be missing: new ids meet it so rarely that it adds nothing.
bool IsNegligibleRun(double set_in_all, int hashes);

// The probability that the checks named above call a new id contained, given how often neighbours are
// set in the same position. Generations that are not neighbours have no id in common and are taken for
// independent, which they are, given their loads. No bound or approximation otherwise: overlapping
// checks, such as (past N - 1, past N) and past N alone, are counted once.
double FppFromRunFills(const RunFills& set_in_all, int hashes);

// The same from the loads: interval_ids[j] ids were inserted j intervals ago (0: the current one), of
// which generation j and generation j + 1 hold a copy. One interval per generation, at least two. It is the
// mean over all filters with these loads; how full one filter really became, its bits say.
double FppWithSharedIntervals(absl::Span<const double> interval_ids, double bits, int hashes);

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_PUBLISHED_MODEL_H_
