// The published filter with the adaptation of its paper, under loads that change. At every step no id within
// the horizon is lost, the window is the horizon at least, the memory is within the limit, the rate of false
// positives that the bits imply is not over the target, and every step up or down is recorded with its reason
// (tests/support/simulated_load.h). What is measured with strangers is what the bits imply, and not over the
// target either.
#include <cmath>
#include <numbers>

#include "gtest/gtest.h"
#include "tests/support/simulated_load.h"

namespace lethe {
namespace {

using Kind = AdaptationStep::Kind;

constexpr double kTarget = 1e-3;

LoadAt Steady(double rate) {
  return [rate](double) { return rate; };
}

class PaperLoadTest : public testing::Test {
 protected:
  // Generations of 64 Ki bits, of which some 1900 ids of one interval fill one; a thousand of them at most.
  SimulatedLoad::Options Options() const {
    return {
        .target_fpp = kTarget, .limit_bytes = int64_t{8} << 20, .seed = seed_, .probes_per_refresh = 2000};
  }

  // Generations of 8 Ki bits, of which the limit holds fifty.
  SimulatedLoad::Options SmallOptions() const {
    SimulatedLoad::Options options = Options();
    options.limit_bytes = 50'000;
    options.ample = false;
    return options;
  }

  static void ExpectTarget(const SimulatedLoad& load) {
    const Probed& probed = load.probed();
    EXPECT_FALSE(IsTooMany(probed.hits, kTarget * probed.probes, 1e-8)) << load.Where();
    EXPECT_FALSE(IsTooMany(probed.hits, probed.expected, 1e-8)) << load.Where() << ": the estimate is low";
    EXPECT_FALSE(IsTooFew(probed.hits, probed.expected, 1e-8)) << load.Where() << ": the estimate is high";
    EXPECT_LE(load.worst_estimate(), kTarget) << load.Where();
    EXPECT_EQ(load.status().limit_hits, 0) << load.Where();
  }

  const uint64_t seed_ = TestSeed();
};

TEST_F(PaperLoadTest, AHundredTimesTheLoadAndBack) {
  SimulatedLoad load(Options());
  load.Run(2.3, Steady(1000));
  EXPECT_EQ(load.status().shape.past_generations, 1);
  const double before = load.bytes();
  load.Run(2.2, Steady(100'000));
  EXPECT_GE(load.status().shape.past_generations, 46);
  EXPECT_LE(load.status().shape.past_generations, 190);
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(6, Steady(1000));
  EXPECT_LE(load.status().shape.past_generations, 3);
  EXPECT_LE(load.bytes(), 3 * before);
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  EXPECT_GE(load.Steps(Kind::kScaleUp), 5);
  EXPECT_GE(load.Steps(Kind::kScaleDown), 50);
  ExpectTarget(load);
}

TEST_F(PaperLoadTest, DaysAndNightsOfAMonth) {
  SimulatedLoad load(Options());
  const LoadAt days = [](double t) { return 10'000 * (1 - 0.9 * std::cos(2 * std::numbers::pi * t)); };
  for (int day = 0; day < 30; ++day) {
    load.Run(1, days);
    EXPECT_LE(load.status().shape.past_generations, 22) << "day " << day;
  }
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  ExpectTarget(load);
}

TEST_F(PaperLoadTest, Bursts) {
  SimulatedLoad load(Options());
  load.Run(6, [](double t) { return std::fmod(t, 1.3) < 0.01 ? 1'000'000.0 : 2000.0; });
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(2.5, Steady(2000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  ExpectTarget(load);
}

// All that a filter's lists can hold, at one moment: each interval ends with the id that fills it.
TEST_F(PaperLoadTest, ABurstWithinASecond) {
  SimulatedLoad load(Options());
  load.Run(1.5, Steady(2000));
  load.Run(1e-6, Steady(20'000 / 1e-6));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(2, Steady(2000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  ExpectTarget(load);
}

TEST_F(PaperLoadTest, AStopOfHours) {
  for (const bool told : {false, true}) {
    SimulatedLoad load(Options());
    load.Run(1.7, Steady(10'000));
    for (const double hours : {0.5, 3.0, 11.0, 23.9, 24.1, 70.0}) {
      SCOPED_TRACE(hours);
      load.Stop(hours / 24, told);
      load.Run(0.3, Steady(10'000));
      load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
    }
    ExpectTarget(load);
  }
}

// A backfill whose records carry the time of their arrival: half a horizon of a hundred times the load. (One
// whose records carry their own times is the load that it was, whatever the speed: all of these come with 43
// seconds of stream time between two calls.)
TEST_F(PaperLoadTest, ABackfillStampedOnArrival) {
  SimulatedLoad load(Options());
  load.Run(1.5, Steady(1000));
  load.Run(0.5, Steady(100'000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(3.5, Steady(1000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  ExpectTarget(load);
}

// More than fits, then a tenth of it. The window gives way, and the target holds at each step all the same.
TEST_F(PaperLoadTest, AtTheLimitTheWindowIsShortened) {
  SimulatedLoad load(SmallOptions());
  load.Run(1.5, Steady(20'000));
  EXPECT_GT(load.Steps(Kind::kUnfoldRefused), 0);
  EXPECT_GT(load.Steps(Kind::kShortenWindow), 10);
  EXPECT_LT(load.status().window, absl::Milliseconds(0.8 * SimulatedLoad::kHorizonMs)) << load.Where();
  EXPECT_GT(load.status().window, absl::Milliseconds(0.3 * SimulatedLoad::kHorizonMs)) << load.Where();
  EXPECT_LE(load.worst_estimate(), kTarget) << load.Where();
  EXPECT_FALSE(IsTooMany(load.probed().hits, kTarget * load.probed().probes, 1e-8)) << load.Where();
  load.Run(2.2, Steady(2000));
  EXPECT_GE(load.status().window, absl::Milliseconds(SimulatedLoad::kHorizonMs));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
}

}  // namespace
}  // namespace lethe
