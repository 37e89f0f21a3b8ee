#include "src/fpp/confidence.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

TEST(RateIntervalTest, AgreesWithPublishedTables) {
  // Garwood's limits at 95 %, for a count in one trial (so that high is cut to 1, count / 1000 in 1000).
  const struct {
    int64_t count;
    double low, high;
  } table[] = {{0, 0, 3.6889},       {1, 0.0253, 5.5716},   {2, 0.2422, 7.2247},
               {5, 1.6235, 11.6683}, {10, 4.7954, 18.3904}, {50, 37.1110, 65.9185}};
  for (const auto& row : table) {
    const Interval interval = RateInterval(row.count, 1000, 0.95);
    EXPECT_NEAR(interval.low * 1000, row.low, 6e-5 + 1e-5 * row.low) << row.count;
    EXPECT_NEAR(interval.high * 1000, row.high, 6e-5 + 1e-5 * row.high) << row.count;
  }
}

TEST(RateIntervalTest, Edges) {
  EXPECT_EQ(RateInterval(0, 0, 0.99).low, 0);
  EXPECT_EQ(RateInterval(0, 0, 0.99).high, 1);
  EXPECT_EQ(RateInterval(3, 3, 0.99).high, 1);
  EXPECT_NEAR(RateInterval(0, 1'000'000'000, 0.99).high, -std::log(0.005) * 1e-9, 1e-15);
  // Large counts: near the normal approximation, 2.5758 standard deviations to either side.
  const Interval large = RateInterval(100'000'000, 10'000'000'000, 0.99);
  EXPECT_NEAR(large.low, 0.01 - 2.5758e-6, 1e-9);
  EXPECT_NEAR(large.high, 0.01 + 2.5758e-6, 1e-9);
}

// As many as no process counts, but a forged snapshot does: it costs no more than other counts.
TEST(RateIntervalTest, HugeCountsTakeNoTime) {
  const int64_t huge = int64_t{1} << 62;
  EXPECT_NEAR(RateInterval(huge, huge, 0.99).low, 1, 1e-8);
  EXPECT_EQ(RateInterval(huge, huge, 0.99).high, 1);
  // On both sides of where the way to compute it changes.
  const Interval below = RateInterval(100'000'000, 1'000'000'000, 0.95);
  const Interval above = RateInterval(100'000'001, 1'000'000'000, 0.95);
  EXPECT_NEAR(below.low, above.low, 2e-9);
  EXPECT_NEAR(below.high, above.high, 2e-9);
}

TEST(RateIntervalTest, HoldsTheTrueRate) {
  std::mt19937_64 random(TestSeed());
  for (const double rate : {0.5 / 10'000, 3.0 / 10'000, 40.0 / 10'000, 0.3}) {
    std::binomial_distribution<int64_t> count(10'000, rate);
    int missed = 0;
    constexpr int kRounds = 2000;
    for (int round = 0; round < kRounds; ++round) {
      const Interval interval = RateInterval(count(random), 10'000, 0.99);
      missed += rate < interval.low || rate > interval.high;
    }
    // 20 are expected at most. More than 45 come by chance less than once in a million.
    EXPECT_LE(missed, 45) << rate;
  }
}

}  // namespace
}  // namespace lethe
