// The compact filter: fingerprints in time order, in memory that follows the ids that are held.
#ifndef LETHE_SRC_FILTER_COMPACT_FILTER_H_
#define LETHE_SRC_FILTER_COMPACT_FILTER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lethe/filter.h"

namespace lethe {

enum class CompactCode : uint8_t { kFastest, kPortable };

// A forgetful filter with the generations of the FBF (epochs: one begins every t, the oldest is forgotten as
// a whole), which stores a fingerprint of each id where an FBF sets bits (compact_table.h). Entries can be
// moved, so the table grows and shrinks by one line of 64 bytes, without a forecast: 0.85 of its slots are
// filled before it grows, and it shrinks under 0.79. Fingerprints are as wide as the target needs: 14 bits at
// 1e-2, 26 at 1e-6, 56 at 1e-15, which is practically exact.
//
// Keeps Filter's promise. An id is forgotten an eighth of the horizon late at most. Where no memory is
// left, the oldest epoch is forgotten before its time (limit_hits counts the times).
//
// Horizon and target have been found valid, and there is a budget. ResourceExhausted if the budget has no
// room for the smallest filter.
absl::StatusOr<std::unique_ptr<Filter>> NewCompactFilter(const FilterOptions& options,
                                                         CompactCode code = CompactCode::kFastest);

// The same whose code is for any processor.
absl::StatusOr<std::unique_ptr<Filter>> NewPortableCompactFilter(const FilterOptions& options);

// The memory of a new one.
int64_t SmallestCompactFilterBytes();

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_FILTER_H_
