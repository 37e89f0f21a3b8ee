// The figures of a partition from those of its shards.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "src/stage/shard.h"

namespace lethe {
namespace {

TEST(MergeShardsTest, TheDeviationIsThatOfAMeanOfIndependentEstimates) {
  std::vector<ShardStatus> shards(4);
  const double deviations[] = {1e-7, 2e-7, 3e-7, 4e-7};
  for (size_t i = 0; i < shards.size(); ++i) {
    shards[i].filter.fpp_estimated = 1e-6 * static_cast<double>(i);
    shards[i].filter.fpp_estimated_deviation = deviations[i];
  }
  const FilterStatus all = MergeShards(shards).filter;
  EXPECT_DOUBLE_EQ(all.fpp_estimated, 1.5e-6);
  EXPECT_DOUBLE_EQ(all.fpp_estimated_deviation, std::sqrt(1 + 4 + 9 + 16) / 4 * 1e-7);
  // Of equal shards it falls with the root of their number, and that of one is its own.
  shards.assign(16, shards[0]);
  EXPECT_DOUBLE_EQ(MergeShards(shards).filter.fpp_estimated_deviation, 1e-7 / 4);
  shards.resize(1);
  EXPECT_DOUBLE_EQ(MergeShards(shards).filter.fpp_estimated_deviation, 1e-7);
}

TEST(MergeShardsTest, CountsAreSumsAndTheWindowIsTheShortest) {
  std::vector<ShardStatus> shards(2);
  shards[0].filter.window = absl::Seconds(5);
  shards[1].filter.window = absl::Seconds(4);
  shards[0].unique = shards[0].filter.ids = 3;
  shards[1].unique = shards[1].filter.ids = 4;
  const ShardStatus all = MergeShards(shards);
  EXPECT_EQ(all.filter.window, absl::Seconds(4));
  EXPECT_EQ(all.unique, 7);
  EXPECT_EQ(all.filter.ids, 7);
}

}  // namespace
}  // namespace lethe
