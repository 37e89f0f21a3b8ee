#include "src/counters/counter_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

using Added = CounterSums::Added;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(CounterSumsTest, ASumThatWouldLeave64BitsIsLeftAsItWas) {
  CounterSums sums;
  EXPECT_EQ(sums.Add("a", kMax), Added::kYes);
  EXPECT_EQ(sums.Add("a", 1), Added::kOverflow);
  EXPECT_EQ(sums.changed().at("a"), kMax);
  EXPECT_EQ(sums.Add("a", kMin), Added::kYes);
  EXPECT_EQ(sums.changed().at("a"), -1);
  EXPECT_EQ(sums.Add("b", kMin), Added::kYes);
  EXPECT_EQ(sums.Add("b", -1), Added::kOverflow);
  EXPECT_EQ(sums.changed().at("b"), kMin);
  EXPECT_EQ(sums.changed().size(), 2u);
}

TEST(CounterSumsTest, AfterClearTheRefusedDeltaFits) {
  CounterSums sums;
  EXPECT_EQ(sums.Add("a", kMin), Added::kYes);
  EXPECT_EQ(sums.Add("a", kMin), Added::kOverflow);
  sums.Clear();
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_EQ(sums.Add("a", kMin), Added::kYes);
}

// Whoever holds them can say when they are too many.
TEST(CounterSumsTest, TheirBytesAreThoseOfDifferentKeys) {
  CounterSums sums;
  EXPECT_EQ(sums.bytes(), 0);
  const std::string large(1 << 20, 'x');
  ASSERT_EQ(sums.Add(large, 1), Added::kYes);
  const int64_t one = sums.bytes();
  EXPECT_GE(one, 1 << 20);
  EXPECT_LT(one, (1 << 20) + 1000);
  ASSERT_EQ(sums.Add(large, kMax - 1), Added::kYes);
  EXPECT_EQ(sums.Add(large, 1), Added::kOverflow);
  EXPECT_EQ(sums.bytes(), one);
  ASSERT_EQ(sums.Add(large + "y", 1), Added::kYes);
  EXPECT_GE(sums.bytes(), 2 * one);
  sums.Clear();
  EXPECT_EQ(sums.bytes(), 0);
}

TEST(CounterSumsTest, TotalsAreThoseOfCommittedTransactions) {
  CounterSums sums = CounterSums::WithTotals(100);
  sums.Restore("a", 40);
  EXPECT_EQ(sums.Add("a", 2), Added::kYes);
  EXPECT_EQ(sums.Add("b", -1), Added::kYes);
  EXPECT_EQ(sums.changed().at("a"), 42);
  EXPECT_EQ(sums.totals().at("a"), 40);
  sums.Clear();
  EXPECT_EQ(sums.Add("a", 3), Added::kYes);
  EXPECT_EQ(sums.Add("a", 4), Added::kYes);
  EXPECT_EQ(sums.changed().at("a"), 47);
  sums.Commit();
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_EQ(sums.bytes(), 0);
  EXPECT_EQ(sums.totals(), (CounterSums::Sums{{"a", 47}}));
  EXPECT_EQ(sums.Add("b", 5), Added::kYes);
  EXPECT_EQ(sums.changed(), (CounterSums::Sums{{"b", 5}}));
}

TEST(CounterSumsTest, TheFirstKeysCountAlsoAfterAnAbortAndARestart) {
  CounterSums sums = CounterSums::WithTotals(2);
  // The same transaction twice: first aborted, then committed.
  for (const bool commits : {false, true}) {
    EXPECT_EQ(sums.Add("a", 1), Added::kYes);
    EXPECT_EQ(sums.Add("b", 1), Added::kYes);
    EXPECT_EQ(sums.Add("c", 1), Added::kTooManyKeys);
    EXPECT_EQ(sums.Add("a", 1), Added::kYes);
    EXPECT_EQ(sums.changed(), (CounterSums::Sums{{"a", 2}, {"b", 1}}));
    commits ? sums.Commit() : sums.Clear();
  }
  CounterSums restarted = CounterSums::WithTotals(2);
  for (const auto& [key, total] : sums.totals()) restarted.Restore(key, total);
  for (CounterSums* each : {&sums, &restarted}) {
    EXPECT_EQ(each->Add("c", 1), Added::kTooManyKeys);
    EXPECT_EQ(each->Add("b", 1), Added::kYes);
    EXPECT_EQ(each->changed(), (CounterSums::Sums{{"b", 2}}));
    EXPECT_EQ(each->Add("b", kMax), Added::kOverflow);
  }
  // More than are allowed now, and one that somebody has deleted.
  CounterSums lowered = CounterSums::WithTotals(1);
  for (const auto& [key, total] : sums.totals()) lowered.Restore(key, total);
  EXPECT_EQ(lowered.Add("b", 1), Added::kYes);
  EXPECT_EQ(lowered.Add("c", 1), Added::kTooManyKeys);
  lowered.Clear();
  lowered.Forget("a");
  lowered.Forget("b");
  EXPECT_EQ(lowered.Add("c", 1), Added::kYes);
}

TEST(CounterSumsTest, ATotalThatWouldLeave64BitsIsLeftAsItWas) {
  CounterSums sums = CounterSums::WithTotals(100);
  sums.Restore("a", kMax - 1);
  EXPECT_EQ(sums.Add("a", 2), Added::kOverflow);
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_EQ(sums.Add("a", 1), Added::kYes);
  sums.Commit();
  EXPECT_EQ(sums.Add("a", 1), Added::kOverflow);
  EXPECT_EQ(sums.Add("a", kMin), Added::kYes);
  EXPECT_EQ(sums.changed().at("a"), -1);
}

TEST(CounterSumsTest, WithoutTotalsACommitForgets) {
  CounterSums sums;
  EXPECT_EQ(sums.Add("a", kMax), Added::kYes);
  sums.Commit();
  EXPECT_TRUE(sums.totals().empty());
  EXPECT_EQ(sums.Add("a", kMax), Added::kYes);
}

// With random deltas of any size, what is written before each Clear and what is left add up exactly.
TEST(CounterSumsTest, WrittenSumsAddUp) {
  std::mt19937_64 random(TestSeed());
  CounterSums sums;
  std::map<std::string, __int128> expected, written;
  const auto write = [&] {
    for (const auto& [key, sum] : sums.changed()) written[key] += sum;
    sums.Clear();
  };
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = absl::StrCat(random() % 7);
    const auto delta = static_cast<int64_t>(random() >> random() % 64) * (random() % 2 == 0 ? 1 : -1);
    expected[key] += delta;
    if (sums.Add(key, delta) == Added::kYes) continue;
    write();
    ASSERT_EQ(sums.Add(key, delta), Added::kYes);
  }
  write();
  EXPECT_TRUE(written == expected);
}

}  // namespace
}  // namespace lethe
