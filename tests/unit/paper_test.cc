#include "src/adapt/paper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace lethe {
namespace {

using Step = PaperPolicy::Step;

constexpr int64_t kHorizonMs = 10'000'000;
constexpr double kTarget = 1e-3;

// A filter of which the present and all that is older are equally full, and the future is empty.
std::vector<double> Even(int past, double fpp) {
  std::vector<double> generations(static_cast<size_t>(past) + 2, fpp);
  generations[0] = 0;
  return generations;
}

TEST(PaperPolicyTest, BeginsWithThreeFilters) {
  const PaperPolicy policy(kHorizonMs, kTarget);
  EXPECT_EQ(policy.past_generations(), 1);
  EXPECT_EQ(policy.refresh_period_ms(), kHorizonMs / 2);
}

TEST(PaperPolicyTest, AnUpDoublesTheFiltersAndADownTakesOne) {
  PaperPolicy policy(kHorizonMs, kTarget);
  for (const int filters : {6, 12, 24, 48}) {
    policy.StepUp();
    EXPECT_EQ(policy.past_generations() + 2, filters);
    EXPECT_EQ(policy.refresh_period_ms(), (kHorizonMs + filters - 2) / (filters - 1));
  }
  policy.StepDown();
  EXPECT_EQ(policy.past_generations() + 2, 47);
  EXPECT_EQ(policy.refresh_period_ms(), (kHorizonMs + 45) / 46);
}

TEST(PaperPolicyTest, NineTenthsOfTheTargetIsUpAndATenthIsDown) {
  PaperPolicy policy(kHorizonMs, kTarget);
  policy.StepUp();
  policy.IntervalEnded();
  EXPECT_EQ(policy.Wanted(Even(4, 0.91e-3), 0), Step::kUp);
  EXPECT_EQ(policy.Wanted(Even(4, 0.88e-3), 1000), Step::kNone);
  EXPECT_EQ(policy.Wanted(Even(4, 0.11e-3), 2000), Step::kNone);
  EXPECT_EQ(policy.Wanted(Even(4, 0.09e-3), 3000), Step::kDown);
  // The pairs count: four of 0.02 ^ 2 beside 0.02 itself.
  PaperPolicy loose(kHorizonMs, 0.0239);
  loose.StepUp();
  EXPECT_EQ(loose.Wanted(Even(4, 0.02), 0), Step::kUp);
  PaperPolicy fewer(kHorizonMs, 0.0239);
  EXPECT_EQ(fewer.Wanted(Even(1, 0.02), 0), Step::kNone);
  EXPECT_EQ(fewer.Wanted(std::vector<double>{1.0, 1.0, 1.0}, 0), Step::kUp);
}

// What a step cannot change does not call for one.
TEST(PaperPolicyTest, ClosedGenerationsCallForNoUpAndForbidADown) {
  PaperPolicy policy(kHorizonMs, kTarget);
  policy.StepUp();
  policy.IntervalEnded();
  EXPECT_EQ(policy.Wanted(std::vector<double>{0, 1e-5, 1e-5, 1e-5, 1e-5, 0.5}, 0), Step::kNone);
  EXPECT_EQ(policy.Wanted(std::vector<double>{0, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5}, 1000), Step::kDown);
  EXPECT_EQ(policy.Wanted(std::vector<double>{0, 1e-3, 1e-5, 1e-5, 1e-5, 1e-5}, 2000), Step::kUp);
}

TEST(PaperPolicyTest, ADownWaitsForAnIntervalAndEndsAtThreeFilters) {
  PaperPolicy policy(kHorizonMs, kTarget);
  policy.StepUp();
  EXPECT_EQ(policy.Wanted(Even(4, 0), 0), Step::kNone);
  for (int past = 4; past > 1; --past) {
    policy.IntervalEnded();
    ASSERT_EQ(policy.Wanted(Even(past, 0), 0), Step::kDown);
    policy.StepDown();
    EXPECT_EQ(policy.Wanted(Even(past, 0), 0), Step::kNone);
  }
  policy.IntervalEnded();
  EXPECT_EQ(policy.Wanted(Even(1, 0), 0), Step::kNone);
}

TEST(PaperPolicyTest, IsDueOnceASecondOrTenTimesAPeriod) {
  PaperPolicy slow(kHorizonMs, kTarget);
  EXPECT_TRUE(slow.IsDue(-5000));
  slow.Wanted(Even(1, 0), -5000);
  EXPECT_FALSE(slow.IsDue(-4001));
  EXPECT_TRUE(slow.IsDue(-4000));
  PaperPolicy fast(200, kTarget);
  fast.Wanted(Even(1, 0), 0);
  EXPECT_FALSE(fast.IsDue(9));
  EXPECT_TRUE(fast.IsDue(10));
}

// Whatever is measured, in whatever order: the window stays, and N is in its range.
TEST(PaperPolicyTest, NoStepTakesTheWindowUnderTheHorizon) {
  std::mt19937_64 random(TestSeed());
  for (const int64_t horizon :
       {int64_t{1}, int64_t{2}, int64_t{7}, int64_t{1000}, int64_t{86'400'000}, int64_t{3'155'760'000'000}}) {
    PaperPolicy policy(horizon, kTarget);
    for (int64_t step = 0; step < 20'000; ++step) {
      const bool rising = step / 1000 % 2 == 0;
      const double fpp = rising && random() % 2 == 0 ? 1 : 0;
      if (random() % 2 == 0) policy.IntervalEnded();
      const int past = policy.past_generations();
      const int64_t period = policy.refresh_period_ms();
      switch (policy.Wanted(Even(past, fpp), step)) {
        case Step::kNone:
          break;
        case Step::kUp:
          if (!policy.CanGoUp()) break;
          policy.StepUp();
          EXPECT_EQ(policy.past_generations(), std::min(2 * past + 2, PaperPolicy::kMostPast));
          EXPECT_LT(policy.refresh_period_ms(), period);
          break;
        case Step::kDown:
          policy.StepDown();
          EXPECT_EQ(policy.past_generations(), past - 1);
          EXPECT_GE(policy.refresh_period_ms(), period);
      }
      ASSERT_GE(policy.past_generations(), 1);
      ASSERT_LE(policy.past_generations(), PaperPolicy::kMostPast);
      ASSERT_GE(policy.refresh_period_ms(), 1);
      ASSERT_GE((policy.past_generations() + 1) * policy.refresh_period_ms(), horizon);
    }
  }
}

}  // namespace
}  // namespace lethe
