// The sliced filter under loads that change, with its policy `budget`: the promises hold all along. The
// checks of each step are in tests/support/simulated_load.h; here are the loads, and what each must end in.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>

#include "gtest/gtest.h"
#include "tests/support/simulated_load.h"

namespace lethe {
namespace {

using Kind = AdaptationStep::Kind;

LoadAt Steady(double rate) {
  return [rate](double) { return rate; };
}

// Over all refreshes together the bound is much closer than for each of them.
void ExpectTarget(const SimulatedLoad& load, double target) {
  EXPECT_FALSE(IsTooMany(load.probed().hits, target * load.probed().probes, 1e-8)) << load.Where();
  EXPECT_GT(load.probed().probes, 0);
}

void ExpectNoLimit(const SimulatedLoad& load) {
  EXPECT_EQ(load.status().limit_hits, 0) << load.Where();
  EXPECT_LE(load.status().fpp_at_interval_end, load.status().fpp_target) << load.Where();
}

class AdaptationTest : public testing::Test {
 protected:
  const uint64_t seed_ = TestSeed();
};

// Whatever the number of past generations at most.
class EveryAdaptationTest : public testing::TestWithParam<int> {
 protected:
  SimulatedLoad::Options With(SimulatedLoad::Options options) const {
    options.past_generations = GetParam();
    options.seed = TestSeed();
    // A quarter as many in all.
    if (GetParam() != kDefaultPastGenerations) {
      options.probes_per_refresh = options.probes_per_refresh / 4 * kDefaultPastGenerations /
                                   std::max(kDefaultPastGenerations, GetParam());
    }
    return options;
  }
  // With fewer an interval is a larger part of the horizon; so it takes longer until those that are too full
  // to be folded are over, and where it is nearly over when the load rises, lines are doubled once more.
  double HorizonsToSettle() const { return GetParam() < kDefaultPastGenerations ? 6 : 3.5; }
  double MostInJump() const { return GetParam() <= 2 ? 2 : 1; }
};
INSTANTIATE_TEST_SUITE_P(Generations, EveryAdaptationTest, testing::Values(1, 2, 6, 14, 30, 61),
                         testing::PrintToStringParamName());

// What is measured is what the bits say and what was asked for, with as many generations as may be.
TEST_P(EveryAdaptationTest, ASteadyLoad) {
  for (const double target : {1e-2, 1e-4}) {
    SimulatedLoad load(With({.target_fpp = target}));
    load.Run(3, Steady(60'000));
    EXPECT_LE(load.TakeMostBytes(), load.MostBytesFor(60'000)) << load.Where();
    EXPECT_LE(load.status().past_generations, GetParam());
    load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
    ExpectTarget(load, target);
    ExpectNoLimit(load);
    EXPECT_FALSE(IsTooMany(load.probed().hits, 1.1 * load.probed().expected, 1e-9)) << load.Where();
    EXPECT_FALSE(IsTooFew(load.probed().hits, load.probed().expected / 1.1, 1e-9)) << load.Where();
  }
}

TEST_P(EveryAdaptationTest, AHundredTimesTheLoadAndBack) {
  SimulatedLoad load(With({}));
  load.Run(2.3, Steady(4000));
  const double before = load.bytes();
  EXPECT_LE(load.TakeMostBytes(), load.MostBytesFor(4000));
  load.Run(2.5, Steady(400'000));
  const double most = load.TakeMostBytes();  // also on the way
  EXPECT_LE(most, 128 * before);
  EXPECT_LE(most, MostInJump() * load.MostBytesFor(400'000));
  std::cout << "took at most " << most / before << " times as much, " << most / load.MostBytesFor(400'000)
            << " of what it may\n";
  EXPECT_GE(load.bytes(), load.LeastBytesFor(400'000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(HorizonsToSettle(), Steady(4000));
  EXPECT_LE(load.bytes(), load.MostBytesFor(4000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  // Wide cells begin with more memory.
  const int doublings = GetParam() > kDefaultPastGenerations ? 4 : 6;
  EXPECT_GE(load.Steps(Kind::kUnfold), doublings);
  EXPECT_GE(load.Steps(Kind::kFold), doublings);
  ExpectTarget(load, 1e-3);
  ExpectNoLimit(load);
}

// The horizon is a day, so it always holds as many ids; but no filter can know at noon that a night follows,
// and that what comes now will not come all day.
TEST_F(AdaptationTest, DaysAndNightsOfAMonth) {
  SimulatedLoad load({.seed = seed_, .probes_per_refresh = 100'000});
  const LoadAt days = [](double t) { return 15'000 * (1 - 0.9 * std::cos(2 * std::numbers::pi * t)); };
  load.Run(3, days);
  const double settled = load.bytes();
  EXPECT_LE(settled, load.MostBytesFor(1.9 * 15'000));
  load.TakeMostBytes();
  double most = 0;
  for (int day = 3; day < 30; ++day) {
    load.Run(1, days);
    most = std::max(most, load.TakeMostBytes());
    EXPECT_LE(most, load.MostBytesFor(1.9 * 15'000)) << "day " << day;
  }
  std::cout << "took at most " << most / load.MostBytesFor(15'000) << " of what a steady load may\n";
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  ExpectTarget(load, 1e-3);
  ExpectNoLimit(load);
}

TEST_F(AdaptationTest, Bursts) {
  SimulatedLoad load({.target_fpp = 1e-4, .seed = seed_});
  const auto burst = [](double t) { return std::fmod(t, 1.3) < 0.01 ? 1'000'000.0 : 10'000.0; };
  load.Run(6, burst);
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(2.5, Steady(10'000));
  EXPECT_LE(load.bytes(), load.MostBytesFor(10'000));
  ExpectTarget(load, 1e-4);
  ExpectNoLimit(load);
}

TEST_P(EveryAdaptationTest, AStopOfHours) {
  for (const bool told : {false, true}) {
    SimulatedLoad load(With({}));
    load.Run(1.7, Steady(20'000));
    for (const double hours : {0.5, 3.0, 11.0, 23.9, 24.1, 70.0}) {
      SCOPED_TRACE(hours);
      load.Stop(hours / 24, told);
      load.Run(0.3, Steady(20'000));
      load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
    }
    ExpectTarget(load, 1e-3);
    ExpectNoLimit(load);
  }
}

// A backfill whose records carry the time of their arrival: half a horizon of a hundred times the load.
TEST_F(AdaptationTest, ABackfillStampedOnArrival) {
  SimulatedLoad load({.seed = seed_});
  load.Run(1.5, Steady(4000));
  load.Run(0.5, Steady(400'000));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(3.5, Steady(4000));
  EXPECT_LE(load.bytes(), load.MostBytesFor(4000));
  ExpectTarget(load, 1e-3);
  ExpectNoLimit(load);
}

// With fewer the window gives way by half a horizon or more at a time.
class AtTheLimitTest : public EveryAdaptationTest {
 protected:
  // That holds as many ids as 200'000 bytes do with the number that users get.
  int64_t LimitBytes() const {
    constexpr double kTarget = 1e-3;
    const SlicedShape users = SlicedShapeFor(kTarget);
    const SlicedShape shape = {.columns = GetParam() + 2, .lines_per_id = users.lines_per_id};
    return static_cast<int64_t>(200'000 * SlicedBitsPerId(shape, kTarget) / SlicedBitsPerId(users, kTarget));
  }
};
INSTANTIATE_TEST_SUITE_P(Generations, AtTheLimitTest, testing::Values(6, 14, 30, 61),
                         testing::PrintToStringParamName());

// Twice as much as fits, then half of it. The window is what gives way: the target holds at each refresh,
// each dropped generation is recorded and counted, and with less load the whole horizon is back.
TEST_P(AtTheLimitTest, TheWindowIsShortened) {
  SimulatedLoad load(With({.limit_bytes = LimitBytes(), .ample = false}));
  load.Run(3, Steady(90'000));
  EXPECT_GT(load.Steps(Kind::kUnfoldRefused), 0);
  EXPECT_GT(load.Steps(Kind::kShortenWindow), 10);
  EXPECT_EQ(load.Steps(Kind::kExceedFpp), 0);
  EXPECT_LT(load.status().window, absl::Milliseconds(0.8 * SimulatedLoad::kHorizonMs)) << load.Where();
  EXPECT_GT(load.status().window, absl::Milliseconds(0.3 * SimulatedLoad::kHorizonMs)) << load.Where();
  // The generations that it reports as dropped are gone.
  const int64_t window_ms = absl::ToInt64Milliseconds(load.status().window);
  EXPECT_LT(load.ShareKnown(2 * window_ms, window_ms + SimulatedLoad::kHorizonMs / 5), 0.05) << load.Where();
  load.Run(2.5, Steady(20'000));
  const int64_t hits = load.status().limit_hits;
  EXPECT_GE(load.status().window, absl::Milliseconds(SimulatedLoad::kHorizonMs));
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  load.Run(1, Steady(20'000));
  EXPECT_EQ(load.status().limit_hits, hits);
  ExpectTarget(load, 1e-3);
}

// The same load; here the target is what gives way, and no id is lost.
TEST_P(AtTheLimitTest, TheTargetIsExceeded) {
  SimulatedLoad load(
      With({.limit_bytes = LimitBytes(), .at_memory_limit = AtMemoryLimit::kExceedFpp, .ample = false}));
  load.Run(3, Steady(90'000));
  EXPECT_GT(load.Steps(Kind::kExceedFpp), 3);
  EXPECT_EQ(load.Steps(Kind::kShortenWindow), 0);
  EXPECT_GT(load.status().limit_hits, 0);
  load.ExpectAllOfLast(SimulatedLoad::kHorizonMs);
  // What is measured is over the target by far, and the filter says how much.
  EXPECT_GT(load.probed().rate(), 3e-3) << load.Where();
  EXPECT_GT(load.status().fpp_at_interval_end, 1e-2) << load.Where();
  EXPECT_NEAR(load.probed().hits / load.probed().expected, 1, 0.1) << load.Where();
  load.Run(3, Steady(20'000));
  const Probed probed = load.Probe(1'000'000);
  EXPECT_FALSE(IsTooMany(probed.hits, 1e3, 1e-9)) << load.Where();
  EXPECT_LE(load.status().fpp_at_interval_end, 1e-3) << load.Where();
}

}  // namespace
}  // namespace lethe
