#include "src/engines/plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lethe/filter.h"
#include "lethe/stage.h"
#include "src/filter/compact_formats.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

Plan Make(const PlanRequest& request) {
  const absl::StatusOr<Plan> plan = MakePlan(request);
  EXPECT_OK(plan);
  return plan.value_or(Plan());
}

std::string Refusal(const PlanRequest& request) {
  const absl::Status status = MakePlan(request).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(status.message());
}

TEST(Plan, TakesTheBitsOfTheFormats) {
  const struct {
    double target;
    double most_bits;
  } cases[] = {{1e-2, 24}, {1e-4, 34}, {1e-6, 42}, {1e-9, 58}, {1e-15, 95}};
  for (const auto& [target, most_bits] : cases) {
    const Plan plan = Make({.rate = 1000, .horizon = absl::Hours(24), .target_fpp = target});
    const CompactFormats formats = CompactFormatsFor(target);
    EXPECT_LE(plan.bits_per_id, most_bits) << target;
    EXPECT_GT(plan.bits_per_id, formats.fingerprint_bits) << target;
    EXPECT_GE(plan.fingerprint_bits, formats.fingerprint_bits);
    EXPECT_DOUBLE_EQ(plan.ids, 86.4e6);
    EXPECT_DOUBLE_EQ(plan.false_drops_per_day, 86.4e6 * target);
    EXPECT_GT(plan.exact_bytes, plan.filter_bytes);
    EXPECT_EQ(plan.past_generations, 16);
    EXPECT_EQ(plan.refresh_period, absl::Minutes(90));
  }
}

TEST(Plan, FindsEachOfTheFourFromTheOthers) {
  for (const double target : {1e-2, 3e-4, 1e-6, 2e-8}) {
    for (const double rate : {30.0, 5000.0, 2e6}) {
      const absl::Duration horizon = absl::Hours(7);
      const int64_t memory = Make({.rate = rate, .horizon = horizon, .target_fpp = target}).memory_bytes;
      const Plan by_rate = Make({.horizon = horizon, .target_fpp = target, .memory_bytes = memory});
      EXPECT_NEAR(by_rate.rate / rate, 1, 1e-3);
      const Plan by_horizon = Make({.rate = rate, .target_fpp = target, .memory_bytes = memory});
      EXPECT_NEAR(absl::FDivDuration(by_horizon.horizon, horizon), 1, 1e-3);
      const Plan by_target = Make({.rate = rate, .horizon = horizon, .memory_bytes = memory});
      // A bit more in each fingerprint may still leave as many slots.
      EXPECT_LT(by_target.target_fpp, 1.01 * target);
      EXPECT_GT(by_target.target_fpp, 0.1 * target);
      const Plan again = Make({.rate = rate, .horizon = horizon, .target_fpp = by_target.target_fpp});
      EXPECT_LE(again.memory_bytes, memory);
    }
  }
}

TEST(Plan, HoldsFewIdsInTheSmallestFilter) {
  const Plan plan = Make({.rate = 0.001, .horizon = absl::Hours(1), .target_fpp = 1e-6});
  EXPECT_EQ(plan.filter_bytes, 4096);
  EXPECT_LT(plan.memory_bytes, 128 << 10);
  // So much memory that the longest horizon, the lowest target and the highest rate end it.
  const int64_t tib = int64_t{1} << 40;
  EXPECT_EQ(Make({.rate = 0.001, .target_fpp = 0.1, .memory_bytes = tib}).horizon, absl::Hours(24 * 36525));
  EXPECT_EQ(Make({.rate = 1, .horizon = absl::Hours(1), .memory_bytes = tib}).target_fpp, 1e-15);
  EXPECT_EQ(Make({.horizon = absl::Milliseconds(1), .target_fpp = 0.1, .memory_bytes = tib}).rate, 1e12);
}

TEST(Plan, RefusesWithTheNearestThatCanBe) {
  const absl::Duration day = absl::Hours(24);
  const struct {
    PlanRequest request;
    std::string what;
  } cases[] = {
      {{}, "0 are given; give three"},
      {{.rate = 1}, "1 is given; give three"},
      {{.rate = 1, .horizon = day, .target_fpp = 1e-6, .memory_bytes = 1 << 30}, "all are given; give three"},
      {{.rate = 0, .horizon = day, .target_fpp = 1e-6}, "rate: 0 events a second"},
      {{.rate = std::nan(""), .horizon = day, .target_fpp = 1e-6}, "rate: nan"},
      {{.rate = 1e13, .horizon = day, .target_fpp = 1e-6}, "the nearest that can be is 1e+12"},
      {{.rate = 1, .horizon = absl::ZeroDuration(), .target_fpp = 1e-6}, "the nearest that can be is 1ms"},
      {{.rate = 1, .horizon = absl::InfiniteDuration(), .target_fpp = 1e-6}, "is 36525d"},
      {{.rate = 1, .horizon = day, .target_fpp = 0.5},
       "fpp: 0.5 cannot be a target; the nearest that can be is 0.1"},
      {{.rate = 1, .horizon = day, .target_fpp = 1e-16}, "the nearest that can be is 1e-15"},
      {{.rate = 1, .horizon = day, .target_fpp = std::nan("")}, "fpp: nan"},
      {{.rate = 1, .horizon = day, .memory_bytes = 0}, "memory: 0 B cannot be the limit"},
      {{.rate = 1e12, .target_fpp = 1e-9, .memory_bytes = 1 << 20}, "do not hold a millisecond"},
      {{.rate = 1e9, .horizon = 365 * day, .target_fpp = 1e-6},
       "the nearest that can be is a horizon of 1h40m38s"},
      {{.rate = 20000, .horizon = day, .memory_bytes = int64_t{4} << 30},
       "they would hold a horizon of 8h43m57s at 0.1, or of 5h7m8s at 1e-06"},
      {{.rate = 20000, .horizon = 7 * day, .memory_bytes = int64_t{4} << 30},
       "memory: 4.0 GiB hold 20000 events a second over 7d at no target up to 0.1"},
  };
  for (const auto& [request, what] : cases) {
    EXPECT_THAT(Refusal(request), HasSubstr(what));
  }
}

// What a refusal offers is accepted.
TEST(Plan, WhatItOffersItHolds) {
  EXPECT_LE(Make({.rate = 20000, .horizon = absl::Minutes(520), .memory_bytes = int64_t{4} << 30}).target_fpp,
            0.1);
  EXPECT_LE(Make({.rate = 20000, .horizon = absl::Hours(5), .memory_bytes = int64_t{4} << 30}).target_fpp,
            1e-6);
}

// Ids that come at random moments, so many on average in a horizon.
class Arriving {
 public:
  Arriving(const Plan& plan, uint64_t seed) : mean_ms_(1000 / plan.rate), random_(seed) {}

  TimedId Next() {
    time_ms_ += mean_ms_ * gap_(random_);
    return {{random_(), random_()}, static_cast<int64_t>(time_ms_)};
  }

 private:
  const double mean_ms_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_{1};
  double time_ms_ = 0;
};

// One filter in the planned memory, under the planned load for some horizons.
TEST(Plan, AFilterTakesWhatIsPlanned) {
  const uint64_t seed = TestSeed();
  for (const double target : {1e-2, 1e-3, 1e-4, 1e-6}) {
    SCOPED_TRACE(target);
    const Plan plan = Make({.rate = 400, .horizon = absl::Minutes(15), .target_fpp = target});
    MemoryBudget memory(plan.filter_bytes + (16 << 10));
    const auto filter = NewFilter({.horizon = plan.horizon, .target_fpp = target, .memory = &memory});
    ASSERT_OK(filter);
    Arriving arriving(plan, seed);
    const auto ids = static_cast<int64_t>(plan.ids);
    uint64_t positives = 0;
    uint64_t probes = 0;
    for (int64_t i = 0; i < 5 * ids; ++i) {
      const TimedId id = arriving.Next();
      TestAndInsertOne(**filter, id.id, id.stream_time_ms);
      if (i < 2 * ids || i % (ids / 50) != 0) continue;
      const FilterStatus status = (*filter)->Status();
      EXPECT_GE(status.window, plan.horizon);
      EXPECT_NEAR(static_cast<double>(status.memory_bytes) / static_cast<double>(plan.filter_bytes), 1, 0.1);
      EXPECT_NEAR(absl::FDivDuration(status.shape.refresh_period, plan.refresh_period), 1, 0.05);
      EXPECT_NEAR(status.shape.past_generations, plan.past_generations, 1);
      EXPECT_NEAR(status.shape.bits_per_id, plan.fingerprint_bits, 1);
      constexpr uint64_t kProbes = 20000;
      positives +=
          static_cast<uint64_t>(std::lround(MeasuredFpp(**filter, probes, kProbes, seed ^ 0x5eed) * kProbes));
      probes += kProbes;
    }
    EXPECT_EQ((*filter)->Status().limit_hits, 0);
    const auto n = static_cast<double>(probes);
    EXPECT_LE(static_cast<double>(positives) / n, target + BinomialBound(target, n));
  }
}

// From nothing, too: no column is wasted on the few ids of the beginning, and no refusal is taken for harm.
TEST(Plan, AFilterInThePlannedMemoryNeverShortensItsWindow) {
  const uint64_t seed = TestSeed();
  for (const double target : {1e-1, 1e-3, 1e-6, 1e-9}) {
    for (const double rate : {20.0, 97.0, 400.0, 1500.0}) {
      SCOPED_TRACE(testing::Message() << "target " << target << ", rate " << rate);
      const Plan plan = Make({.rate = rate, .horizon = absl::Minutes(10), .target_fpp = target});
      MemoryBudget memory(plan.filter_bytes + (16 << 10));
      const auto filter = NewFilter({.horizon = plan.horizon, .target_fpp = target, .memory = &memory});
      ASSERT_OK(filter);
      Arriving arriving(plan, seed);
      const auto ids = static_cast<int64_t>(plan.ids);
      for (int64_t i = 0; i < 2 * ids; ++i) {
        const TimedId id = arriving.Next();
        TestAndInsertOne(**filter, id.id, id.stream_time_ms);
      }
      const FilterStatus status = (*filter)->Status();
      EXPECT_EQ(status.limit_hits, 0);
      EXPECT_GE(status.window, plan.horizon);
      for (const AdaptationStep& step : status.steps) {
        EXPECT_NE(step.kind, AdaptationStep::Kind::kShortenWindow) << step.stream_time_ms;
      }
    }
  }
}

// The audit of all ids wants more than the filter. It does with its own part, and takes nothing of the
// filter's.
TEST(Plan, AnAuditOfAllIdsDoesNotStarveTheFilter) {
  const uint64_t seed = TestSeed();
  const Plan plan = Make({.rate = 600, .horizon = absl::Minutes(15), .target_fpp = 1e-4});
  const auto stage = DedupStage::Create({.horizon = plan.horizon,
                                         .target_fpp = plan.target_fpp,
                                         .memory_limit_bytes = plan.memory_bytes,
                                         .audit_share = 1,
                                         .hash_seed = seed});
  ASSERT_OK(stage);
  const auto partition = *(*stage)->Open("p");
  Arriving arriving(plan, seed);
  const auto ids = static_cast<int64_t>(plan.ids);
  for (int64_t i = 0; i < 3 * ids; ++i) {
    const TimedId id = arriving.Next();
    const Event event{.id = {id.id, partition->Hash("").key_check},
                      .time = absl::FromUnixMillis(id.stream_time_ms)};
    Verdict verdict;
    EXPECT_OK(partition->Judge({&event, 1}, {&verdict, 1}));
    if (i % (ids / 10) != 0) continue;
    ASSERT_LE((*stage)->memory().used_bytes(), plan.memory_bytes);
    ASSERT_LE(partition->Status().audit.memory_bytes, plan.memory_bytes / 8);
  }
  const PartitionStatus status = partition->Status();
  EXPECT_LE(status.audit.share, 0.5);
  EXPECT_GT(status.audit.share, 0);
  EXPECT_EQ(status.filter.limit_hits, 0);
  EXPECT_GE(status.filter.window, plan.horizon);
  EXPECT_LE(status.filter.fpp.modelled, plan.target_fpp);
  EXPECT_LE(status.audit.fpp_low, plan.target_fpp);
}

// A stage with the planned limit, whatever the number of its partitions, and with its audit.
TEST(Plan, AStageKeepsItsWindowInThePlannedLimit) {
  const uint64_t seed = TestSeed();
  for (const int partitions : {1, 2, 3, 5, 9}) {
    SCOPED_TRACE(partitions);
    const Plan plan = Make({.rate = 600, .horizon = absl::Minutes(15), .target_fpp = 1e-6});
    const auto stage = DedupStage::Create({.horizon = plan.horizon,
                                           .target_fpp = plan.target_fpp,
                                           .memory_limit_bytes = plan.memory_bytes,
                                           .hash_seed = seed});
    ASSERT_OK(stage);
    std::vector<std::unique_ptr<Partition>> all;
    for (int i = 0; i < partitions; ++i) all.push_back(*(*stage)->Open("p"));
    Arriving arriving(plan, seed);
    const auto ids = static_cast<int64_t>(plan.ids);
    for (int64_t i = 0; i < 4 * ids; ++i) {
      const TimedId id = arriving.Next();
      Partition& judging = *all[static_cast<size_t>(i % partitions)];
      const Event event{.id = {id.id, judging.Hash("").key_check},
                        .time = absl::FromUnixMillis(id.stream_time_ms)};
      Verdict verdict;
      EXPECT_OK(judging.Judge({&event, 1}, {&verdict, 1}));
      if (i < 2 * ids || i % (ids / 20) != 0) continue;
      for (const auto& partition : all) EXPECT_GE(partition->Status().filter.window, plan.horizon);
      EXPECT_GT((*stage)->memory().used_bytes(), plan.memory_bytes / 5 * 2);
    }
  }
}

}  // namespace
}  // namespace lethe
