#include "src/published/published_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "src/published/published_model.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

constexpr int kHashes = 5;

// Generations of which neighbours share an interval's ids.
std::vector<BitArray> Generations(size_t count, int64_t bits, uint64_t ids_an_interval, uint64_t seed) {
  std::vector<BitArray> generations;
  for (size_t i = 0; i < count; ++i) generations.push_back(*BitArray::Create(bits, kHashes));
  for (size_t i = 0; i < count; ++i) {
    for (uint64_t id = 0; id < ids_an_interval; ++id) {
      const IdHash hash = NumberedId(i * ids_an_interval + id, seed);
      generations[i].Insert(hash);
      if (i + 1 < count) generations[i + 1].Insert(hash);
    }
  }
  return generations;
}

PublishedEstimate Estimate(const std::vector<BitArray>& generations) {
  std::vector<const BitArray*> all;
  for (const BitArray& generation : generations) all.push_back(&generation);
  return EstimatePublished(all);
}

// From all bits, run by run.
double FppOfAllBits(const std::vector<BitArray>& generations) {
  RunFills fills(generations.size());
  for (size_t first = 0; first < generations.size(); ++first) {
    std::vector<uint64_t> in_all(generations[0].words().size(), ~uint64_t{0});
    for (size_t last = first; last < generations.size(); ++last) {
      int64_t set = 0;
      for (size_t i = 0; i < in_all.size(); ++i) {
        in_all[i] &= generations[last].words()[i];
        set += std::popcount(in_all[i]);
      }
      fills[first].push_back(static_cast<double>(set) / static_cast<double>(generations[0].bits()));
    }
  }
  return FppFromRunFills(fills, kHashes);
}

TEST(PublishedEstimateTest, LooksAtAllBitsWhereTheyAreFew) {
  const uint64_t seed = TestSeed();
  for (const int64_t bits :
       {int64_t{1}, int64_t{100}, int64_t{64 * 32}, int64_t{200'001}, int64_t{64 * 4096}}) {
    const std::vector<BitArray> generations = Generations(6, bits, static_cast<uint64_t>(bits / 25), seed);
    const PublishedEstimate estimate = Estimate(generations);
    EXPECT_DOUBLE_EQ(estimate.fpp, FppOfAllBits(generations)) << bits;
    EXPECT_EQ(estimate.deviation, 0) << bits;
  }
}

// The distance of the estimate from what all bits imply, in its deviations, over many filters. The mean of
// the squares of n such is 1, with a standard deviation of sqrt(2 / n), and some for that of a jackknife of
// 32 parts: together sqrt((2 + 4 / 31) / n).
TEST(PublishedEstimateTest, TheDeviationIsThatOfTheSample) {
  const uint64_t seed = TestSeed();
  // So that three of four words are left out, and one of six.
  for (const int64_t bits : {int64_t{64} * 4096 * 4, int64_t{64} * 4096 * 6 / 5}) {
    constexpr int kFilters = 60;
    double squares = 0;
    double sum = 0;
    for (uint64_t round = 0; round < kFilters; ++round) {
      const std::vector<BitArray> generations =
          Generations(4, bits, static_cast<uint64_t>(bits / 25), seed + round);
      const PublishedEstimate estimate = Estimate(generations);
      ASSERT_GT(estimate.deviation, 0);
      EXPECT_LT(estimate.deviation, 0.02 * estimate.fpp);
      const double off = (estimate.fpp - FppOfAllBits(generations)) / estimate.deviation;
      squares += off * off / kFilters;
      sum += off;
    }
    const double deviation = std::sqrt((2 + 4.0 / 31) / kFilters);
    // The squares' upper tail is longer than a normal one's.
    EXPECT_NEAR(squares, 1, 1.5 * kSigmas * deviation) << "LETHE_SEED=" << seed;
    EXPECT_GT(squares, 0.3) << "LETHE_SEED=" << seed;
    EXPECT_NEAR(sum, 0, 1.2 * kSigmas * std::sqrt(kFilters)) << "LETHE_SEED=" << seed;
  }
}

}  // namespace
}  // namespace lethe
