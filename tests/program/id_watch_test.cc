#include <gtest/gtest.h>

#include "src/pipeline/report/watches.h"

namespace lethe::kafka {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(IdWatchTest, TheFirstHundredRecordsTellAndThenOneStretchAMinute) {
  IdWatch watch;
  EXPECT_FALSE(watch.Add(99, 99, kStart));
  EXPECT_FALSE(watch.nearly_none());
  const auto found = watch.Add(1, 1, kStart);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->records, 100);
  EXPECT_EQ(found->without_id, 100);
  EXPECT_FALSE(watch.Add(5000, 5000, kStart + absl::Seconds(59)));
  EXPECT_TRUE(watch.nearly_none());
  EXPECT_EQ(watch.Add(1, 1, kStart + absl::Seconds(60))->records, 5001);
  EXPECT_EQ(watch.Add(100, 90, kStart + absl::Seconds(120))->without_id, 90);
}

TEST(IdWatchTest, FewerThanNineOfTenAreNoNewsAndEndIt) {
  IdWatch watch;
  EXPECT_TRUE(watch.Add(1000, 1000, kStart));
  EXPECT_FALSE(watch.Add(1000, 899, kStart + absl::Minutes(1)));
  EXPECT_FALSE(watch.nearly_none());
}

TEST(IdWatchTest, AStretchHasTheReasonOfItsFirstRecord) {
  IdWatch watch;
  watch.See("a");
  watch.See("b");
  EXPECT_EQ(watch.Add(100, 100, kStart)->reason, "a");
  watch.See("c");
  EXPECT_EQ(watch.Add(100, 100, kStart + absl::Minutes(1))->reason, "c");
  EXPECT_EQ(watch.nearly_none()->reason, "c");
}

}  // namespace
}  // namespace lethe::kafka
