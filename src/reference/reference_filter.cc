#include "src/reference/reference_filter.h"

#include "src/engines/ranges.h"
#include "src/published/fixed_share.h"
#include "src/reference/bloom/bloom.h"
#include "src/reference/bloom/opposite.h"
#include "src/reference/bloom/recycled.h"

namespace lethe {

absl::string_view EngineName(Reference reference) {
  switch (reference) {
    case Reference::kBloom:
      return "bloom";
    case Reference::kRecycled:
      return "recycled";
    case Reference::kOpposite:
      return "opposite";
  }
  return "unknown";
}

absl::string_view BrokenPromise(Reference reference) {
  switch (reference) {
    case Reference::kBloom:
      return "it promises no bound on false positives: it never forgets, so more and more good events are "
             "dropped, in the end all";
    case Reference::kRecycled:
      return "it promises no horizon: it forgets all ids at each multiple of the horizon, and copies of "
             "earlier events pass";
    case Reference::kOpposite:
      return "it promises no horizon: it forgets an id when another takes its slot, and its copies pass "
             "then";
  }
  return "";
}

EngineLimits LimitsOf(Reference reference) {
  return {.name = EngineName(reference),
          .lowest_fpp = kLowestTargetFpp,
          .highest_fpp = kHighestTargetFpp,
          .smallest_filter_bytes = kSmallestShareBytes};
}

absl::StatusOr<std::unique_ptr<Filter>> NewFilter(Reference reference, const FilterOptions& options) {
  if (absl::Status status = Validate(options, LimitsOf(reference)); !status.ok()) return status;
  switch (reference) {
    case Reference::kBloom:
      return Bloom::Create(options);
    case Reference::kRecycled:
      return Recycled::Create(options);
    case Reference::kOpposite:
      return Opposite::Create(options);
  }
  return absl::InvalidArgumentError("no such filter");
}

}  // namespace lethe
