#include "src/reference/sliced/sliced_lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/fpp/confidence.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr int64_t kMostLines = 4096;

struct alignas(64) Line {
  std::array<char, 64> bytes{};
};

IdHash NewId(std::mt19937_64& random) { return {random(), random()}; }

template <typename Cell>
Cell Bit(size_t column) {
  return static_cast<Cell>(Cell{1} << column);
}

// The ids that must be in a column.
struct Column {
  std::vector<IdHash> ids;
  bool in_clearing = false;
};

template <typename Cell>
class SlicedLinesTest : public testing::Test {};

using Cells = testing::Types<uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(SlicedLinesTest, Cells);

// Ids go in and are found in the middle of every kind of pass, in whatever order passes come.
TYPED_TEST(SlicedLinesTest, PassesKeepEveryMembership) {
  using Lines = SlicedLines<TypeParam, 4>;
  constexpr size_t kColumns = Lines::kColumns;
  std::mt19937_64 random(TestSeed());
  std::vector<Line> memory(kMostLines);
  const int64_t first_lines = 97;
  Lines lines(memory.data(), first_lines);
  std::vector<Column> columns(kColumns);
  int passes = 0;
  bool swept = false;
  while (passes < 150) {
    for (int i = static_cast<int>(random() % 20); i > 0; --i) {
      const size_t even = random() % (kColumns / 2) * 2;
      const size_t odd = random() % (kColumns / 2) * 2 + 1;
      if (columns[even].in_clearing || columns[odd].in_clearing) continue;
      const IdHash id = NewId(random);
      Lines::Set(lines.Find(id), Bit<TypeParam>(even), Bit<TypeParam>(odd));
      columns[even].ids.push_back(id);
      columns[odd].ids.push_back(id);
    }
    if (lines.idle()) {
      ++passes;
      TypeParam clear = 0;
      for (size_t column = 0; column < kColumns; ++column) {
        if (random() % 3 != 0) continue;
        clear |= Bit<TypeParam>(column);
        columns[column].in_clearing = true;
        columns[column].ids.clear();
      }
      const int64_t now = lines.lines();
      swept = false;
      if (random() % 2 == 0 && 2 * now <= kMostLines) {
        lines.BeginUnfold(clear);
      } else if (random() % 2 == 0 && now > first_lines) {
        lines.BeginFold(clear);
      } else {
        lines.BeginSweep(clear);
        swept = true;
      }
    } else if (swept && random() % 30 == 0) {
      lines.AbandonSweep();
      for (Column& column : columns) column.in_clearing = false;
      continue;
    } else if (lines.Advance(static_cast<int64_t>(random() % 200))) {
      for (int sample = 0; sample < 500; ++sample) {
        const typename Lines::Occupancy occupied = lines.OccupancyAt(random());
        for (size_t column = 0; column < kColumns; ++column) {
          if (!columns[column].in_clearing) continue;
          ASSERT_EQ(occupied[column], 0) << "column " << column;
        }
      }
      for (Column& column : columns) column.in_clearing = false;
    }
    if (random() % 8 != 0) continue;
    for (size_t column = 0; column < kColumns; ++column) {
      for (const IdHash id : columns[column].ids) {
        ASSERT_NE(Lines::Columns(lines.Find(id)) & Bit<TypeParam>(column), 0)
            << "pass " << passes << " column " << column;
      }
    }
  }
}

// How many different lines the ids of a shard have, by that number. Shards fix bits 1 to 8 of b.
template <int kLinesPerId>
std::array<int64_t, kLinesPerId + 1> CountDifferentLines(int64_t lines, int64_t ids,
                                                         std::mt19937_64& random) {
  using Lines = SlicedLines<uint16_t, kLinesPerId>;
  static std::vector<Line> memory(kMostLines);
  const Lines cells(memory.data(), lines);
  std::array<int64_t, kLinesPerId + 1> counts{};
  for (int64_t i = 0; i < ids; ++i) {
    const IdHash id = {random(), (random() & ~uint64_t{0x1fe}) | 0x0aa};
    const typename Lines::Places places = cells.Find(id);
    std::array<int64_t, kLinesPerId> met{};
    for (size_t j = 0; j < kLinesPerId; ++j) {
      met[j] = (reinterpret_cast<const char*>(places.even[2 * j]) - memory.front().bytes.data()) / 64;
    }
    std::sort(met.begin(), met.end());
    ++counts[static_cast<size_t>(std::unique(met.begin(), met.end()) - met.begin())];
  }
  return counts;
}

// Of independent lines d are different with the probability S(L, d) lines! / (lines - d)! / lines^L, S being
// Stirling's number of the second kind. With the step from line to line constant some fifty times as many ids
// of a small filter would have all lines in one place or two.
template <int kLinesPerId>
void ExpectIndependentLines(int64_t lines, std::mt19937_64& random) {
  constexpr int64_t kIds = 200'000;
  const auto counts = CountDifferentLines<kLinesPerId>(lines, kIds, random);
  // By the number of lines taken so far: how many are different.
  std::array<double, kLinesPerId + 2> probability{};
  probability[0] = 1;
  for (int taken = 0; taken < kLinesPerId; ++taken) {
    for (auto different = static_cast<size_t>(taken) + 1; different > 0; --different) {
      const auto met = static_cast<double>(different) / static_cast<double>(lines);
      const auto others = 1 - static_cast<double>(different - 1) / static_cast<double>(lines);
      probability[different] = probability[different] * met + probability[different - 1] * others;
    }
    probability[0] = 0;
  }
  for (size_t different = 1; different <= kLinesPerId; ++different) {
    const Interval rate = RateInterval(counts[different], kIds, 1 - 1e-9);
    EXPECT_LE(rate.low, probability[different]) << different << " of " << lines << " lines";
    EXPECT_GE(rate.high, probability[different]) << different << " of " << lines << " lines";
  }
}

TEST(SlicedLinesOfAnId, AreIndependent) {
  std::mt19937_64 random(TestSeed());
  for (const int64_t lines : {16, 128, 1000, 4096}) {
    ExpectIndependentLines<3>(lines, random);
    ExpectIndependentLines<4>(lines, random);
    ExpectIndependentLines<5>(lines, random);
    ExpectIndependentLines<6>(lines, random);
  }
}

// An id sets two different cells of each parity in each of its lines, and all cells are as likely.
TYPED_TEST(SlicedLinesTest, SetsTwoCellsOfALineForEachParity) {
  using Lines = SlicedLines<TypeParam, 4>;
  std::mt19937_64 random(3);
  Line memory;
  Lines lines(&memory, 1);
  std::array<std::array<int, Lines::kCells>, 2> even{};
  std::array<std::array<int, Lines::kCells>, 2> odd{};
  constexpr int kIds = 100'000;
  auto* first = reinterpret_cast<TypeParam*>(&memory);
  for (int i = 0; i < kIds; ++i) {
    const typename Lines::Places places = lines.Find(NewId(random));
    for (size_t line = 0; line < 4; ++line) {
      EXPECT_NE(places.even[2 * line], places.even[2 * line + 1]);
      EXPECT_NE(places.odd[2 * line], places.odd[2 * line + 1]);
      for (size_t j = 0; j < 2; ++j) {
        ++even[j][static_cast<size_t>(places.even[2 * line + j] - first)];
        ++odd[j][static_cast<size_t>(places.odd[2 * line + j] - first)];
      }
    }
  }
  const double mean = 4.0 * kIds / Lines::kCells;
  for (size_t j = 0; j < 2; ++j) {
    for (size_t cell = 0; cell < Lines::kCells; ++cell) {
      EXPECT_NEAR(even[j][cell], mean, 6.5 * std::sqrt(mean)) << cell;
      EXPECT_NEAR(odd[j][cell], mean, 6.5 * std::sqrt(mean)) << cell;
    }
  }
}

}  // namespace
}  // namespace lethe
