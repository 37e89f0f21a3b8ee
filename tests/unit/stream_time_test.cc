#include "src/stage/stream_time.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;

// The definition, word by word.
class NaiveStreamTime {
 public:
  int64_t Observe(int64_t timestamp_ms) {
    if (timestamp_ms == kNoStreamTime) return now_ms_;
    all_.push_back(std::clamp(timestamp_ms, -StreamTime::kFarthestMs, StreamTime::kFarthestMs));
    if (all_.size() >= 101) {
      std::vector<int64_t> last(all_.end() - 101, all_.end());
      std::sort(last.begin(), last.end());
      now_ms_ = std::max(now_ms_, last[50]);
    }
    return now_ms_;
  }
  void StartAt(int64_t ms) { now_ms_ = std::max(now_ms_, ms); }

 private:
  std::vector<int64_t> all_;
  int64_t now_ms_ = kNoStreamTime;
};

TEST(StreamTimeTest, DoesNotMoveBeforeTheHundredAndFirst) {
  StreamTime time;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(time.Observe(kStart + i), kNoStreamTime);
  EXPECT_EQ(time.Observe(kNoStreamTime), kNoStreamTime);  // a record without a timestamp does not count
  EXPECT_EQ(time.Observe(kStart + 100), kStart + 50);
  EXPECT_EQ(time.now_ms(), kStart + 50);
}

TEST(StreamTimeTest, FiftyWildTimestampsChangeNothing) {
  for (const int64_t wild : {INT64_MAX, kStart + 1'000'000'000'000, int64_t{0}, INT64_MIN + 1}) {
    StreamTime time;
    for (int i = 0; i < 50; ++i) time.Observe(wild);
    for (int i = 0; i < 1000; ++i) {
      const int64_t now = time.Observe(kStart + i);
      if (i < 50) {
        EXPECT_EQ(now, kNoStreamTime);
      } else {
        EXPECT_GE(now, kStart) << "wild " << wild << ", record " << i;
        EXPECT_LE(now, kStart + i) << "wild " << wild << ", record " << i;
      }
    }
  }
}

TEST(StreamTimeTest, NeverGoesBack) {
  StreamTime time;
  for (int i = 0; i < 200; ++i) time.Observe(kStart);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(time.Observe(kStart - 1000), kStart);
}

TEST(StreamTimeTest, StartsWhereItIsSetAndWaitsThere) {
  StreamTime time;
  time.StartAt(kStart);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(time.Observe(kStart + 1000), kStart);
  EXPECT_EQ(time.Observe(kStart + 1000), kStart + 1000);
  StreamTime without;
  without.StartAt(kNoStreamTime);
  EXPECT_EQ(without.now_ms(), kNoStreamTime);
}

TEST(StreamTimeTest, FarTimesLeaveRoomForAHorizon) {
  StreamTime time;
  for (int i = 0; i < 101; ++i) time.Observe(INT64_MAX);
  EXPECT_EQ(time.now_ms(), StreamTime::kFarthestMs);
  StreamTime past;
  for (int i = 0; i < 101; ++i) past.Observe(INT64_MIN + 1);
  EXPECT_EQ(past.now_ms(), -StreamTime::kFarthestMs);
}

// Where a majority of the first 101 records is dated in the past, time starts with the others all the same.
TEST(StreamTimeTest, StartsWhenTheMiddleHalfIsSettled) {
  constexpr int64_t kSettled = 1000;
  for (const int64_t wild : {int64_t{0}, kStart - 10 * kSettled, INT64_MIN + 1}) {
    for (int before = 0; before <= 300; before += 20) {
      StreamTime time(kSettled);
      for (int i = 0; i < 1000; ++i) {
        const bool is_wild = i >= before && i < before + 60;
        const int64_t now = time.Observe(is_wild ? wild : kStart + i);
        ASSERT_TRUE(now == kNoStreamTime || (now >= kStart && now <= kStart + i))
            << "wild " << wild << " from record " << before << ", record " << i << ": " << now;
        ASSERT_TRUE(i < 302 || now != kNoStreamTime) << i;
      }
    }
  }
}

TEST(StreamTimeTest, StartsWithThe303rdWhateverTheTimesAre) {
  StreamTime time(1000);
  for (int i = 0; i < 302; ++i) ASSERT_EQ(time.Observe(kStart + i * 1000), kNoStreamTime) << i;
  EXPECT_EQ(time.Observe(kStart + 302 * 1000), kStart + 252 * 1000);
  EXPECT_EQ(time.Observe(kStart), kStart + 252 * 1000);
}

TEST(StreamTimeTest, GoesNoFurtherThanItsLimit) {
  StreamTime time;
  time.LimitTo(kStart + 10);
  for (int i = 0; i < 300; ++i) EXPECT_LE(time.Observe(kStart + i), kStart + 10);
  EXPECT_EQ(time.now_ms(), kStart + 10);
  time.LimitTo(INT64_MAX);
  EXPECT_EQ(time.Observe(kStart + 300), kStart + 250);  // as if there had been none
  time.LimitTo(kStart);
  EXPECT_EQ(time.Observe(kStart + 301), kStart + 250);  // it does not go back
}

TEST(StreamTimeTest, AgreesWithTheDefinition) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 60; ++round) {
    StreamTime time;
    NaiveStreamTime naive;
    if (round % 5 == 4) {
      time.StartAt(kStart + 500);
      naive.StartAt(kStart + 500);
    }
    const uint64_t spread = round % 3 == 0 ? 1 : uint64_t{1} << (random() % 30);  // with many ties, or few
    const uint64_t wild_percent = random() % 60;
    int64_t clock = kStart;
    for (int i = 0; i < 700; ++i) {
      clock += static_cast<int64_t>(random() % 3);
      int64_t timestamp = clock - static_cast<int64_t>(random() % spread);
      if (random() % 100 < wild_percent) timestamp = static_cast<int64_t>(random());
      if (random() % 20 == 0) timestamp = kNoStreamTime;
      ASSERT_EQ(time.Observe(timestamp), naive.Observe(timestamp)) << "round " << round << ", record " << i;
      if (random() % 50 == 0) {
        // A copy is a saved state: what the original sees later does not reach it.
        const StreamTime saved = time;
        for (int j = 0; j < 150; ++j) time.Observe(clock + static_cast<int64_t>(random() % 1'000'000));
        time = saved;
      }
    }
  }
}

// What nearly all streams are: in order, but for neighbours, a late record and a wild one now and then; for
// long enough that the sorted values have come around many times.
TEST(StreamTimeTest, AgreesWithTheDefinitionWhereRecordsAreNearlyInOrder) {
  std::mt19937_64 random(TestSeed());
  for (const uint64_t jitter : {1, 2, 5, 20, 80, 300}) {
    StreamTime time;
    NaiveStreamTime naive;
    for (int i = 0; i < 5000; ++i) {
      int64_t timestamp = kStart + i * (i / 1000 % 2) - static_cast<int64_t>(random() % jitter);
      if (random() % 300 == 0) timestamp -= static_cast<int64_t>(random() % 3000);
      if (random() % 300 == 0) timestamp = static_cast<int64_t>(random());
      ASSERT_EQ(time.Observe(timestamp), naive.Observe(timestamp)) << "jitter " << jitter << ", record " << i;
    }
  }
}

}  // namespace
}  // namespace lethe
