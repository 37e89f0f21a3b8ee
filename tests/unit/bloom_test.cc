#include "src/reference/bloom/bloom.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/reference/bloom/recycled.h"
#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

// A 64th of 1 MiB is 16 KiB, 131,072 bits; at 1e-3 ten bits an id make that half full of some 9,000 ids.
class BloomTest : public testing::Test {
 protected:
  MemoryBudget memory_{int64_t{1} << 20};
  const FilterOptions options_ = {
      .horizon = absl::Milliseconds(1000), .target_fpp = 1e-3, .memory = &memory_};
};

TEST_F(BloomTest, NeverForgetsAndItsRateRises) {
  const uint64_t seed = TestSeed();
  auto filter = Bloom::Create(options_);
  ASSERT_OK(filter);
  EXPECT_EQ((*filter)->Status().shape.bits_per_generation, 131'072);
  EXPECT_EQ((*filter)->Status().shape.bits_per_id, 10);
  constexpr uint64_t kProbes = 100'000;
  double before = 0;
  uint64_t inserted = 0;
  for (const uint64_t ids : {9'000, 20'000, 100'000}) {
    for (; inserted < ids; ++inserted) {
      InsertOne(**filter, NumberedId(inserted, seed), static_cast<int64_t>(inserted) * 1'000'000);
    }
    for (uint64_t i = 0; i < inserted; ++i) ASSERT_TRUE(IsContained(**filter, NumberedId(i, seed)));
    const FilterStatus status = (*filter)->Status();
    const double measured = MeasuredFpp(**filter, 1'000'000, kProbes, seed);
    EXPECT_NEAR(measured, status.fpp.estimated, BinomialBound(status.fpp.estimated, kProbes));
    // The fill deviates by 0.15 % at the first size, and less later; the rate by k times that, 1.5 %.
    EXPECT_NEAR(status.fpp.modelled, status.fpp.estimated, 6 * 0.015 * status.fpp.modelled);
    EXPECT_GT(measured, before);
    before = measured;
    EXPECT_EQ(status.ids, static_cast<int64_t>(ids));
    EXPECT_EQ(status.refreshes, 0);
    EXPECT_EQ(status.window, absl::Milliseconds(static_cast<int64_t>(ids - 1) * 1'000'000));
  }
  EXPECT_GT(before, 0.9);
}

TEST_F(BloomTest, ReachesItsTargetWhenHalfFull) {
  for (const double target : {1e-9, 1e-6, 1e-3, 0.1}) {
    auto filter = Bloom::Create({.target_fpp = target, .memory = &memory_});
    ASSERT_OK(filter);
    const FilterStatus status = (*filter)->Status();
    EXPECT_NEAR(std::log2(1 / target), status.shape.bits_per_id, 0.51);
    EXPECT_EQ(status.fpp.target, target);
  }
}

TEST_F(BloomTest, TakesItsMemoryFromTheBudget) {
  {
    auto bloom = Bloom::Create(options_);
    auto recycled = Recycled::Create(options_);
    ASSERT_OK(bloom);
    ASSERT_OK(recycled);
    EXPECT_EQ(memory_.used_bytes(), 32 << 10);
  }
  EXPECT_EQ(memory_.used_bytes(), 0);
  MemoryBudget none(1000);
  EXPECT_THAT(Bloom::Create({.memory = &none}).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Recycled::Create({.memory = &none}).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Cleared on the multiples of the horizon: what came just before passes again, what came after does not.
TEST_F(BloomTest, RecycledForgetsAllAtEachPeriod) {
  auto made = Recycled::Create(options_);
  ASSERT_OK(made);
  Filter& filter = **made;
  const IdHash first = NumberedId(1, 0);
  const IdHash late = NumberedId(2, 0);
  EXPECT_EQ(TestAndInsertOne(filter, first, 5000), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(filter, late, 5999), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(filter, first, 5999), Verdict::kDuplicate);
  EXPECT_EQ(filter.Status().window, absl::Milliseconds(999));
  EXPECT_EQ(filter.Status().ids, 2);
  EXPECT_EQ(TestAndInsertOne(filter, late, 6000), Verdict::kUnique) << "a millisecond old";
  EXPECT_EQ(TestAndInsertOne(filter, late, 6999), Verdict::kDuplicate);
  EXPECT_EQ(filter.Status().ids, 1);
  EXPECT_EQ(filter.Status().refreshes, 1);
  EXPECT_EQ(filter.Status().shape.refresh_period, absl::Seconds(1));
  filter.AdvanceTo(1'000'000);
  EXPECT_EQ(filter.Status().ids, 0);
  EXPECT_EQ(filter.Status().fpp.estimated, 0);
  EXPECT_EQ(filter.Status().window, absl::ZeroDuration());
}

}  // namespace
}  // namespace lethe
