// Filters of the literature that break the promise of Filter, each in its way, for comparisons: what a stage
// has in place of an engine of the library.
#ifndef LETHE_SRC_REFERENCE_REFERENCE_FILTER_H_
#define LETHE_SRC_REFERENCE_REFERENCE_FILTER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lethe/filter.h"
#include "src/engines/new_filter.h"

namespace lethe {

enum class Reference {
  kBloom,     // one plain Bloom filter that never forgets: its rate of false positives rises to 1
  kRecycled,  // one that is cleared on each multiple of the horizon: copies from before that pass
  kOpposite,  // a bounded array of ids: no false positives; a copy passes once its id was displaced
};

// "bloom", "recycled", "opposite".
absl::string_view EngineName(Reference reference);

// The part of Filter's promise that the filter does not keep, as a sentence.
absl::string_view BrokenPromise(Reference reference);

EngineLimits LimitsOf(Reference reference);

// As NewFilter(), in filter.h.
absl::StatusOr<std::unique_ptr<Filter>> NewFilter(Reference reference, const FilterOptions& options);

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_REFERENCE_FILTER_H_
