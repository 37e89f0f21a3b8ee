#include "src/cli/demo/demo_pace.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

// Each id is judged, and some are sent again.
TEST(DemoPaceTest, JudgesEachSending) {
  const auto pace = MeasurePace(20'000, 1e-9, 4711);
  ASSERT_OK(pace);
  EXPECT_EQ(pace->ids, 20'000);
  EXPECT_GT(pace->records, 21'000);
  EXPECT_LT(pace->records, 23'000);
  EXPECT_GT(pace->records_per_second, 0);
  EXPECT_GT(pace->filter_bytes, 4 * pace->ids);
}

}  // namespace
}  // namespace lethe
