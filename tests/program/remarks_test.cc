#include "src/pipeline/report/remarks.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace lethe::kafka {
namespace {

PartitionReport Hit(int32_t id, absl::Duration window, double fpp) {
  PartitionReport partition;
  partition.partition = id;
  partition.filter.filter.limit_hits = 1;
  partition.filter.filter.window = window;
  partition.filter.filter.fpp_modelled = fpp;
  partition.filter.filter.fpp_target = 1e-6;
  return partition;
}

TEST(RemarksTest, AMemoryLimitThatCostsWindowOrTargetIsReported) {
  DaemonReport report;
  report.input = "orders";
  report.horizon = absl::Hours(24);
  report.lanes.resize(1);
  report.lanes[0].partitions = {Hit(0, absl::Hours(24), 1e-6)};
  EXPECT_TRUE(Remarks(report).empty());  // it has recovered
  report.lanes[0].partitions.push_back(Hit(3, absl::Hours(2), 1e-7));
  ASSERT_EQ(Remarks(report).size(), 1u);
  EXPECT_TRUE(absl::StrContains(Remarks(report)[0], "orders-3 covers 2h of the horizon of 24h"));
  report.lanes[0].partitions.push_back(Hit(4, absl::Hours(24), 2e-6));
  ASSERT_EQ(Remarks(report).size(), 1u);
  EXPECT_TRUE(absl::StrContains(Remarks(report)[0], "and 1 more partitions")) << Remarks(report)[0];
  report.lanes[0].partitions = {Hit(4, absl::Hours(24), 2e-6)};
  EXPECT_TRUE(absl::StrContains(Remarks(report)[0], "2e-06")) << Remarks(report)[0];
}

TEST(RemarksTest, RecordsWithoutAnIdAreReportedWithTheirNumbers) {
  DaemonReport report;
  report.lanes.resize(2);
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[1].lane = 1;
  report.lanes[1].without_id = IdWatch::Stretch{12345, 12340};
  ASSERT_EQ(Remarks(report).size(), 1u);
  EXPECT_TRUE(absl::StrContains(Remarks(report)[0], "lane 1: 12,340 of 12,345 records have no usable id"));
}

TEST(RemarksTest, AQuotaIsReportedForEachClientOfAllLanes) {
  DaemonReport report;
  report.lanes.resize(2);
  report.routing_lanes.resize(1);
  EXPECT_TRUE(Remarks(report).empty());
  report.lanes[1].producer_throttled = 0.5;
  EXPECT_EQ(Remarks(report).size(), 1u);
  report.lanes[1].consumer_throttled = 0.5;
  report.routing_lanes[0].consumer_throttled = 1;
  EXPECT_EQ(Remarks(report).size(), 3u);
}

}  // namespace
}  // namespace lethe::kafka
