#include "src/reference/sliced/sliced_model.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/reference/sliced/sliced_estimate.h"
#include "src/reference/sliced/sliced_lines.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

TEST(SlicedModel, MemoryForATarget) {
  // Bits per id of the guaranteed window, as the table of layouts says.
  const double kBits[] = {18, 25, 30, 37, 43, 50, 55, 63};
  for (int exponent = 2; exponent <= 9; ++exponent) {
    const double target = std::pow(10.0, -exponent);
    EXPECT_NEAR(SlicedBitsPerId(SlicedShapeFor(target), target), kBits[exponent - 2], 0.7) << target;
  }
}

// No other number of lines up to six needs a twentieth fewer bits than the table's.
TEST(SlicedModel, TheTableIsNearTheBest) {
  for (int exponent = 1; exponent <= 9; ++exponent) {
    const double target = std::pow(10.0, -exponent);
    const double chosen = SlicedBitsPerId(SlicedShapeFor(target), target);
    for (int lines = 1; lines <= 6; ++lines) {
      const SlicedShape other = {.columns = 16, .lines_per_id = lines};
      EXPECT_LE(chosen, 1.05 * SlicedBitsPerId(other, target)) << target << " with " << lines << " lines";
    }
    for (int columns : {32, 64}) {
      const SlicedShape other = {.columns = columns, .lines_per_id = SlicedShapeFor(target).lines_per_id};
      EXPECT_LE(chosen, SlicedBitsPerId(other, target)) << target << " with " << columns << " columns";
    }
  }
}

TEST(SlicedModel, FullIntervalsSumToTheTarget) {
  for (const double target : {1e-1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12}) {
    const SlicedShape shape = SlicedShapeFor(target);
    const double cap = SlicedCap(shape, target);
    EXPECT_NEAR((shape.columns - 1) * SlicedPairFpp(shape, cap, cap, cap) / target, 1, 1e-6);
  }
}

TEST(SlicedModel, GrowsWithEveryLoad) {
  const SlicedShape shape = SlicedShapeFor(1e-4);
  const double base = SlicedPairFpp(shape, 1, 1, 1);
  EXPECT_GT(SlicedPairFpp(shape, 1.1, 1, 1), base);
  EXPECT_GT(SlicedPairFpp(shape, 1, 1.1, 1), SlicedPairFpp(shape, 1.1, 1, 1));
  EXPECT_DOUBLE_EQ(SlicedPairFpp(shape, 1, 1, 1.1), SlicedPairFpp(shape, 1.1, 1, 1));
  EXPECT_EQ(SlicedPairFpp(shape, 0, 0, 0), 0);
  EXPECT_EQ(SlicedPairFpp(shape, 1e6, 1, 1e6), 1);
  EXPECT_EQ(SlicedFpp(shape, {}), 0);
  EXPECT_EQ(SlicedFpp(shape, {5}), 0);
}

// An id of one of 256 shards, which are chosen by bits 1 to 8: a shard's filter sees no others.
IdHash ShardId(std::mt19937_64& random) {
  const uint64_t a = random();
  return {a, (random() & ~uint64_t{0x1fe}) | 0x0aa};
}

struct alignas(64) Line {
  std::array<char, 64> bytes{};
};

struct Simulated {
  double measured = 0;
  double estimated = 0;
  double probes = 0;
};

// Fills lines with intervals of these loads and probes them. Every interval sets its own two columns; the
// first one's older column is none of the pairs.
template <typename Cell, int kLinesPerId>
Simulated Simulate(const std::vector<double>& loads, int64_t line_count, int probes, uint64_t seed) {
  using Lines = SlicedLines<Cell, kLinesPerId>;
  std::mt19937_64 random(seed);
  std::vector<Line> memory(static_cast<size_t>(line_count));
  Lines lines(memory.data(), line_count);
  const auto bit = [](size_t column) { return static_cast<Cell>(Cell{1} << column); };
  for (size_t i = 0; i < loads.size(); ++i) {
    const size_t even = i % 2 == 0 ? i : i + 1;
    const size_t odd = i % 2 == 0 ? i + 1 : i;
    const auto ids = static_cast<int64_t>(loads[i] * static_cast<double>(line_count));
    for (int64_t j = 0; j < ids; ++j) Lines::Set(lines.Find(ShardId(random)), bit(even), bit(odd));
  }
  Simulated result;
  result.probes = probes;
  // Pair (i, i + 1) holds interval i; interval 0 is the one that is no longer answered for.
  Cell pairs = 0;
  for (size_t i = 1; i < loads.size(); ++i) pairs |= bit(i + 1);
  for (int i = 0; i < probes; ++i) {
    const Cell columns = lines.Columns(ShardId(random));
    result.measured += (columns & static_cast<Cell>(columns << 1) & pairs) != 0;
  }
  const SlicedShape shape = {.columns = Lines::kColumns, .lines_per_id = kLinesPerId};
  SlicedEstimate estimate(shape, static_cast<int>(loads.size()), static_cast<int>(loads.size()));
  const uint64_t step = ~uint64_t{0} / static_cast<uint64_t>(line_count);
  for (uint64_t i = 0; i < static_cast<uint64_t>(line_count); ++i) {
    estimate.AddLine(lines.OccupancyAt(i * step + step / 2));
  }
  result.estimated = estimate.Fpp();
  return result;
}

// Model, estimate and measurement agree: within a tenth, and five deviations of the measured count.
template <typename Cell, int kLinesPerId>
void ExpectAgreement(const std::vector<double>& loads) {
  const SlicedShape shape = {.columns = 8 * sizeof(Cell), .lines_per_id = kLinesPerId};
  const double modelled = SlicedFpp(shape, loads);
  const Simulated simulated = Simulate<Cell, kLinesPerId>(loads, 5000, 1'000'000, 11);
  const double expected = modelled * simulated.probes;
  ASSERT_GT(expected, 400);
  EXPECT_NEAR(simulated.measured, expected, 0.1 * expected + 5.5 * std::sqrt(expected));
  EXPECT_NEAR(simulated.estimated, modelled, 0.1 * modelled);
  EXPECT_NEAR(simulated.measured, simulated.estimated * simulated.probes,
              0.07 * expected + 5.5 * std::sqrt(expected));
}

// A sample's deviation is that of samples from all lines, of which each is here in one of sixteen.
TEST(SlicedEstimate, KnowsTheDeviationOfASample) {
  using Lines = SlicedLines<uint16_t, 4>;
  constexpr int64_t kLines = 65'536;
  constexpr uint64_t kSamples = 16;
  constexpr int kColumns = 3;
  std::mt19937_64 random(TestSeed());
  std::vector<Line> memory(kLines);
  Lines lines(memory.data(), kLines);
  for (int column = 0; column + 1 < kColumns; ++column) {
    const auto older = static_cast<uint16_t>(1 << column);
    const auto newer = static_cast<uint16_t>(2 << column);
    for (int64_t i = 0; i < kLines * 5 / 4; ++i) {
      Lines::Set(lines.Find(ShardId(random)), column % 2 == 0 ? older : newer,
                 column % 2 == 0 ? newer : older);
    }
  }
  const SlicedShape shape = {.columns = 16, .lines_per_id = 4};
  SlicedEstimate all(shape, kColumns - 1, kColumns);
  std::vector<SlicedEstimate> samples(kSamples, all);
  for (uint64_t i = 0; i < kLines; ++i) {
    const Lines::Occupancy line = lines.OccupancyAt(i << 48);
    all.AddLine(line);
    samples[i % kSamples].AddLine(line);
  }
  EXPECT_EQ(all.Deviation(kLines), 0) << "all lines are counted";
  EXPECT_GT(all.Deviation(4 * kLines), 0);
  double squares = 0;
  for (const SlicedEstimate& sample : samples) {
    const double deviation = sample.Deviation(kLines);
    EXPECT_GT(deviation, 0);
    squares += std::pow((sample.Fpp() - all.Fpp()) / deviation, 2);
  }
  // Chi squared of 15 degrees of freedom: outside of these less than once in ten million times each, and a
  // fifth is left for the deviations' own.
  EXPECT_GT(squares, 0.8 * 1.2);
  EXPECT_LT(squares, 1.2 * 62);
}

TEST(SlicedModel, AgreesWithSimulation) {
  ExpectAgreement<uint16_t, 3>(std::vector<double>(14, 1.5));
  ExpectAgreement<uint16_t, 4>(std::vector<double>(14, 1.5));
  ExpectAgreement<uint16_t, 5>(std::vector<double>(14, 1.6));
  ExpectAgreement<uint16_t, 6>(std::vector<double>(14, 1.6));
  ExpectAgreement<uint32_t, 4>(std::vector<double>(30, 0.7));
  ExpectAgreement<uint64_t, 4>(std::vector<double>(62, 0.3));
}

TEST(SlicedModel, AgreesWithSimulationOfUnequalIntervals) {
  ExpectAgreement<uint16_t, 4>({2, 0.1, 2, 2, 0.5, 3, 0.1, 1, 1, 4, 0.2, 0.2, 2, 1});
  ExpectAgreement<uint16_t, 3>({5, 4, 0.1});
  ExpectAgreement<uint16_t, 3>({0, 5, 0});
}

}  // namespace
}  // namespace lethe
