#include <gtest/gtest.h>

#include <vector>

#include "src/pipeline/report/watches.h"

namespace lethe::kafka {
namespace {

using Partitions = std::vector<TopicPartition>;
using Sights = std::vector<ProgressWatch::Sight>;

constexpr absl::Duration kPatience = absl::Seconds(30);
const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(int seconds) { return kStart + absl::Seconds(seconds); }

TEST(ProgressWatchTest, APartitionThatIsBehindAndCommitsNothingIsStalledAfterThePatience) {
  ProgressWatch watch;
  for (int second = 0; second <= 30; ++second) {
    watch.Look(Sights{{{0, 0}, 17, true}}, At(second));
    EXPECT_TRUE(watch.Stalled(kPatience, At(second)).empty()) << second;
  }
  watch.Look(Sights{{{0, 0}, 17, true}}, At(31));
  EXPECT_EQ(watch.Stalled(kPatience, At(31)), (Partitions{{0, 0}}));
  EXPECT_EQ(watch.StandsFor({0, 0}, At(31)), absl::Seconds(31));
  watch.Look(Sights{{{0, 0}, 18, true}}, At(32));
  EXPECT_TRUE(watch.Stalled(kPatience, At(32)).empty());
}

TEST(ProgressWatchTest, WhatHasNothingToReadIsNotStalledAndTimeBeginsWhenItIsBehind) {
  ProgressWatch watch;
  watch.Look(Sights{{{0, 0}, 17, false}}, At(0));
  watch.Look(Sights{{{0, 0}, 17, false}}, At(3600));
  EXPECT_TRUE(watch.Stalled(kPatience, At(3600)).empty());
  EXPECT_EQ(watch.StandsFor({0, 0}, At(3600)), absl::ZeroDuration());
  watch.Look(Sights{{{0, 0}, 17, true}}, At(3610));
  EXPECT_TRUE(watch.Stalled(kPatience, At(3640)).empty());
  EXPECT_EQ(watch.Stalled(kPatience, At(3641)), (Partitions{{0, 0}}));
}

TEST(ProgressWatchTest, AStalledPartitionBesideOnesThatKeepUpIsFound) {
  ProgressWatch watch;
  for (int second = 0; second <= 31; ++second) {
    watch.Look(Sights{{{0, 0}, 17, true}, {{0, 1}, second, false}, {{0, 2}, 5, false}}, At(second));
  }
  EXPECT_EQ(watch.Stalled(kPatience, At(31)), (Partitions{{0, 0}}));
}

TEST(ProgressWatchTest, BesideOnesThatAreBehindAndMoveAPartitionMayWaitForItsTurn) {
  ProgressWatch watch;
  for (int second = 0; second <= 301; ++second) {
    watch.Look(Sights{{{0, 0}, 17, true}, {{0, 1}, second, true}}, At(second));
    EXPECT_EQ(watch.Stalled(kPatience, At(second)).size(), second > 300 ? 1 : 0) << second;
  }
}

TEST(ProgressWatchTest, APartitionThatComesBackBeginsAgain) {
  ProgressWatch watch;
  watch.Look(Sights{{{0, 0}, 17, true}, {{0, 1}, 4, true}}, At(0));
  watch.Look(Sights{{{0, 0}, 17, true}}, At(20));
  watch.Look(Sights{{{0, 0}, 17, true}, {{0, 1}, 4, true}}, At(21));
  EXPECT_EQ(watch.StandsFor({0, 1}, At(22)), absl::Seconds(1));
  EXPECT_TRUE(watch.Stalled(kPatience, At(32)).empty());
  EXPECT_EQ(watch.Stalled(kPatience, At(52)), (Partitions{{0, 0}, {0, 1}}));
}

TEST(OpenTransactionWatchTest, APartitionIsHeldFromItsFirstSightWhileItsPositionStays) {
  using Sight = OpenTransactionWatch::Sight;
  OpenTransactionWatch watch;
  watch.Look({Sight{{0, 0}, 17, true}, Sight{{0, 1}, 5, false}}, At(0));
  watch.Look({Sight{{0, 0}, 17, true}, Sight{{0, 1}, 5, true}}, At(30));
  EXPECT_EQ(watch.HeldFor({0, 0}, At(31)), absl::Seconds(31));
  EXPECT_EQ(watch.HeldFor({0, 1}, At(31)), absl::Seconds(1));
  watch.Look({Sight{{0, 0}, 18, true}, Sight{{0, 1}, 5, false}}, At(32));
  EXPECT_EQ(watch.HeldFor({0, 0}, At(33)), absl::Seconds(1)) << "another transaction, perhaps";
  EXPECT_EQ(watch.HeldFor({0, 1}, At(33)), absl::ZeroDuration());
  watch.Look({}, At(34));
  EXPECT_EQ(watch.HeldFor({0, 0}, At(35)), absl::ZeroDuration());
}

}  // namespace
}  // namespace lethe::kafka
