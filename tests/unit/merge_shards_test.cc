// The figures of a partition from those of its shards.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "src/stage/shard.h"

namespace lethe {
namespace {

ShardStatus Merge(const std::vector<ShardStatus>& shards) {
  MergedShards merged(shards.size());
  for (const ShardStatus& shard : shards) merged.Add(shard);
  return merged.Take();
}

TEST(MergeShardsTest, TheDeviationIsThatOfAMeanOfIndependentEstimates) {
  std::vector<ShardStatus> shards(4);
  const double deviations[] = {1e-7, 2e-7, 3e-7, 4e-7};
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].filter.fpp.estimated = 1e-6 * static_cast<double>(i);
    shards[i].filter.fpp.deviation = deviations[i];
  }
  const FilterStatus all = Merge(shards).filter;
  EXPECT_DOUBLE_EQ(all.fpp.estimated, 1.5e-6);
  EXPECT_DOUBLE_EQ(all.fpp.deviation, std::sqrt(1 + 4 + 9 + 16) / 4 * 1e-7);
  // Of equal shards it falls with the root of their number, and that of one is its own.
  shards.assign(16, shards[0]);
  EXPECT_DOUBLE_EQ(Merge(shards).filter.fpp.deviation, 1e-7 / 4);
  shards.resize(1);
  EXPECT_DOUBLE_EQ(Merge(shards).filter.fpp.deviation, 1e-7);
}

TEST(MergeShardsTest, CountsAreSumsAndTheWindowIsTheShortest) {
  std::vector<ShardStatus> shards(2);
  shards[0].filter.window = absl::Seconds(5);
  shards[1].filter.window = absl::Seconds(4);
  shards[0].unique = shards[0].filter.ids = 3;
  shards[1].unique = shards[1].filter.ids = 4;
  const ShardStatus all = Merge(shards);
  EXPECT_EQ(all.filter.window, absl::Seconds(4));
  EXPECT_EQ(all.unique, 7);
  EXPECT_EQ(all.filter.ids, 7);
}

// Of many shards the latest steps are told, so that a status does not become ever longer.
TEST(MergeShardsTest, StepsAreTheLatestInTheirOrder) {
  std::vector<ShardStatus> shards(128);
  for (size_t i = 0; i < shards.size(); ++i) {
    for (int64_t step = 0; step < 3; ++step) {
      shards[i].filter.steps.push_back({.stream_time_ms = 1000 * step - static_cast<int64_t>(i)});
    }
  }
  const std::vector<AdaptationStep> steps = Merge(shards).filter.steps;
  ASSERT_EQ(steps.size(), shards.size());
  for (size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(steps[i].stream_time_ms, 2000 - 127 + static_cast<int64_t>(i));
  shards.resize(2);
  EXPECT_EQ(Merge(shards).filter.steps.size(), 6u);
}

}  // namespace
}  // namespace lethe
