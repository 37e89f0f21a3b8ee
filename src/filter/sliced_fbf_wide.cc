// The sliced filter with more generations than 16 bits of a cell have room for.
#include "src/filter/sliced_fbf_impl.h"

namespace lethe {

template absl::StatusOr<std::unique_ptr<Filter>> NewSlicedFbfOf<uint32_t>(const FilterOptions& options,
                                                                          const SlicedShape& shape);
template absl::StatusOr<std::unique_ptr<Filter>> NewSlicedFbfOf<uint64_t>(const FilterOptions& options,
                                                                          const SlicedShape& shape);

}  // namespace lethe
