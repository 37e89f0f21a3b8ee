// Any number of generations in any width of cell, for windows from 10^3 to 10^9 ids: by arithmetic where they
// are large, by running them where they are small. And the plan and the filter go by the same table.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/memory/line_memory.h"
#include "src/reference/sliced/sliced_lines.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/support/filter_testing.h"
#include "tests/support/sliced_plan.h"

namespace lethe {
namespace {

constexpr double kTargets[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9};

// N + 2 generations, and one that is being swept.
template <typename Cell>
class Ring {
 public:
  using Lines = SlicedLines<Cell, 4>;
  static constexpr int kMostPast = Lines::kColumns - 3;

  Ring(int past, int64_t lines)
      : past_(past), memory_(static_cast<size_t>(lines * Lines::kLineBytes)), lines_(memory_.data(), lines) {}

  void Refresh() {
    ++future_;
    lines_.BeginSweep(Column(future_ + 1));
    while (!lines_.Advance(7)) continue;
  }
  void Insert(IdHash id) {
    const Cell future = Column(future_);
    const Cell present = Column(future_ - 1 + Lines::kColumns);
    Lines::Set(lines_.Find(id), future_ % 2 == 0 ? future : present, future_ % 2 == 0 ? present : future);
  }
  bool Contains(IdHash id) const {
    Cell pairs = 0;
    for (int i = 0; i <= past_; ++i) pairs |= Column(future_ - i + Lines::kColumns);
    const Cell columns = lines_.Columns(id);
    EXPECT_EQ(columns, Lines::Columns(lines_.Find(id)));
    return (columns & std::rotl(columns, 1) & pairs) != 0;
  }

 private:
  static Cell Column(int i) { return static_cast<Cell>(Cell{1} << (i % Lines::kColumns)); }

  const int past_;
  std::vector<char> memory_;
  Lines lines_;
  int future_ = 0;
};

template <typename Cell>
class SlicedShapes : public testing::Test {};
using Cells = testing::Types<uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(SlicedShapes, Cells);

// Every N that has room keeps N whole intervals, and forgets what is N + 1 intervals old.
TYPED_TEST(SlicedShapes, KeepsEveryNumberOfGenerations) {
  const uint64_t seed = TestSeed();
  constexpr uint64_t kIds = 1000;
  EXPECT_LE(Ring<TypeParam>::kMostPast, 61);
  for (int past = 1; past <= Ring<TypeParam>::kMostPast; ++past) {
    SCOPED_TRACE(testing::Message() << "N = " << past << ", LETHE_SEED=" << seed);
    // Far more room than needed, so that hardly any false positive hides what was forgotten.
    Ring<TypeParam> ring(past, 2048);
    const auto per_interval = std::clamp<uint64_t>(kIds / static_cast<uint64_t>(past), 1, 100);
    int forgotten_known = 0;
    for (uint64_t interval = 0; interval < 2 * static_cast<uint64_t>(past) + 80; ++interval) {
      for (uint64_t i = 0; i < per_interval; ++i) ring.Insert(NumberedId(interval * per_interval + i, seed));
      const uint64_t now = interval * per_interval;
      const uint64_t kept = std::min<uint64_t>(now, static_cast<uint64_t>(past) * per_interval);
      const uint64_t step = std::max<uint64_t>(1, kept / 50);
      for (uint64_t i = now - kept; i < now; i += step) {
        ASSERT_TRUE(ring.Contains(NumberedId(i, seed))) << "interval " << interval;
      }
      if (now >= kept + per_interval) {
        forgotten_known += ring.Contains(NumberedId(now - kept - per_interval, seed)) ? 1 : 0;
      }
      ring.Refresh();
    }
    EXPECT_LE(forgotten_known, 3);
  }
}

// Of lines for 10^3 to 10^9 ids, all are met, evenly, and none beyond them; address space is all that it
// takes.
TYPED_TEST(SlicedShapes, ReachesEveryPartOfTheMemoryForABillionIds) {
  using Lines = SlicedLines<TypeParam, 5>;
  constexpr int kParts = 16;
  std::mt19937_64 random(TestSeed());
  for (double ids = 1e3; ids <= 1e9; ids *= 10) {
    SCOPED_TRACE(ids);
    const SlicedShape shape = {.columns = Lines::kColumns, .lines_per_id = 5};
    // In whole parts, as they are counted below.
    const int64_t lines =
        kParts * static_cast<int64_t>(std::ceil(ids * SlicedBitsPerId(shape, 1e-6) / 512 / kParts));
    MemoryBudget budget(int64_t{1} << 40);
    absl::StatusOr<LineMemory> memory =
        LineMemory::Create(&budget, lines * Lines::kLineBytes, lines * Lines::kLineBytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    const auto* const begin = static_cast<const char*>(memory->data());
    const Lines cells(memory->data(), lines);
    EXPECT_EQ(cells.bytes_needed(), lines * 64);
    constexpr int kIds = 20'000;
    std::array<int, kParts> met{};
    for (int i = 0; i < kIds; ++i) {
      const typename Lines::Places places = cells.Find({random(), random()});
      for (const auto& parity : {places.even, places.odd}) {
        for (size_t bit = 0; bit < parity.size(); ++bit) {
          const int64_t offset = reinterpret_cast<const char*>(parity[bit]) - begin;
          ASSERT_GE(offset, 0);
          ASSERT_LT(offset, lines * Lines::kLineBytes);
          if (bit % 2 == 1) {
            EXPECT_NE(parity[bit], parity[bit - 1]) << "two bits of a line in one cell";
            EXPECT_EQ(offset / 64, (reinterpret_cast<const char*>(parity[bit - 1]) - begin) / 64);
          }
          ++met[static_cast<size_t>(offset / 64 * kParts / lines)];
        }
      }
    }
    // Each line counts four times, so deviations are twice those of independent counts.
    const double mean = 4.0 * 5 * kIds / kParts;
    for (const int count : met) EXPECT_NEAR(count, mean, 2 * 6 * std::sqrt(mean) + 0.02 * mean);
  }
}

TEST(SlicedShapesTable, TheModelHoldsForEveryWidthAndTarget) {
  for (const int columns : {16, 32, 64}) {
    for (const double target : kTargets) {
      const SlicedShape shape = {.columns = columns, .lines_per_id = SlicedShapeFor(target).lines_per_id};
      SCOPED_TRACE(testing::Message() << columns << " columns, target " << target);
      const double cap = SlicedCap(shape, target);
      EXPECT_GT(cap, 0);
      // Full intervals sum to the target, and no more.
      const std::vector<double> full(static_cast<size_t>(columns), cap);
      EXPECT_LE(SlicedFpp(shape, full), target);
      EXPECT_GE(SlicedFpp(shape, full), 0.75 * target);
      // No Bloom layout does with less than 1.44 log2(1 / target) for each id, nor is this one far off.
      const double bits = SlicedBitsPerId(shape, target);
      EXPECT_GT(bits, 1.44 * std::log2(1 / target));
      EXPECT_LT(bits, columns == 16 ? 65 : 150);
      // A billion ids: their lines, bytes and loads are numbers that the arithmetic can hold.
      const double bytes = 1e9 * bits / 8;
      EXPECT_LT(bytes, 64.0 * (int64_t{1} << 30));
      EXPECT_NEAR(bytes / 64 * cap * SlicedWindowIntervals(shape), 1e9, 1);
    }
  }
}

// Model and filter go by one table: k, the cells of a line, and the memory of an id.
TEST(SlicedShapesTable, ModelAndFilterChooseAlike) {
  for (const double target : kTargets) {
    for (const double ids : {1e3, 1e5, 1e9}) {
      SCOPED_TRACE(testing::Message() << "target " << target << ", ids " << ids);
      const absl::Duration horizon = absl::Hours(1);
      const int64_t limit = SlicedLimitBytes(ids, target);
      MemoryBudget memory(limit);
      const auto filter =
          NewFilter({.horizon = horizon, .target_fpp = target, .memory = &memory, .engine = Engine::kSliced});
      ASSERT_TRUE(filter.ok()) << filter.status();
      const FilterStatus status = (*filter)->Status();
      const SlicedShape shape = SlicedShapeFor(target);
      EXPECT_EQ(status.bits_per_id, 2 * shape.lines_per_id);
      EXPECT_EQ(status.bits_per_generation % shape.cells_per_line(), 0);
      const double lines = SlicedLinesFor(ids, target);
      // By doublings from what the filter begins with, what is planned can be reached within the limit.
      const double begin = static_cast<double>(status.bits_per_generation / shape.cells_per_line());
      const double doublings = std::ceil(std::log2(std::max(1.0, lines / begin)));
      EXPECT_LE(begin * std::exp2(doublings) * 64, static_cast<double>(limit));
    }
  }
}

}  // namespace
}  // namespace lethe
