#include "src/published/published_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

TEST(BloomFppTest, IsTheUsualApproximation) {
  EXPECT_DOUBLE_EQ(BloomFpp(0, 1000, 5), 0);
  EXPECT_NEAR(BloomFpp(300, 6250, 5), std::pow(1 - std::exp(-5 * 300.0 / 6250), 5), 1e-15);
  // The exact form that the paper's middle term stands for, with 1/m in it.
  EXPECT_NEAR(BloomFpp(4000, 100000, 5), std::pow(1 - std::pow(1 - 1 / 1e5, 5 * 4000), 5), 1e-8);
}

TEST(PublishedFppTest, IsEquation2ForThreeGenerations) {
  const double f = 0.01;
  const double p = 0.2;
  const double o = 0.05;
  EXPECT_NEAR(PublishedFpp({f, p, o}), 1 - (1 - f) * (1 - p * o) * (1 - o), 1e-15);
}

TEST(PublishedFppTest, IsEquation3ForMore) {
  EXPECT_NEAR(PublishedFpp({0.1, 0.2, 0.3, 0.4}), 1 - 0.9 * (1 - 0.06) * (1 - 0.12) * 0.6, 1e-15);
  EXPECT_DOUBLE_EQ(PublishedFpp({0, 1, 0, 1, 0}), 0);
  EXPECT_DOUBLE_EQ(PublishedFpp({0, 0, 0, 1}), 1);
  // Small probabilities keep their digits.
  EXPECT_NEAR(PublishedFpp({1e-20, 1e-12, 1e-12, 3e-20}), 4e-20, 1e-23);
}

// All patterns of generations that an id may find itself in, judged by the checks as they are defined:
// with one bit per id (k = 1) the sum over the patterns of a position is the probability itself.
TEST(FppWithSharedIntervalsTest, AgreesWithTheSumOverAllPatternsForOneHash) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const size_t generations = 3 + random() % 8;
    std::vector<double> ids(generations);
    for (double& x : ids) x = static_cast<double>(random() % 1500);
    constexpr double kBits = 1000;
    double contained = 0;
    for (uint64_t touched = 0; touched < uint64_t{1} << generations; ++touched) {
      double probability = 1;
      for (size_t j = 0; j < generations; ++j) {
        const double touches = 1 - std::exp(-ids[j] / kBits);
        probability *= (touched >> j & 1) != 0 ? touches : 1 - touches;
      }
      const uint64_t set = (touched | touched << 1) & ((uint64_t{1} << generations) - 1);
      const uint64_t pairs = set & set >> 1 & ~uint64_t{1};
      const bool hit = (set & 1) != 0 || pairs != 0 || (set >> (generations - 1) & 1) != 0;
      if (hit) contained += probability;
    }
    EXPECT_NEAR(FppWithSharedIntervals(ids, kBits, 1), contained, 1e-12);
  }
}

// With several bits per id each of them finds a pattern of its own, and the id is in those generations
// that are in all patterns.
TEST(FppWithSharedIntervalsTest, AgreesWithDrawnPatternsForSeveralHashes) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const std::vector<double> ids = {300, 500, 200, 450, 400, 350};
  constexpr double kBits = 1500;
  constexpr int kHashes = 3;
  constexpr int kTrials = 1'000'000;
  int hits = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    uint64_t in = (uint64_t{1} << ids.size()) - 1;
    for (int i = 0; i < kHashes; ++i) {
      uint64_t touched = 0;
      for (size_t j = 0; j < ids.size(); ++j) {
        const bool touches =
            std::uniform_real_distribution<>()(random) < 1 - std::exp(-kHashes * ids[j] / kBits);
        touched |= uint64_t{touches} << j;
      }
      in &= touched | touched << 1;
    }
    hits += (in & 1) != 0 || (in & in >> 1 & ~uint64_t{1}) != 0 || (in >> (ids.size() - 1) & 1) != 0;
  }
  const double modelled = FppWithSharedIntervals(ids, kBits, kHashes);
  EXPECT_NEAR(modelled, static_cast<double>(hits) / kTrials, BinomialBound(modelled, kTrials));
}

TEST(FppWithSharedIntervalsTest, ExceedsEquation3WhereNeighboursShareAnInterval) {
  constexpr double kBits = 100'000;
  constexpr int kHashes = 5;
  std::vector<double> ids(10, 4000);
  std::vector<double> fpp(10, BloomFpp(8000, kBits, kHashes));
  const auto at = [&](double current) {
    ids[0] = current;
    fpp[0] = BloomFpp(current, kBits, kHashes);
    fpp[1] = BloomFpp(4000 + current, kBits, kHashes);
  };
  at(0);
  EXPECT_NEAR(PublishedFpp(fpp), 0.0040, 0.00005);
  EXPECT_NEAR(FppWithSharedIntervals(ids, kBits, kHashes), 0.0064, 0.00005);
  at(2000);
  EXPECT_NEAR(PublishedFpp(fpp), 0.0040, 0.00005);
  EXPECT_NEAR(FppWithSharedIntervals(ids, kBits, kHashes), 0.0065, 0.00005);
  at(4000);
  EXPECT_NEAR(PublishedFpp(fpp), 0.0042, 0.00005);
  EXPECT_NEAR(FppWithSharedIntervals(ids, kBits, kHashes), 0.0068, 0.00005);
}

TEST(FppWithSharedIntervalsTest, EmptyAndFullAreTheEnds) {
  EXPECT_DOUBLE_EQ(FppWithSharedIntervals(std::vector<double>(5, 0), 1000, 4), 0);
  EXPECT_NEAR(FppWithSharedIntervals(std::vector<double>(5, 1e9), 1000, 4), 1, 1e-12);
  // Only the oldest generation holds anything: Equation 1 of it alone.
  EXPECT_NEAR(FppWithSharedIntervals({{0, 0, 0, 0, 200}}, 1000, 4), BloomFpp(200, 1000, 4), 1e-12);
}

}  // namespace
}  // namespace lethe
