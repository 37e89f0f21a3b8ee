// What the benchmark of shapes goes by: its model is the engine's where the engine has the shape, and its
// lines do as the model says where it has not.
#include "tests/bench/shape_model.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/bench/shaped_lines.h"

namespace lethe::bench {
namespace {

TEST(ShapeModel, IsTheEnginesForTheEnginesShapes) {
  for (const double target : {1e-2, 1e-4, 1e-6, 1e-9}) {
    for (const int columns : {16, 32, 64}) {
      for (const int lines : {2, 4, 6}) {
        const double expected = SlicedBitsPerId({.columns = columns, .lines_per_id = lines}, target);
        const Shape shape = {.columns = columns, .lines_per_id = lines};
        EXPECT_NEAR(ShapeBitsPerId(shape, target) / expected, 1, 1e-5) << columns << " " << lines;
      }
    }
  }
}

TEST(ShapeModel, NoShapeIsUnderTheLimit) {
  for (const int columns : {16, 32, 64}) {
    for (const int lines : {2, 4, 8}) {
      for (const int cells : {1, 2, 3}) {
        for (const int bytes : {64, 128}) {
          const Shape shape = {columns, lines, cells, bytes};
          EXPECT_GT(ShapeBitsPerId(shape, 1e-4), LimitBitsPerId(shape, 1e-4));
        }
      }
    }
  }
}

struct alignas(128) Line {
  char bytes[128] = {};
};

IdHash RandomId(std::mt19937_64& random) {
  const uint64_t a = random();
  return {a, random()};
}

// Within a line: different ones, and each as often as any other.
template <typename Cell, int kCellsPerLine, int kBytes>
void ExpectDifferentCells() {
  using Lines = ShapedLines<Cell, 1, kCellsPerLine, kBytes>;
  constexpr size_t kCells = kBytes / sizeof(Cell);
  constexpr int kIds = 100'000;
  std::mt19937_64 random(1);
  Line memory;
  const Lines lines(memory.bytes, 1);
  std::vector<double> times(kCells, 0.0);
  for (int i = 0; i < kIds; ++i) {
    const typename Lines::Places places = lines.Find(RandomId(random));
    for (const auto& cells : {places.even, places.odd}) {
      EXPECT_EQ(std::set<Cell*>(cells.begin(), cells.end()).size(), static_cast<size_t>(kCellsPerLine));
      for (const Cell* cell : cells)
        ++times.at(static_cast<size_t>(cell - reinterpret_cast<Cell*>(memory.bytes)));
    }
  }
  const double mean = 2.0 * kIds * kCellsPerLine / static_cast<double>(kCells);
  for (const double count : times) EXPECT_NEAR(count, mean, 6 * std::sqrt(mean));
}

TEST(ShapedLines, AnIdHasDifferentCells) {
  ExpectDifferentCells<uint16_t, 1, 64>();
  ExpectDifferentCells<uint16_t, 2, 64>();
  ExpectDifferentCells<uint16_t, 3, 64>();
  ExpectDifferentCells<uint16_t, 3, 128>();
  ExpectDifferentCells<uint32_t, 3, 64>();
  ExpectDifferentCells<uint64_t, 3, 64>();
}

// Equal intervals, of which each sets two columns. Asked for are those that have neighbours on both sides.
template <typename Cell, int kLinesPerId, int kCellsPerLine, int kBytes>
void ExpectModelledRate(double load) {
  using Lines = ShapedLines<Cell, kLinesPerId, kCellsPerLine, kBytes>;
  constexpr int kIntervals = 14;
  constexpr int64_t kLines = 5000;
  constexpr int kProbes = 1'000'000;
  std::mt19937_64 random(11);
  std::vector<Line> memory(kLines * kBytes / sizeof(Line));
  Lines lines(memory.data(), kLines);
  const auto bit = [](int column) { return static_cast<Cell>(Cell{1} << column); };
  Cell pairs = 0;
  for (int i = 0; i < kIntervals; ++i) {
    const int even = i % 2 == 0 ? i : i + 1;
    const int odd = i % 2 == 0 ? i + 1 : i;
    for (int64_t j = 0; j < static_cast<int64_t>(load * kLines); ++j) {
      Lines::Set(lines.Find(RandomId(random)), bit(even), bit(odd));
    }
    if (i > 0 && i + 1 < kIntervals) pairs |= bit(i + 1);
  }
  double hits = 0;
  for (int i = 0; i < kProbes; ++i) {
    const IdHash id = RandomId(random);
    const Cell columns = lines.Columns(id);
    ASSERT_EQ(columns, Lines::Columns(lines.Find(id)));
    hits += (columns & static_cast<Cell>(columns << 1) & pairs) != 0;
  }
  const Shape shape = {Lines::kColumns, kLinesPerId, kCellsPerLine, kBytes};
  const double pair = ShapePairFpp(shape, load);
  const double expected = kProbes * (1 - std::pow(1 - pair, kIntervals - 2));
  ASSERT_GT(expected, 400);
  EXPECT_NEAR(hits, expected, 0.1 * expected + 5.5 * std::sqrt(expected));
}

TEST(ShapedLines, ErrAsTheModelSays) {
  ExpectModelledRate<uint16_t, 3, 1, 64>(1.5);
  ExpectModelledRate<uint16_t, 3, 2, 64>(1.5);
  ExpectModelledRate<uint16_t, 3, 3, 64>(1.5);
  ExpectModelledRate<uint16_t, 3, 3, 128>(3);
  ExpectModelledRate<uint32_t, 3, 3, 64>(0.8);
  ExpectModelledRate<uint64_t, 3, 2, 64>(0.5);
}

TEST(ShapedLines, ASweepTakesItsColumnAlone) {
  using Lines = ShapedLines<uint16_t, 3, 3, 128>;
  std::mt19937_64 random(5);
  std::vector<Line> memory(100);
  Lines lines(memory.data(), 100);
  std::vector<IdHash> ids(1000);
  for (IdHash& id : ids) {
    id = RandomId(random);
    Lines::Set(lines.Find(id), 1 << 4, 1 << 5);
  }
  lines.BeginSweep(1 << 4);
  lines.Advance(40);
  lines.Advance(1000);
  for (const IdHash& id : ids) EXPECT_EQ(lines.Columns(id), 1 << 5);
}

}  // namespace
}  // namespace lethe::bench
