// When the generations of the compact filter end: against loads that change, and against the promise of how
// long an id may be known.
#include "src/filter/compact_epochs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr int64_t kHorizonMs = 86'400'000;
constexpr int64_t kEighthMs = kHorizonMs / 8;
constexpr int64_t kNoLimit = INT64_MAX;

// What is to be seen of the generations at one time.
struct Seen {
  double time = 0;    // in horizons
  int past = 0;       // N
  double period = 0;  // t, in horizons
  double held = 0;
  double needed = 0;  // ids of the last horizon
};

// Ids come at a rate, per horizon, that depends on the time in horizons.
std::vector<Seen> Observe(double horizons, const std::function<double(double)>& ids_per_horizon) {
  constexpr int64_t kSteps = 8192;  // in a horizon
  CompactEpochs epochs(kHorizonMs);
  std::vector<Seen> all;
  std::vector<double> come = {0};
  double due = 0;
  for (int64_t step = 0; step < static_cast<int64_t>(horizons * kSteps); ++step) {
    const double time = static_cast<double>(step) / kSteps;
    epochs.AdvanceTo(kHorizonMs * step / kSteps);
    double now = 0;
    for (due += ids_per_horizon(time) / kSteps; due >= 1; due -= 1, ++now) {
      epochs.BeginIfDue(kNoLimit);
      epochs.Add();
    }
    come.push_back(come.back() + now);
    const double before = step < kSteps ? 0 : come[static_cast<size_t>(step - kSteps)];
    all.push_back({time, epochs.live() - 1,
                   absl::ToDoubleMilliseconds(epochs.RefreshPeriod()) / static_cast<double>(kHorizonMs),
                   static_cast<double>(epochs.ids()), come.back() - before});
  }
  return all;
}

// Of all ids over a time, those held for each that is needed.
double HeldForNeeded(const std::vector<Seen>& all) {
  double held = 0, needed = 0;
  for (const Seen& seen : all) {
    held += seen.held;
    needed += seen.needed;
  }
  return held / needed;
}

TEST(CompactEpochsTest, ASteadyLoadHasSixteenPastGenerationsFromTheStart) {
  const std::vector<Seen> all = Observe(4, [](double) { return 100'000; });
  for (const Seen& seen : all) {
    EXPECT_LE(seen.held, 1.07 * 100'000) << seen.time;
    if (seen.time < 1.1) continue;
    EXPECT_GE(seen.past, 15) << seen.time;
    EXPECT_LE(seen.past, 17) << seen.time;
    EXPECT_NEAR(seen.period, 1.0 / 16, 1.0 / 250) << seen.time;
  }
  EXPECT_LT(HeldForNeeded(all), 1.035);
}

// N rises and t falls with the load, by its root, and both come back.
TEST(CompactEpochsTest, GenerationsFollowTheLoad) {
  const auto load = [](double time) {
    return 100'000 * std::pow(10, std::sin(time / 8 * std::numbers::pi) / 2);  // a day of 16 horizons
  };
  const std::vector<Seen> all = Observe(36, load);
  const auto mean = [&](double from, double Seen::*figure) {
    double sum = 0, count = 0;
    for (const Seen& seen : all) {
      if (seen.time < from || seen.time >= from + 1) continue;
      sum += seen.*figure;
      ++count;
    }
    return sum / count;
  };
  // The load rises fastest at 16, and falls fastest at 24.
  EXPECT_LT(mean(16, &Seen::period), 0.95 / 16);
  EXPECT_GT(mean(24, &Seen::period), 1.1 / 16);
  EXPECT_NEAR(mean(32, &Seen::period), mean(16, &Seen::period), 0.03 / 16);
  int fewest = 20, most = 0;
  for (const Seen& seen : all) {
    if (seen.time < 2) continue;
    fewest = std::min(fewest, seen.past);
    most = std::max(most, seen.past);
  }
  EXPECT_LE(fewest, 14);
  EXPECT_GE(most, 18);
  EXPECT_LT(HeldForNeeded(all), 1.035);
}

// Ids of a burst are in short generations, and go with it.
TEST(CompactEpochsTest, ABurstHasShortGenerations) {
  const std::vector<Seen> all =
      Observe(4, [](double time) { return time >= 1.5 && time < 1.55 ? 10'000'000 : 10'000; });
  double shortest = 1;
  for (const Seen& seen : all) {
    shortest = std::min(shortest, seen.period);
    // The burst was of half a million.
    const double most = seen.time > 2.61 ? 12'000 : seen.time > 2.57 ? 50'000 : 600'000;
    EXPECT_LT(seen.held, most) << seen.time;
  }
  EXPECT_LT(shortest, 0.02);
  EXPECT_LT(HeldForNeeded(all), 1.03);
}

// Whatever the load is, an id goes a horizon and an eighth after it came at the latest, and a generation can
// always begin when it has to.
TEST(CompactEpochsTest, NoGenerationLastsLongerThanAnEighthOfTheHorizon) {
  std::mt19937_64 random(TestSeed());
  for (const int64_t horizon_ms : {int64_t{1}, int64_t{7}, int64_t{1000}, kHorizonMs}) {
    for (int round = 0; round < 200; ++round) {
      CompactEpochs epochs(horizon_ms);
      const int64_t longest_ms = std::max<int64_t>(1, horizon_ms / 8);
      double gap = 1;  // in parts of a horizon, as a power of ten
      double now_ms = 0;
      for (int i = 0; i < 20'000; ++i) {
        if (random() % 200 == 0) gap = std::pow(10, -static_cast<double>(random() % 800) / 100);
        now_ms += gap * static_cast<double>(horizon_ms) * static_cast<double>(random() % 1000) / 1000;
        epochs.AdvanceTo(static_cast<int64_t>(now_ms));
        epochs.BeginIfDue(kNoLimit);
        epochs.Add();
        ASSERT_LE(epochs.live(), CompactEpochs::kMost);
        const CompactEpochs::Epoch& newest = epochs[epochs.span().newest];
        ASSERT_LT(newest.last_ms - newest.first_ms, longest_ms) << horizon_ms << ", " << round << ", " << i;
      }
    }
  }
}

// Generations depend on the ids and their times alone: not on how often time is looked at in between, as it
// is when transactions end.
TEST(CompactEpochsTest, GenerationsAreThoseOfTheIdsAlone) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    CompactEpochs plain(kHorizonMs), watched(kHorizonMs);
    int64_t now_ms = 0;
    uint64_t most_gap_ms = 1;
    for (int i = 0; i < 20'000; ++i) {
      if (random() % 1000 == 0) most_gap_ms = uint64_t{1} << (random() % 24);
      const int64_t before_ms = now_ms;
      now_ms += static_cast<int64_t>(random() % most_gap_ms);
      if (random() % 4 == 0) watched.AdvanceTo(before_ms + (now_ms - before_ms) / 2);
      for (CompactEpochs* epochs : {&plain, &watched}) {
        epochs->AdvanceTo(now_ms);
        epochs->BeginIfDue(kNoLimit);
        epochs->Add();
      }
      ASSERT_EQ(plain.span().newest, watched.span().newest) << round << ", " << i;
      ASSERT_EQ(plain.span().oldest, watched.span().oldest) << round << ", " << i;
    }
  }
}

}  // namespace
}  // namespace lethe
