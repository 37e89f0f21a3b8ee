// Compact filters for any processor. On x86-64 only those run it that are older than AVX2 (2013), so it is
// compiled to be small there.
#include <algorithm>

#include "src/filter/compact_filter.h"
#include "src/filter/compact_filter_code.h"

namespace lethe {

absl::StatusOr<std::unique_ptr<Filter>> NewPortableCompactFilter(const FilterOptions& options) {
  return NewCompactFilterFor<AnyProcessor>(options);
}

int64_t SmallestCompactFilterBytes() {
  return LineMemory::WholePagesFor(kCompactLineBytes << kCompactLeastLevel) +
         std::max(CompactFilter<uint8_t, AnyProcessor>::OwnBytes(),
                  CompactFilter<uint16_t, AnyProcessor>::OwnBytes());
}

}  // namespace lethe
