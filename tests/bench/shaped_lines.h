// The sliced layout's lines in any shape, to compare shapes with each other.
#ifndef LETHE_TESTS_BENCH_SHAPED_LINES_H_
#define LETHE_TESTS_BENCH_SHAPED_LINES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "lethe/event.h"
#include "src/reference/bit_positions.h"

namespace lethe::bench {

// As SlicedLines, but that an id has kCellsPerLine different cells of each parity in each of its lines, and
// that a line may be two cache lines side by side. Its only pass is a sweep.
//
// Invariant, thread safety: as SlicedLines.
template <typename Cell, int kLinesPerId, int kCellsPerLine, int64_t kBytes>
class ShapedLines {
 public:
  static_assert(kCellsPerLine >= 1 && kCellsPerLine <= 3);
  static constexpr int kColumns = 8 * sizeof(Cell);
  static constexpr int64_t kLineBytes = kBytes;
  static constexpr uint64_t kCells = kBytes / sizeof(Cell);
  static constexpr int kBitsPerId = kCellsPerLine * kLinesPerId;
  static constexpr Cell kEvenColumns = static_cast<Cell>(0x5555555555555555u);

  ShapedLines(void* memory, int64_t lines)
      : memory_(static_cast<char*>(memory)), lines_(static_cast<uint64_t>(lines)) {}

  struct Places {
    std::array<Cell*, kBitsPerId> even;
    std::array<Cell*, kBitsPerId> odd;
  };

  void Prefetch(IdHash id) const {
    for (int i = 0; i < kLinesPerId; ++i) {
      const char* const line = reinterpret_cast<const char*>(Line(Word(id, i)));
      for (int64_t part = 0; part < kBytes; part += 64) __builtin_prefetch(line + part, 1, 3);
    }
  }

  Places Find(IdHash id) const {
    Places places;
    for (int i = 0; i < kLinesPerId; ++i) {
      FindInLine(id, i, &places.even[kCellsPerLine * i], &places.odd[kCellsPerLine * i]);
    }
    return places;
  }

  static Cell Columns(const Places& places) {
    Cell even = kEvenColumns;
    Cell odd = static_cast<Cell>(~kEvenColumns);
    for (int i = 0; i < kBitsPerId; ++i) {
      even &= *places.even[i];
      odd &= *places.odd[i];
    }
    return even | odd;
  }
  // The same, line by line.
  Cell Columns(IdHash id) const {
    Cell even = kEvenColumns;
    Cell odd = static_cast<Cell>(~kEvenColumns);
    for (int i = 0; i < kLinesPerId; ++i) {
      Cell* even_cells[kCellsPerLine];
      Cell* odd_cells[kCellsPerLine];
      FindInLine(id, i, even_cells, odd_cells);
      for (int j = 0; j < kCellsPerLine; ++j) {
        even &= *even_cells[j];
        odd &= *odd_cells[j];
      }
    }
    return even | odd;
  }

  static void Set(const Places& places, Cell even_column, Cell odd_column) {
    for (int i = 0; i < kBitsPerId; ++i) {
      *places.even[i] |= even_column;
      *places.odd[i] |= odd_column;
    }
  }

  // Begins a pass that takes the bits in `clear` out of all lines; Advance takes it that many lines further.
  void BeginSweep(Cell clear) {
    keep_ = static_cast<Cell>(~clear);
    for (int bits = kColumns; bits < 64; bits *= 2) keep_ |= keep_ << bits;
    swept_ = 0;
  }
  void Advance(int64_t lines) {
    const uint64_t keep = keep_;
    const uint64_t end = swept_ + std::min(static_cast<uint64_t>(lines), lines_ - swept_);
    char* const stop = memory_ + end * kLineBytes;
    for (char* at = memory_ + swept_ * kLineBytes; at != stop; at += sizeof keep) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      word &= keep;
      memcpy(at, &word, sizeof word);
    }
    swept_ = end;
  }

  int64_t lines() const { return static_cast<int64_t>(lines_); }

 private:
  static uint64_t Word(IdHash id, int i) { return id.a + static_cast<uint64_t>(i) * (id.b | 1); }

  Cell* Line(uint64_t word) const {
    return reinterpret_cast<Cell*>(memory_ + ScaleDown(word, lines_) * kLineBytes);
  }

  void FindInLine(IdHash id, int i, Cell** even, Cell** odd) const {
    const uint64_t word = Word(id, i);
    Cell* const line = Line(word);
    const uint64_t bits = word * 0x9E3779B97F4A7C15u;
    FindDifferent(line, bits >> 32, even);
    FindDifferent(line, bits & kFraction, odd);
  }

  // Different cells of a line, all choices being equally likely: `bits`, a fraction of 2^32, is read as
  // digits that have as many values as there are cells left.
  static void FindDifferent(Cell* line, uint64_t bits, Cell** cells) {
    const uint64_t first = TakeDigit(kCells, &bits);
    cells[0] = line + first;
    if constexpr (kCellsPerLine > 1) {
      const uint64_t apart = 1 + TakeDigit(kCells - 1, &bits);
      cells[1] = line + (first ^ apart);
      if constexpr (kCellsPerLine > 2) {
        const uint64_t other = 1 + TakeDigit(kCells - 2, &bits);
        cells[2] = line + (first ^ (other + (other >= apart ? 1 : 0)));
      }
    }
  }
  static uint64_t TakeDigit(uint64_t values, uint64_t* bits) {
    const uint64_t product = *bits * values;
    *bits = product & kFraction;
    return product >> 32;
  }

  static constexpr uint64_t kFraction = 0xffffffffu;

  char* const memory_;
  const uint64_t lines_;
  uint64_t keep_ = ~uint64_t{0};
  uint64_t swept_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_SHAPED_LINES_H_
