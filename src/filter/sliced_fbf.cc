#include "src/filter/sliced_fbf.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/filter/sliced_fbf_impl.h"
#include "src/fpp/sliced_model.h"

namespace lethe {
namespace {

SlicedShape ShapeFor(double target_fpp, int past_generations) {
  SlicedShape shape = SlicedShapeFor(target_fpp);
  shape.columns = past_generations + 2;
  return shape;
}

// Calls visit(Cell{}) with the cell that such a shape has.
template <typename Visit>
auto WithCell(const SlicedShape& shape, Visit visit) {
  switch (shape.cell_columns()) {
    case 16:
      return visit(uint16_t{});
    case 32:
      return visit(uint32_t{});
    default:
      return visit(uint64_t{});
  }
}

}  // namespace

int64_t SmallestSlicedFbfBytes(int past_generations) {
  const SlicedShape shape = ShapeFor(kHighestSlicedTarget, past_generations);
  return WithCell(shape, [&](auto cell) {
    using Cell = decltype(cell);
    return std::max(
        {SlicedFbf<Cell, 3>::SmallestBytes(shape.columns), SlicedFbf<Cell, 4>::SmallestBytes(shape.columns),
         SlicedFbf<Cell, 5>::SmallestBytes(shape.columns), SlicedFbf<Cell, 6>::SmallestBytes(shape.columns)});
  });
}

absl::StatusOr<std::unique_ptr<Filter>> NewSlicedFbf(const FilterOptions& options, int past_generations) {
  if (past_generations < 1 || past_generations > kMostPastGenerations) {
    return absl::InvalidArgumentError(
        absl::StrCat("past_generations: ", past_generations, " is not from 1 to ", kMostPastGenerations));
  }
  const SlicedShape shape = ShapeFor(options.target_fpp, past_generations);
  return WithCell(shape, [&](auto cell) { return NewSlicedFbfOf<decltype(cell)>(options, shape); });
}

}  // namespace lethe
