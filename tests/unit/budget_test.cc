#include "src/reference/sliced/budget.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "src/reference/sliced/sliced_model.h"
#include "tests/support/sliced_plan.h"

namespace lethe {
namespace {

constexpr int64_t kHorizon = 86'400'000;
constexpr double kTarget = 1e-4;

const SlicedShape& Shape() {
  static const SlicedShape shape = SlicedShapeFor(kTarget);
  return shape;
}

double Cap() {
  static const double cap = SlicedCap(Shape(), kTarget);
  return cap;
}

// Lines that a steady rate of ids per horizon takes at least, with every interval full to the end.
double LinesFor(double rate) { return rate / (Cap() * SlicedWindowIntervals(Shape())); }

// And at most, as src/reference/sliced/budget.h has it: so many times the plan's, which has a sixteenth more
// than that.
void ExpectLines(int64_t lines, double rate, double most = 2) {
  EXPECT_LE(static_cast<double>(lines), most * SlicedLinesFor(rate, kTarget))
      << "it needs " << LinesFor(rate) << " at least";
}

Budget::Options Options() {
  Budget::Options options;
  options.horizon_ms = kHorizon;
  options.columns = Shape().columns;
  options.cap = Cap();
  options.lines = 128;
  return options;
}

// A filter without its bits: passes take their time, ids only count.
class Simulation {
 public:
  explicit Simulation(Budget::Options options = Options(), int64_t most_lines = INT64_MAX)
      : budget_(options), most_lines_(most_lines) {}

  // Each unfold waits for its memory until so many intervals' worth of ids have come.
  void DelayUnfolds(double intervals) { delay_ = intervals; }

  // `rate` in ids per horizon, at a time in horizons; from the present time on.
  void Run(double horizons, const std::function<double(double)>& rate) {
    constexpr int64_t kStep = 1000;
    for (const int64_t end = now_ + static_cast<int64_t>(horizons * kHorizon); now_ < end; now_ += kStep) {
      const double mean = rate(static_cast<double>(now_) / kHorizon) * kStep / kHorizon;
      due_ += std::poisson_distribution<int64_t>(mean)(random_);
      budget_.AdvanceTo(now_);
      while (due_ > 0) Insert();
      if (now_ % 60'000 == 0) Look();
    }
  }

  Budget& budget() { return budget_; }
  // The worst at an end of an interval, as a multiple of the target.
  double worst_fpp() const { return worst_fpp_; }
  int64_t lines_at_most() const { return lines_at_most_; }
  int columns_at_most() const { return columns_at_most_; }
  // After the first horizon.
  double shortest_window() const { return shortest_window_; }
  FilterStatus status() const {
    FilterStatus status;
    budget_.Describe(now_, &status);
    return status;
  }
  int64_t Steps(AdaptationStep::Kind kind) const {
    int64_t steps = 0;
    for (const StepCount& counted : status().step_counts) steps += counted.kind == kind ? counted.count : 0;
    return steps;
  }

 private:
  void Insert() {
    const int64_t count = std::min(due_, budget_.InsertsPerStep());
    due_ -= count;
    budget_.AddInserts(count, now_);
    if (pass_ != Budget::Pass::kNone) {
      if (waiting_ > 0) {
        waiting_ -= count;
      } else {
        pass_lines_ -= count * budget_.LinesPerInsert(pass_);
      }
      if (pass_lines_ <= 0) {
        pass_ = Budget::Pass::kNone;
        budget_.PassEnded();
      }
    }
    const Budget::Pass wanted = budget_.Wanted();
    if (wanted == Budget::Pass::kUnfold && 2 * budget_.lines() > most_lines_) {
      budget_.UnfoldRefused();
    } else if (wanted != Budget::Pass::kNone) {
      pass_ = wanted;
      pass_lines_ = wanted == Budget::Pass::kFold ? budget_.lines() / 2 : budget_.lines();
      budget_.PassStarted(wanted);
      waiting_ = 0;
      if (wanted == Budget::Pass::kUnfold) {
        waiting_ = static_cast<int64_t>(delay_ * budget_.InsertsPerInterval());
      }
    }
    lines_at_most_ = std::max(lines_at_most_, budget_.lines());
    columns_at_most_ = std::max(columns_at_most_,
                                budget_.live_columns() + budget_.clean_columns() + budget_.dirty_columns());
    EXPECT_GE(budget_.clean_columns(), 0);
    EXPECT_GE(budget_.dirty_columns(), 0);
  }

  void Look() {
    const FilterStatus seen = status();
    if (now_ > kHorizon) {
      shortest_window_ = std::min(shortest_window_, absl::ToDoubleMilliseconds(seen.window) / kHorizon);
    }
    if (seen.refreshes == refreshes_) return;
    refreshes_ = seen.refreshes;
    worst_fpp_ = std::max(worst_fpp_, SlicedFpp(Shape(), budget_.LoadsAtRefresh()) / kTarget);
  }

  Budget budget_;
  const int64_t most_lines_;
  std::mt19937_64 random_{20150912};
  int64_t now_ = 0;
  int64_t due_ = 0;
  Budget::Pass pass_ = Budget::Pass::kNone;
  int64_t pass_lines_ = 0;
  double delay_ = 0;
  int64_t waiting_ = 0;
  int64_t refreshes_ = 0;
  double worst_fpp_ = 0;
  int64_t lines_at_most_ = 0;
  int columns_at_most_ = 0;
  double shortest_window_ = 1e9;
};

// Whatever the load jumps to, and when within an interval, the target holds and the lines are what the
// load needs, up to the next doubling.
TEST(Budget, MakesRoomBeforeItIsShort) {
  for (const double jump : {0.8, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0, 100.0}) {
    for (const double phase : {0.0, 0.03, 0.05}) {
      for (const double base : {20000.0, 28000.0}) {
        SCOPED_TRACE(testing::Message() << "jump " << jump << " phase " << phase << " base " << base);
        Simulation simulation;
        simulation.Run(3.6, [&](double t) { return t < 2.3 + phase ? base : base * jump; });
        EXPECT_LE(simulation.worst_fpp(), 0.95);
        ExpectLines(simulation.lines_at_most(), base * std::max(1.0, jump));
        EXPECT_GE(simulation.shortest_window(), 1.0);
        EXPECT_EQ(simulation.columns_at_most(), 16);
        EXPECT_EQ(simulation.status().limit_hits, 0);
      }
    }
  }
}

// Also if the pages of the new lines come late, each time.
TEST(Budget, MakesRoomInTimeWhenMemoryIsSlow) {
  for (const double jump : {5.0, 100.0}) {
    for (int i = 0; i < 24; ++i) {
      const double start = 2.33 + 0.005 * i;
      const double base = 20000 * (1 + 0.04 * i);
      SCOPED_TRACE(testing::Message() << "jump " << jump << " at " << start << ", base " << base);
      Simulation simulation;
      simulation.DelayUnfolds(1.0 / 11);
      simulation.Run(3.6, [&](double t) { return t < start ? base : base * jump; });
      EXPECT_LE(simulation.worst_fpp(), 0.95);
      ExpectLines(simulation.lines_at_most(), base * jump, 2.11);
      EXPECT_GE(simulation.shortest_window(), 1.0);
      EXPECT_EQ(simulation.status().limit_hits, 0);
    }
  }
}

// Down to twice what the plan has for what is left, wherever that is between two sizes, and no more often
// than it must.
TEST(Budget, GivesLinesBackWhenTheLoadFalls) {
  for (const double fall : {0.5, 0.33, 0.3, 0.28, 0.26, 0.24, 0.1, 0.01}) {
    SCOPED_TRACE(testing::Message() << "to " << fall);
    constexpr double kBase = 500000;
    Simulation simulation;
    simulation.Run(6, [&](double t) { return t < 2.3 ? kBase : fall * kBase; });
    EXPECT_GE(static_cast<double>(simulation.lines_at_most()), LinesFor(kBase));
    ExpectLines(simulation.budget().lines(), fall * kBase);
    const int64_t folds = simulation.Steps(AdaptationStep::Kind::kFold);
    EXPECT_LE(folds, 1 + std::log2(1 / fall));
    EXPECT_LE(simulation.Steps(AdaptationStep::Kind::kUnfold), 10);
    EXPECT_LE(simulation.worst_fpp(), 0.95);
    EXPECT_GE(simulation.shortest_window(), 1.0);
  }
}

TEST(Budget, KeepsTheTargetUnderUnrest) {
  const std::vector<std::function<double(double)>> rates = {
      [](double t) { return std::fmod(t, 0.7) < 0.03 ? 600000.0 : 20000.0; },
      [](double t) { return std::fmod(t, 0.1) < 0.0035 ? 1e6 : 50000.0; },
      [](double t) { return 50000 * (1 + 0.95 * std::sin(2 * M_PI * t)); },
      [](double t) { return 50000 * std::exp(0.7 * std::sin(t * 1000) + 0.7 * std::sin(t * 317)); },
  };
  for (size_t i = 0; i < rates.size(); ++i) {
    SCOPED_TRACE(i);
    Simulation simulation;
    simulation.Run(4, rates[i]);
    EXPECT_LE(simulation.worst_fpp(), 0.95);
    EXPECT_GE(simulation.shortest_window(), 1.0);
    EXPECT_EQ(simulation.status().limit_hits, 0);
  }
}

TEST(Budget, CutsAQuietHorizonIntoFourIntervals) {
  Simulation simulation;
  simulation.Run(5, [](double) { return 40.0; });
  const FilterStatus status = simulation.status();
  EXPECT_EQ(simulation.budget().lines(), 128);
  EXPECT_GE(status.refreshes, 15);
  EXPECT_LE(status.refreshes, 20);
  EXPECT_LE(simulation.budget().live_columns(), 7);
  EXPECT_LE(status.window, absl::Milliseconds(kHorizon) * 1.3);
}

TEST(Budget, AtTheLimitShortensTheWindow) {
  Simulation simulation(Options(), 1024);
  simulation.Run(3, [](double) { return 2.0 * 1024 * Cap() * SlicedWindowIntervals(Shape()); });
  const FilterStatus status = simulation.status();
  EXPECT_EQ(simulation.lines_at_most(), 1024);
  EXPECT_GT(status.limit_hits, 10);
  EXPECT_LE(simulation.worst_fpp(), 1.0);
  // Half the memory, so half the window.
  EXPECT_NEAR(simulation.shortest_window(), 0.5, 0.06);
}

TEST(Budget, AtTheLimitExceedsTheTargetIfConfigured) {
  Budget::Options options = Options();
  options.at_memory_limit = AtMemoryLimit::kExceedFpp;
  Simulation simulation(options, 1024);
  simulation.Run(3, [](double) { return 2.0 * 1024 * Cap() * SlicedWindowIntervals(Shape()); });
  EXPECT_EQ(simulation.lines_at_most(), 1024);
  EXPECT_GT(simulation.status().limit_hits, 0);
  EXPECT_GT(simulation.worst_fpp(), 2.0);
  EXPECT_GE(simulation.shortest_window(), 1.0);
}

TEST(Budget, RecoversFromTheLimit) {
  Simulation simulation(Options(), 1024);
  const double capacity = 1024 * Cap() * SlicedWindowIntervals(Shape());
  simulation.Run(2, [&](double) { return 3 * capacity; });
  EXPECT_LT(simulation.status().window, absl::Milliseconds(kHorizon));
  simulation.Run(1.5, [&](double) { return capacity / 2; });
  const int64_t hits = simulation.status().limit_hits;
  EXPECT_GE(simulation.status().window, absl::Milliseconds(kHorizon));
  simulation.Run(2, [&](double) { return capacity / 2; });
  EXPECT_EQ(simulation.status().limit_hits, hits);
}

TEST(Budget, ForgetsAllAfterALongGap) {
  Simulation simulation;
  simulation.Run(2, [](double) { return 100000.0; });
  Budget& budget = simulation.budget();
  EXPECT_GT(budget.live_columns(), 4);
  budget.AdvanceTo(int64_t{20} * kHorizon);
  EXPECT_LE(budget.live_columns(), 3);
  EXPECT_EQ(budget.clean_columns() + budget.dirty_columns() + budget.live_columns(), 16);
}

// Without a clean column the interval goes on, however long that takes.
TEST(Budget, NeverRefreshesIntoADirtyColumn) {
  Budget::Options options = Options();
  Budget budget(options);
  int64_t now = 0;
  for (int i = 0; i < 100000; ++i) {
    now += kHorizon / 1000;
    budget.AddInserts(1, now);
    ASSERT_GE(budget.clean_columns(), 0);
    // The owner never gets to run a pass.
  }
  FilterStatus status;
  budget.Describe(now, &status);
  EXPECT_EQ(status.refreshes, 14);
  EXPECT_EQ(budget.Wanted(), Budget::Pass::kSweep);
}

TEST(Budget, RecordsItsLatestSteps) {
  Simulation simulation;
  simulation.Run(12, [](double t) { return t < 11.9 ? 1000.0 : 100000.0; });
  const FilterStatus status = simulation.status();
  ASSERT_EQ(status.steps.size(), 64u);
  EXPECT_TRUE(std::is_sorted(status.steps.begin(), status.steps.end(), [](const auto& a, const auto& b) {
    return a.stream_time_ms < b.stream_time_ms;
  }));
  EXPECT_TRUE(std::any_of(status.steps.begin(), status.steps.end(), [](const AdaptationStep& step) {
    return step.kind == AdaptationStep::Kind::kUnfold;
  }));
  for (const AdaptationStep& step : status.steps) EXPECT_FALSE(step.reason.empty());
}

TEST(Budget, CountsStepsThatItsListHasForgotten) {
  Simulation simulation;
  simulation.Run(12, [](double t) { return t < 11.9 ? 1000.0 : 100000.0; });
  const FilterStatus status = simulation.status();
  int64_t refreshes = 0;
  int64_t unfolds = 0;
  int64_t all = 0;
  for (const StepCount& steps : status.step_counts) {
    EXPECT_FALSE(steps.reason.empty());
    if (steps.kind == AdaptationStep::Kind::kRefresh) refreshes += steps.count;
    if (steps.kind == AdaptationStep::Kind::kUnfold) unfolds += steps.count;
    all += steps.count;
  }
  EXPECT_EQ(refreshes, status.refreshes);
  EXPECT_GT(unfolds, 0);
  EXPECT_GT(all, 64);
  EXPECT_EQ(status.step_counts.size(), 7u) << "a step of a kind or reason that is not counted from zero on";
}

TEST(Arrivals, ExpectWhatCameLately) {
  Arrivals arrivals(kHorizon);
  for (int64_t t = 0; t < kHorizon; t += 100) arrivals.Add(1, t);  // 864,000 in a horizon
  EXPECT_NEAR(arrivals.Expected(kHorizon), 864000, 9000);
  EXPECT_NEAR(arrivals.Expected(kHorizon / 100.0), 8640, 90);
  // Ten times as many: what is expected soon is known soon, what is expected late is known late.
  for (int64_t t = kHorizon; t < kHorizon + kHorizon / 1000; t += 10) arrivals.Add(1, t);
  EXPECT_NEAR(arrivals.Expected(kHorizon / 100.0), 86400, 20000);
  EXPECT_LT(arrivals.Expected(kHorizon), 2 * 864000);
}

// Timestamps in whole seconds do not look like a burst each second.
TEST(Arrivals, BearACoarseClock) {
  constexpr int64_t kMinute = 60'000;
  Arrivals arrivals(kMinute);
  double most = 0;
  for (int64_t second = 0; second < 300; ++second) {
    for (int i = 0; i < 100; ++i) {
      arrivals.Add(10, second * 1000);
      if (second > 60) most = std::max(most, arrivals.Expected(1000));
    }
  }
  EXPECT_LE(most, 2100);  // 1000 come in a second
}

// Once it is over, a burst at the beginning counts no more than what came after it.
TEST(Arrivals, ForgetABurstAtTheBeginning) {
  constexpr int64_t kMinute = 60'000;
  Arrivals arrivals(kHorizon);
  for (int64_t t = 0; t < 2 * kMinute; t += 100) arrivals.Add(1000, t);  // 864 million in a horizon
  EXPECT_LT(arrivals.Expected(kHorizon), 100e6) << "two minutes say little of a day";
  for (int64_t t = 2 * kMinute; t < 6 * kMinute; t += 100) arrivals.Add(1, t);
  EXPECT_LE(arrivals.Expected(kHorizon), 2.1 * 864'000);
  for (int64_t t = 6 * kMinute; t < 30 * kMinute; t += 100) arrivals.Add(1, t);
  EXPECT_LE(arrivals.Expected(kHorizon), 2.1 * 864'000);
}

TEST(Arrivals, BeforeTimeHasBegunExpectAsManyAgain) {
  Arrivals arrivals(kHorizon);
  arrivals.Add(50, kNoStreamTime);
  arrivals.Add(50, kNoStreamTime);
  EXPECT_EQ(arrivals.Expected(1), 100);
  arrivals.Add(10, -5000);
  EXPECT_LT(arrivals.Expected(1), 100);
}

}  // namespace
}  // namespace lethe
