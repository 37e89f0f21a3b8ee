#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/bench/contender.h"
#include "tests/bench/fixed_sliced.h"
#include "tests/bench/layouts.h"
#include "tests/bench/shape_model.h"
#include "tests/bench/shaped_lines.h"
#include "tests/bench/tables.h"

namespace lethe::bench {
namespace {

constexpr double kWindow = 1e7;
// Of the fewest bits: what needs more is not measured.
constexpr double kMostOverBest = 1.15;

struct Candidate {
  Shape shape;
  absl::StatusOr<Layout> (*make)(int64_t lines);
};

template <typename Cell, int kLinesPerId, int kCellsPerLine, int64_t kLineBytes>
void AddShape(std::vector<Candidate>* candidates) {
  using Lines = ShapedLines<Cell, kLinesPerId, kCellsPerLine, kLineBytes>;
  candidates->push_back(
      {{.columns = Lines::kColumns,
        .lines_per_id = kLinesPerId,
        .cells_per_line = kCellsPerLine,
        .line_bytes = kLineBytes},
       [](int64_t lines) {
         return OnLines("sliced", Lines::kColumns, lines * kLineBytes, [&](LineMemory memory) {
           return std::make_unique<FixedSliced<Lines>>(std::move(memory), lines, kHorizonMs);
         });
       }});
}

template <typename Cell, int64_t kLineBytes, int... kLinesPerId>
void AddShapes(std::vector<Candidate>* candidates) {
  (AddShape<Cell, kLinesPerId, 1, kLineBytes>(candidates), ...);
  (AddShape<Cell, kLinesPerId, 2, kLineBytes>(candidates), ...);
  (AddShape<Cell, kLinesPerId, 3, kLineBytes>(candidates), ...);
}

std::vector<Candidate> Candidates() {
  std::vector<Candidate> candidates;
  AddShapes<uint16_t, 64, 2, 3, 4, 5, 6, 8>(&candidates);
  AddShapes<uint32_t, 64, 2, 3, 4, 5, 6, 8>(&candidates);
  AddShapes<uint64_t, 64, 2, 3, 4, 5, 6, 8>(&candidates);
  AddShapes<uint16_t, 128, 2, 3, 4, 5>(&candidates);
  return candidates;
}

bool IsChosen(const Shape& shape, double target_fpp) {
  const SlicedShape chosen = SlicedShapeFor(target_fpp);
  return shape.columns == chosen.columns && shape.lines_per_id == chosen.lines_per_id &&
         shape.cells_per_line == 2 && shape.line_bytes == 64;
}

std::string Name(const Shape& shape) {
  return absl::StrFormat("%d-bit cells, L = %d, q = %d, lines of %d bytes", shape.columns, shape.lines_per_id,
                         shape.cells_per_line, shape.line_bytes);
}

absl::Status AddRow(const Extent& extent, const Candidate& candidate, double window, double target_fpp,
                    double bits_per_id, Table* table) {
  const Shape& shape = candidate.shape;
  // A refresh sweeps at once here, so the horizon is whole intervals; they are as full as the model has it.
  const double intervals = shape.columns - 2;
  const auto lines = static_cast<int64_t>(window / intervals / ShapeCap(shape, target_fpp));
  const Plan plan = {.warm = 1.25,
                     .batched = 0.5,
                     .single = 0,
                     .each_timed = 0,
                     .false_hits = 100,
                     .most_probes = extent.quick ? 2e7 : 200 / target_fpp};
  const absl::StatusOr<Figures> figures = Measure(
      extent, {"sliced", [&] { return candidate.make(lines); }, Name(shape)}, window, target_fpp, plan);
  if (!figures.ok()) return figures.status();
  const double limit = LimitBitsPerId(shape, target_fpp);
  table->rows.push_back({absl::StrFormat("%g", target_fpp), absl::StrCat(shape.columns),
                         absl::StrCat(shape.lines_per_id), absl::StrCat(shape.cells_per_line),
                         absl::StrCat(shape.line_bytes), FigureText(bits_per_id), FigureText(limit),
                         FigureText(limit * shape.columns / intervals), FppText(*figures) + figures->fault,
                         FigureText(figures->ns_batch), IsChosen(shape, target_fpp) ? "lethe's" : ""});
  NoteFault(*figures, table);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Table> CompareShapes(const Extent& extent) {
  const double window = std::min(kWindow, extent.largest_window);
  Table table{
      .text = absl::StrFormat(
          "%s ids. An id has L lines, and in each q cells for even generations and q for odd ones. Of the "
          "shapes with cells of 16, 32 and 64 bits, L of 2, 3, 4, 5, 6 and 8, q of 1, 2 and 3 (and of those "
          "with 16-bit cells in lines of 128 bytes, L up to 5), these need at most %.0f %% more bits than "
          "the best of 64 bytes. Bits are the model's, with the sixteenth of an interval that goes to "
          "sweeping; measured is the bare layout, which sweeps at once, with intervals as full.",
          IdsText(window), 100 * (kMostOverBest - 1)),
      .columns = {"target", "cell, bits", "L", "q", "line, bytes", "bits per id",
                  "limit: 1.44 log2(pairs / FPP)", "times G / (G - 2)", "FPP measured", "ns per id, batched",
                  ""}};
  const std::vector<Candidate> candidates = Candidates();
  for (const double target_fpp : {1e-4, 1e-6}) {
    std::vector<double> bits;
    double best = 1e9;
    for (const Candidate& candidate : candidates) {
      bits.push_back(ShapeBitsPerId(candidate.shape, target_fpp));
      if (candidate.shape.line_bytes == 64) best = std::min(best, bits.back());
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (bits[i] > kMostOverBest * best && !IsChosen(candidates[i].shape, target_fpp)) continue;
      const absl::Status status = AddRow(extent, candidates[i], window, target_fpp, bits[i], &table);
      if (!status.ok()) return status;
    }
  }
  return table;
}

}  // namespace lethe::bench
