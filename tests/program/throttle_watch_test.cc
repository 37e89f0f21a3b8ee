#include <gtest/gtest.h>

#include "src/pipeline/report/watches.h"

namespace lethe {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

// Looks four times a second; a broker states `each` once a second. Returns the time behind it.
absl::Time LookFor(ThrottleWatch& watch, absl::Duration span, absl::Duration each, absl::Duration* total,
                   absl::Time now) {
  const absl::Time end = now + span;
  for (int turn = 0; now < end; now += absl::Milliseconds(250), ++turn) {
    if (turn % 4 == 0) *total += each;
    watch.Look(*total, now);
  }
  watch.Look(*total, now);
  return now;
}

TEST(ThrottleWatchTest, TellsTheShareOfTheLastTenSeconds) {
  ThrottleWatch watch;
  absl::Duration total = absl::ZeroDuration();
  absl::Time now = LookFor(watch, absl::Seconds(9), absl::Milliseconds(500), &total, kStart);
  EXPECT_EQ(watch.share(), 0) << "a moment is no news";
  now = LookFor(watch, absl::Seconds(1), absl::Milliseconds(500), &total, now);
  EXPECT_NEAR(watch.share(), 0.5, 0.05);
  now = LookFor(watch, absl::Seconds(20), absl::ZeroDuration(), &total, now);
  EXPECT_EQ(watch.share(), 0);
}

TEST(ThrottleWatchTest, OneLongThrottleTimeFillsTheWindowsThatItCovers) {
  ThrottleWatch watch;
  absl::Duration total = absl::Seconds(25);
  watch.Look(total, kStart);
  absl::Time now = LookFor(watch, absl::Seconds(20), absl::ZeroDuration(), &total, kStart);
  EXPECT_NEAR(watch.share(), 1, 0.01);
  now = LookFor(watch, absl::Seconds(10), absl::ZeroDuration(), &total, now);
  EXPECT_NEAR(watch.share(), 0.5, 0.05);
}

TEST(ThrottleWatchTest, AMomentNowAndThenIsNoNews) {
  ThrottleWatch watch;
  absl::Duration total = absl::ZeroDuration();
  const absl::Time now = LookFor(watch, absl::Minutes(1), absl::Milliseconds(50), &total, kStart);
  EXPECT_EQ(watch.share(), 0);
  EXPECT_FALSE(watch.Take(now));
}

TEST(ThrottleWatchTest, NewsComesOnceInTenMinutes) {
  ThrottleWatch watch;
  absl::Duration total = absl::ZeroDuration();
  absl::Time now = LookFor(watch, absl::Seconds(20), absl::Seconds(1), &total, kStart);
  EXPECT_TRUE(watch.Take(now));
  now = LookFor(watch, absl::Seconds(590), absl::Seconds(1), &total, now);
  EXPECT_FALSE(watch.Take(now));
  now = LookFor(watch, absl::Seconds(20), absl::Seconds(1), &total, now);
  EXPECT_TRUE(watch.Take(now));
}

}  // namespace
}  // namespace lethe
