#include "src/filter/exact.h"

#include <gtest/gtest.h>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

class ExactTest : public testing::Test {
 protected:
  std::unique_ptr<Exact> Make(absl::Duration horizon) {
    auto filter = Exact::Create({.horizon = horizon, .memory = &memory_});
    EXPECT_TRUE(filter.ok()) << filter.status();
    return *std::move(filter);
  }

  MemoryBudget memory_{int64_t{64} << 20};
};

TEST_F(ExactTest, HasNoFalsePositives) {
  const uint64_t seed = TestSeed();
  auto filter = Make(absl::Hours(1));
  for (uint64_t i = 0; i < 500'000; ++i) {
    ASSERT_EQ(TestAndInsertOne(*filter, NumberedId(i, seed), 0), Verdict::kUnique);
  }
  EXPECT_EQ(MeasuredFpp(*filter, 1'000'000, 500'000, seed), 0);
  const FilterStatus status = filter->Status();
  EXPECT_EQ(status.ids, 500'000);
  EXPECT_LT(status.fpp_estimated, 1e-12);
  EXPECT_LE(status.memory_bytes, 18 * 500'000);
  EXPECT_GE(status.memory_bytes, 12 * 500'000);
}

TEST_F(ExactTest, IsASixtyFirstOfTheHorizonLateAtMost) {
  const uint64_t seed = TestSeed();
  for (int64_t phase = 0; phase < 100; ++phase) {
    auto filter = Make(absl::Milliseconds(6100));
    InsertOne(*filter, NumberedId(1, seed), phase);
    filter->AdvanceTo(phase + 6100);
    EXPECT_TRUE(IsContained(*filter, NumberedId(1, seed)));
    filter->AdvanceTo(6200);
    EXPECT_FALSE(IsContained(*filter, NumberedId(1, seed)));
  }
}

TEST_F(ExactTest, NeedsMemoryForTheFirstIds) {
  MemoryBudget memory(10'000);
  EXPECT_EQ(Exact::Create({.memory = &memory}).status().code(), absl::StatusCode::kResourceExhausted);
}

// Where other filters have used up the limit, an id cannot be kept; nothing else goes wrong.
TEST_F(ExactTest, GoesOnWhenOthersHaveAllTheMemory) {
  auto filter = Make(absl::Hours(1));
  ASSERT_TRUE(memory_.Reserve(memory_.limit_bytes()));
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(filter->Status().limit_hits, 2);
  memory_.Release(memory_.limit_bytes());
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, NumberedId(1, 0), 0), Verdict::kDuplicate);
}

}  // namespace
}  // namespace lethe
