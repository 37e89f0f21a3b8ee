#include "lethe/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "lethe/filter.h"
#include "src/engines/new_filter.h"
#include "src/published/fixed_share.h"
#include "src/published/published_fbf.h"
#include "src/reference/any_engine.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

std::string Refusal(const StageOptions& options) {
  const absl::Status status = Validate(options);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  return std::string(status.message());
}

TEST(OptionsTest, DefaultsAreValid) { EXPECT_OK(Validate(StageOptions())); }

TEST(OptionsTest, HorizonMustBePositiveAndFinite) {
  EXPECT_EQ(Refusal({.horizon = absl::ZeroDuration()}),
            "horizon: 0 is too short; the nearest that can be is 1ms");
  EXPECT_EQ(Refusal({.horizon = -absl::Hours(1)}),
            "horizon: -1h is too short; the nearest that can be is 1ms");
  EXPECT_EQ(Refusal({.horizon = absl::InfiniteDuration()}),
            "horizon: inf is too long; the nearest that can be is 36525d");
  EXPECT_OK(Validate({.horizon = absl::Milliseconds(1)}));
}

TEST(OptionsTest, TargetMustBeAProbabilityThatCanBeMet) {
  EXPECT_EQ(Refusal({.target_fpp = 0}),
            "target_fpp: 0 is too low for the engine compact; the nearest that can be is 1e-15");
  EXPECT_EQ(Refusal({.target_fpp = 1}),
            "target_fpp: 1 is too high for the engine compact; the nearest that can be is 0.1");
  const EngineLimits published = LimitsOf(Engine::kPublished);
  EXPECT_EQ(Validate(StageOptions{.target_fpp = 1e-13}, published).message(),
            "target_fpp: 1e-13 is too low for the engine published; the nearest that can be is 1e-12");
  EXPECT_EQ(Refusal({.target_fpp = 1, .engine = Engine::kExact}),
            "target_fpp: 1 is too high for the engine exact; the nearest that can be is 0.99");
  EXPECT_EQ(Refusal({.target_fpp = std::nan("")}), "target_fpp: is not a number; give 1e-6, say");
  EXPECT_OK(Validate({.target_fpp = 1e-15}));
  EXPECT_OK(Validate(StageOptions{.target_fpp = 1e-12}, published));
  EXPECT_OK(Validate({.target_fpp = 0.99, .engine = Engine::kExact}));
  EXPECT_OK(Validate({.target_fpp = 1e-15, .engine = Engine::kExact}));
}

TEST(EngineTest, NamesAndEnginesAreEachOthers) {
  for (const absl::string_view name : {"compact", "published", "exact", "bloom", "recycled", "opposite"}) {
    const absl::StatusOr<AnyEngine> engine = ParseEngine(name);
    ASSERT_OK(engine);
    EXPECT_EQ(EngineName(*engine), name);
  }
}

TEST(EngineTest, ThreeBreakThePromise) {
  for (const AnyEngine engine :
       {AnyEngine(Engine::kCompact), AnyEngine(Engine::kPublished), AnyEngine(Engine::kExact)}) {
    EXPECT_EQ(BrokenPromise(engine), "") << EngineName(engine);
  }
  for (const Reference engine : {Reference::kBloom, Reference::kRecycled, Reference::kOpposite}) {
    EXPECT_THAT(BrokenPromise(engine), HasSubstr("promise")) << EngineName(engine);
  }
}

TEST(EngineTest, AnUnknownNameIsRefusedWithTheNearest) {
  const auto refusal = [](absl::string_view name) {
    return std::string(ParseEngine(name).status().message());
  };
  EXPECT_EQ(refusal("compakt"),
            "engine: there is no \"compakt\"; the nearest is compact, of compact, exact, published, bloom, "
            "recycled, opposite");
  EXPECT_THAT(refusal("Published"), HasSubstr("nearest is published,"));
  EXPECT_THAT(refusal("blom"), HasSubstr("nearest is bloom,"));
  EXPECT_THAT(refusal("recycle"), HasSubstr("nearest is recycled,"));
  EXPECT_THAT(refusal("oposite"), HasSubstr("nearest is opposite,"));
  EXPECT_THAT(refusal("exakt"), HasSubstr("nearest is exact,"));
  // Not all of what somebody's file may hold is repeated.
  EXPECT_LT(refusal(std::string(1'000'000, 'x')).size(), 300u);
}

TEST(OptionsTest, ShardsMustBeAPowerOfTwo) {
  EXPECT_EQ(Refusal({.shards = 0}), "shards: 0 is too few; the nearest that can be is 1");
  EXPECT_EQ(Refusal({.shards = 5}), "shards: 5 is not a power of two; the nearest that can be is 4");
  EXPECT_EQ(Refusal({.shards = 7}), "shards: 7 is not a power of two; the nearest that can be is 8");
  EXPECT_EQ(Refusal({.shards = 512}), "shards: 512 is too many; the nearest that can be is 256");
  for (int shards = 1; shards <= 256; shards *= 2) EXPECT_OK(Validate({.shards = shards})) << shards;
}

TEST(OptionsTest, MemoryMustHoldTheSmallestFilterOfEveryShard) {
  const EngineLimits limits = {.lowest_fpp = 1e-9, .highest_fpp = 0.1, .smallest_filter_bytes = 16384};
  const auto refusal = [&](const StageOptions& options) {
    return std::string(Validate(options, limits).message());
  };
  EXPECT_EQ(refusal({.memory_limit_bytes = 16383}),
            "memory_limit_bytes: 16383 has no room for one partition's filter in 1 shard; "
            "the nearest that can be is 18724");  // of which an eighth is the audit's
  EXPECT_EQ(refusal({.memory_limit_bytes = 16383, .audit_share = 0}),
            "memory_limit_bytes: 16383 has no room for one partition's filter in 1 shard; "
            "the nearest that can be is 16384");
  EXPECT_EQ(refusal({.memory_limit_bytes = -1, .shards = 2}),
            "memory_limit_bytes: -1 has no room for one partition's filter in 2 shards; "
            "the nearest that can be is 37449");
  EXPECT_OK(Validate(StageOptions{.memory_limit_bytes = 37449, .shards = 2}, limits));
}

TEST(NewFilterTest, TakesItsMemoryFromTheBudgetAndGivesItBack) {
  MemoryBudget memory(int64_t{1} << 30);
  {
    auto filter = NewFilter(AnyEngine(Engine::kPublished), {.memory = &memory});
    ASSERT_OK(filter);
    // Two generations of the sixteen that a 64th of the limit has room for.
    EXPECT_EQ(memory.used_bytes(), int64_t{2} << 20);
    EXPECT_EQ((*filter)->Status().memory_bytes, memory.used_bytes());
  }
  EXPECT_EQ(memory.used_bytes(), 0);
}

TEST(NewFilterTest, WhatValidatePassesFindsRoom) {
  for (int64_t limit = kSmallestShareBytes; limit <= int64_t{1} << 24; limit = limit * 5 / 4) {
    MemoryBudget memory(limit);
    EXPECT_OK(NewFilter(AnyEngine(Engine::kPublished), {.memory = &memory})) << limit;
  }
}

// As many filters as fit by the figure can be made, whatever else the limit has room for; and with half of it
// there is no filter.
TEST(NewFilterTest, TheSmallestFilterIsAsSmallAsDocumented) {
  const int64_t smallest = LimitsOf(Engine::kCompact).smallest_filter_bytes;
  EXPECT_LE(smallest, int64_t{32} << 10);
  for (const double target : {1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.1}) {
    for (int64_t limit = smallest; limit < 70 * smallest; limit = limit * 9 / 8) {
      MemoryBudget memory(limit);
      std::vector<std::unique_ptr<Filter>> filters;
      for (int64_t i = 0; i < limit / smallest; ++i) {
        auto filter = NewFilter({.target_fpp = target, .memory = &memory});
        ASSERT_OK(filter) << i << " of " << limit / smallest;
        filters.push_back(*std::move(filter));
      }
      EXPECT_LE(memory.used_bytes(), limit);
    }
    MemoryBudget half(smallest / 2);
    EXPECT_THAT(NewFilter({.target_fpp = target, .memory = &half}).status(),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

TEST(NewFilterTest, RefusesWhatCannotBe) {
  MemoryBudget memory(1 << 20);
  EXPECT_THAT(NewFilter({.horizon = absl::ZeroDuration(), .memory = &memory}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(NewFilter({.target_fpp = 2, .memory = &memory}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(NewFilter({.memory = nullptr}).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  MemoryBudget none(1000);
  EXPECT_THAT(NewFilter(AnyEngine(Engine::kPublished), {.memory = &none}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// The published engine's shape reaches every target at the load it is made for: half-full arrays.
TEST(NewFilterTest, PublishedShapeCoversTheHorizonAndMeetsTheTarget) {
  MemoryBudget memory(int64_t{1} << 30);
  for (const double target : {1e-9, 1e-6, 1e-3, 0.1, 0.9}) {
    for (const absl::Duration horizon : {absl::Milliseconds(1), absl::Seconds(10), absl::Hours(1000)}) {
      const PublishedFbfOptions shape =
          PublishedShape({.horizon = horizon, .target_fpp = target, .memory = &memory});
      auto filter = PublishedFbf::Create(shape);
      ASSERT_OK(filter);
      const FilterStatus status = (*filter)->Status();
      EXPECT_GE((status.shape.past_generations + 1) * status.shape.refresh_period, horizon);
      EXPECT_LE(2 * std::pow(0.5, status.shape.bits_per_id), target * std::sqrt(2.0) * 1.0001) << target;
    }
  }
}

}  // namespace
}  // namespace lethe
