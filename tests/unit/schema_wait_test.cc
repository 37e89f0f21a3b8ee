#include "src/pipeline/task/schema_wait.h"

#include <gtest/gtest.h>

namespace lethe {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

TEST(SchemaWaitTest, IsLongAfterSeconds) {
  SchemaWait wait;
  EXPECT_FALSE(wait.IsLong(kStart));
  wait.Begin(7, kStart);
  EXPECT_TRUE(wait.is_on());
  EXPECT_FALSE(wait.IsLong(kStart + absl::Seconds(1)));
  EXPECT_TRUE(wait.IsLong(kStart + absl::Seconds(3)));
  const absl::Time end = kStart + absl::Hours(1);
  EXPECT_TRUE(wait.IsLong(end));
  wait.End(end);
  EXPECT_FALSE(wait.is_on());
  EXPECT_EQ(wait.need().key, SchemaKey(7));
  EXPECT_FALSE(wait.IsLong(end + absl::Seconds(5)));
}

TEST(SchemaWaitTest, ShortOnesInARowAreLong) {
  SchemaWait mostly;
  SchemaWait rarely;
  absl::Time now = kStart;
  for (int i = 0; i < 1000; ++i) {
    mostly.Begin(i, now);
    rarely.Begin(i, now);
    rarely.End(now + absl::Milliseconds(2));
    mostly.End(now + absl::Milliseconds(8));
    now += absl::Milliseconds(10);
    if (i < 100) {
      EXPECT_FALSE(mostly.IsLong(now));
    } else if (i > 500) {
      EXPECT_TRUE(mostly.IsLong(now)) << "and does not flicker";
    }
    EXPECT_FALSE(rarely.IsLong(now));
  }
}

}  // namespace
}  // namespace lethe
