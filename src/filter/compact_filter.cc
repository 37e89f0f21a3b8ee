#include "src/filter/compact_filter.h"

#if defined(__x86_64__)
#include "src/filter/compact_filter_code.h"
#endif

namespace lethe {

absl::StatusOr<std::unique_ptr<Filter>> NewCompactFilter(const FilterOptions& options, CompactCode code) {
#if defined(__x86_64__)
  if (code == CompactCode::kFastest && RunsAvx2()) return NewCompactFilterFor<Avx2Processor>(options);
#endif
  return NewPortableCompactFilter(options);
}

}  // namespace lethe
