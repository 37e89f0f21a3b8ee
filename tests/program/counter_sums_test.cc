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

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(CounterSumsTest, ASumThatWouldLeave64BitsIsLeftAsItWas) {
  CounterSums sums;
  EXPECT_TRUE(sums.Add("a", kMax));
  EXPECT_FALSE(sums.Add("a", 1));
  EXPECT_EQ(sums.changed().at("a"), kMax);
  EXPECT_TRUE(sums.Add("a", kMin));
  EXPECT_EQ(sums.changed().at("a"), -1);
  EXPECT_TRUE(sums.Add("b", kMin));
  EXPECT_FALSE(sums.Add("b", -1));
  EXPECT_EQ(sums.changed().at("b"), kMin);
  EXPECT_EQ(sums.changed().size(), 2u);
}

TEST(CounterSumsTest, AfterClearTheRefusedDeltaFits) {
  CounterSums sums;
  EXPECT_TRUE(sums.Add("a", kMin));
  EXPECT_FALSE(sums.Add("a", kMin));
  sums.Clear();
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_TRUE(sums.Add("a", kMin));
}

// Whoever holds them can say when they are too many.
TEST(CounterSumsTest, TheirBytesAreThoseOfDifferentKeys) {
  CounterSums sums;
  EXPECT_EQ(sums.bytes(), 0);
  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(sums.Add(large, 1));
  const int64_t one = sums.bytes();
  EXPECT_GE(one, 1 << 20);
  EXPECT_LT(one, (1 << 20) + 1000);
  ASSERT_TRUE(sums.Add(large, kMax - 1));
  EXPECT_FALSE(sums.Add(large, 1));
  EXPECT_EQ(sums.bytes(), one);
  ASSERT_TRUE(sums.Add(large + "y", 1));
  EXPECT_GE(sums.bytes(), 2 * one);
  sums.Clear();
  EXPECT_EQ(sums.bytes(), 0);
}

TEST(CounterSumsTest, TotalsAreThoseOfCommittedTransactions) {
  CounterSums sums(/*keeps_totals=*/true);
  sums.Restore("a", 40);
  EXPECT_TRUE(sums.Add("a", 2));
  EXPECT_TRUE(sums.Add("b", -1));
  EXPECT_EQ(sums.changed().at("a"), 42);
  EXPECT_EQ(sums.totals().at("a"), 40);
  sums.Clear();
  EXPECT_TRUE(sums.Add("a", 3));
  EXPECT_TRUE(sums.Add("a", 4));
  EXPECT_EQ(sums.changed().at("a"), 47);
  sums.Commit();
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_EQ(sums.bytes(), 0);
  EXPECT_EQ(sums.totals(), (CounterSums::Sums{{"a", 47}}));
  EXPECT_TRUE(sums.Add("b", 5));
  EXPECT_EQ(sums.changed(), (CounterSums::Sums{{"b", 5}}));
}

TEST(CounterSumsTest, ATotalThatWouldLeave64BitsIsLeftAsItWas) {
  CounterSums sums(/*keeps_totals=*/true);
  sums.Restore("a", kMax - 1);
  EXPECT_FALSE(sums.Add("a", 2));
  EXPECT_TRUE(sums.changed().empty());
  EXPECT_TRUE(sums.Add("a", 1));
  sums.Commit();
  EXPECT_FALSE(sums.Add("a", 1));
  EXPECT_TRUE(sums.Add("a", kMin));
  EXPECT_EQ(sums.changed().at("a"), -1);
}

TEST(CounterSumsTest, WithoutTotalsACommitForgets) {
  CounterSums sums;
  EXPECT_TRUE(sums.Add("a", kMax));
  sums.Commit();
  EXPECT_TRUE(sums.totals().empty());
  EXPECT_TRUE(sums.Add("a", kMax));
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
    if (sums.Add(key, delta)) continue;
    write();
    ASSERT_TRUE(sums.Add(key, delta));
  }
  write();
  EXPECT_TRUE(written == expected);
}

}  // namespace
}  // namespace lethe
