#include "src/pipeline/restore/restore_progress.h"

#include <gtest/gtest.h>

namespace lethe::kafka {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

TEST(RestoreProgressTest, TellsTheTimeLeftFromTheRate) {
  RestoreProgress progress(1000, 11'000);
  EXPECT_EQ(progress.left(), 10'000);
  EXPECT_FALSE(progress.time_left().has_value());
  // A thousand a second.
  for (int i = 0; i <= 40; ++i) progress.At(1000 + i * 100, kStart + i * absl::Milliseconds(100));
  EXPECT_EQ(progress.left(), 6000);
  ASSERT_TRUE(progress.time_left().has_value());
  EXPECT_NEAR(absl::ToDoubleSeconds(*progress.time_left()), 6, 0.01);
  EXPECT_EQ(progress.ToString(), "offset 5000 of 11000, 40 %, 1000 offsets/s, some 6s left");
  // It follows when it goes slower.
  for (int i = 1; i <= 100; ++i) progress.At(5000 + i * 10, kStart + absl::Seconds(4 + i * 0.1));
  EXPECT_NEAR(absl::ToDoubleSeconds(*progress.time_left()), 50, 1);
  progress.At(11'000, kStart + absl::Seconds(20));
  EXPECT_EQ(progress.left(), 0);
  EXPECT_EQ(progress.time_left(), absl::ZeroDuration());
}

TEST(RestoreProgressTest, TellsNowAndThen) {
  RestoreProgress progress(0, 1'000'000);
  int told = 0;
  for (int i = 0; i < 600; ++i) told += progress.At(i, kStart + i * absl::Milliseconds(100)) ? 1 : 0;
  EXPECT_EQ(told, 11);  // in a minute, and not at its start
}

TEST(RestoreProgressTest, OfNothingIsAtItsEnd) {
  EXPECT_EQ(RestoreProgress().left(), 0);
  EXPECT_EQ(RestoreProgress(7, 7).time_left(), absl::ZeroDuration());
}

}  // namespace
}  // namespace lethe::kafka
