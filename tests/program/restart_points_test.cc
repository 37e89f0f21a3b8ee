#include "src/pipeline/restore/restart_points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "src/stage/stream_time.h"
#include "tests/support/seed.h"

namespace lethe::kafka {
namespace {

constexpr int64_t kEpoch = 1'700'000'000'000;
constexpr int64_t kHorizonMs = 3'600'000;
constexpr absl::Duration kHorizon = absl::Milliseconds(kHorizonMs);

absl::Time AsTime(int64_t ms) {
  return ms == kNoStreamTime ? absl::InfinitePast() : absl::FromUnixMillis(ms);
}
int64_t AsMs(absl::Time time) {
  return time == absl::InfinitePast() ? kNoStreamTime : absl::ToUnixMillis(time);
}

// A partition: the time of the record at each offset, and the stream time behind it had the log been read in
// one go from the start.
struct Log {
  std::vector<int64_t> timestamps;
  std::vector<int64_t> stream_times;
};

struct Shape {
  const char* name;
  double records_per_horizon;
  double wild_share;      // of records with any time at all
  double backward_share;  // of a record to begin a stretch whose times are a horizon or so early
  double forward_share;   // ... or late
  double gap_share;       // of a record to come after a silence of some horizons
};

Log MakeLog(const Shape& shape, size_t size, std::mt19937_64& random) {
  const auto chance = [&](double share) { return std::uniform_real_distribution<>()(random) < share; };
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  Log log;
  StreamTime clock;
  int64_t now = kEpoch;
  int64_t shift = 0, shifted = 0;
  for (size_t i = 0; i < size; ++i) {
    now +=
        static_cast<int64_t>(std::exponential_distribution<>(shape.records_per_horizon / kHorizonMs)(random));
    if (chance(shape.gap_share)) now += below(4 * kHorizonMs);
    if (shifted == 0 && chance(shape.backward_share)) shift = -below(2 * kHorizonMs), shifted = below(300);
    if (shifted == 0 && chance(shape.forward_share)) shift = below(2 * kHorizonMs), shifted = below(300);
    int64_t time = now + (shifted > 0 ? shift : 0);
    if (shifted > 0) --shifted;
    if (chance(shape.wild_share)) time = below(2 * kEpoch);
    log.timestamps.push_back(time);
    log.stream_times.push_back(clock.Observe(time));
  }
  return log;
}

// One owner of the partition: reads, notes, is rolled back now and then.
class Life {
 public:
  // From a restart point that an earlier life left, or from the start of the log.
  Life(const Log& log, RestartPoint start, int64_t committed)
      : log_(log), points_(kHorizon, start), next_(start.offset), committed_(committed) {
    clock_.StartAt(AsMs(start.stream_time));
    inserted_.resize(static_cast<size_t>(start.offset), kNoStreamTime);
    while (next_ < committed) Read(std::min<int64_t>(512, committed - next_));
  }

  void Read(int64_t records) {
    for (int64_t i = 0; i < records; ++i) {
      inserted_.push_back(clock_.Observe(log_.timestamps[static_cast<size_t>(next_++)]));
      ++records_;
    }
    points_.Note(next_, records_, AsTime(clock_.now_ms()));
  }

  void Begin() { clock_at_begin_ = clock_, records_at_begin_ = records_; }
  void Abort() {
    clock_ = clock_at_begin_;
    records_ = records_at_begin_;
    next_ = committed_;
    inserted_.resize(static_cast<size_t>(next_));
    points_.Truncate(committed_);
  }
  RestartPoint Commit() {
    const RestartPoint restart = points_.For(AsTime(clock_.now_ms()));
    committed_ = next_;
    points_.Drop(restart);
    return restart;
  }

  int64_t next() const { return next_; }
  int64_t now_ms() const { return clock_.now_ms(); }
  // The stream time at which the record at an offset was inserted.
  int64_t inserted(int64_t offset) const { return inserted_[static_cast<size_t>(offset)]; }

 private:
  const Log& log_;
  RestartPoints points_;
  StreamTime clock_, clock_at_begin_;
  int64_t records_ = 0, records_at_begin_ = 0;
  int64_t next_, committed_;
  std::vector<int64_t> inserted_;
};

// The rebuilt filter against that of a program that was never ended: the same stream time, and each id that
// is still a duplicate there was inserted here, at no earlier time.
void ExpectNothingForgotten(const Log& log, const Life& life, const RestartPoint& restart) {
  const int64_t now = log.stream_times[static_cast<size_t>(life.next() - 1)];
  ASSERT_EQ(life.now_ms(), now) << "at offset " << life.next();
  if (now == kNoStreamTime) return;
  const int64_t first_time = *std::find_if(log.stream_times.begin(), log.stream_times.end(),
                                           [](int64_t time) { return time != kNoStreamTime; });
  for (int64_t offset = 0; offset < life.next(); ++offset) {
    // Without a time yet, an id is as old as the first one.
    const int64_t passed = std::max(log.stream_times[static_cast<size_t>(offset)], first_time);
    if (passed + kHorizonMs < now) continue;
    ASSERT_GE(offset, restart.offset) << "needed, of " << life.next();
    if (life.inserted(offset) == kNoStreamTime) continue;  // as old as this life's first time
    ASSERT_GE(life.inserted(offset), log.stream_times[static_cast<size_t>(offset)])
        << "offset " << offset << " of [" << restart.offset << ", " << life.next() << ")";
  }
}

class RestartPointsPropertyTest : public testing::TestWithParam<Shape> {};

TEST_P(RestartPointsPropertyTest, ARebuildForgetsNothing) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t bound) { return static_cast<int64_t>(random() % bound); };
  for (int round = 0; round < 60; ++round) {
    const Log log = MakeLog(GetParam(), 4000, random);
    const auto end = static_cast<int64_t>(log.timestamps.size());
    const int64_t origin = 0;
    auto life = std::make_unique<Life>(log, RestartPoint{origin, absl::InfinitePast()}, origin);
    while (life->next() < end) {
      life->Begin();
      const int64_t batches = 1 + below(4);
      for (int64_t b = 0; b < batches && life->next() < end; ++b) {
        life->Read(std::min(1 + below(below(3) == 0 ? 512 : 20), end - life->next()));
      }
      if (below(4) == 0) {
        life->Abort();
        continue;
      }
      const RestartPoint restart = life->Commit();
      ASSERT_LE(restart.offset, life->next());
      auto rebuilt = std::make_unique<Life>(log, restart, life->next());
      ExpectNothingForgotten(log, *rebuilt, restart);
      if (HasFatalFailure()) return;
      if (below(8) == 0) life = std::move(rebuilt);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, RestartPointsPropertyTest,
                         testing::Values(Shape{"Sparse", 60, 0, 0, 0, 0}, Shape{"VerySparse", 3, 0, 0, 0, 0},
                                         Shape{"Dense", 3000, 0, 0, 0, 0}, Shape{"Wild", 500, 0.3, 0, 0, 0},
                                         Shape{"Backwards", 300, 0, 0.01, 0, 0},
                                         Shape{"Forwards", 300, 0, 0, 0.01, 0},
                                         Shape{"Gaps", 300, 0, 0, 0, 0.005},
                                         Shape{"All", 200, 0.1, 0.01, 0.01, 0.005}),
                         [](const testing::TestParamInfo<Shape>& shape) { return shape.param.name; });

// The list stays short, or each commit of a year of input would go through a year of points.
TEST(RestartPointsTest, AtMostTwiceAHorizonIsReadAgain) {
  RestartPoints points(kHorizon, {0, absl::InfinitePast()});
  StreamTime clock;
  for (int64_t offset = 0; offset < 100'000; ++offset) {
    const absl::Time now = AsTime(clock.Observe(kEpoch + offset * (kHorizonMs / 1000)));
    points.Note(offset + 1, offset + 1, now);
    const RestartPoint restart = points.For(now);
    points.Drop(restart);
    ASSERT_LE(offset - restart.offset, 1000 + 2 * 101 + 2 * 1000 / 32);
  }
}

TEST(RestartPointsTest, WithoutAnyTimeEverythingIsReadAgain) {
  RestartPoints points(kHorizon, {7, absl::InfinitePast()});
  points.Note(50, 0, absl::InfinitePast());
  EXPECT_EQ(points.For(absl::InfinitePast()).offset, 7);
  EXPECT_EQ(points.For(absl::InfinitePast()).stream_time, absl::InfinitePast());
}

TEST(RestartPointsTest, TruncateForgetsWhatWasAborted) {
  RestartPoints points(kHorizon, {0, AsTime(kEpoch)});
  for (int64_t i = 1; i <= 10; ++i) points.Note(i * 1000, i * 1000, AsTime(kEpoch + i * kHorizonMs));
  points.Truncate(5000);
  // The aborted records come again with other times: their old points would be wrong now.
  points.Note(5500, 5500, AsTime(kEpoch + 20 * kHorizonMs));
  EXPECT_EQ(points.For(AsTime(kEpoch + 20 * kHorizonMs)).offset, 4000);
}

TEST(RestartPointsTest, GoIntoASnapshotAndComeBack) {
  std::mt19937_64 random(TestSeed());
  const Log log = MakeLog({"", 200, 0.1, 0.01, 0.01, 0.005}, 4000, random);
  RestartPoints points(kHorizon, {0, absl::InfinitePast()});
  for (int64_t offset = 0; offset < 4000; ++offset) {
    points.Note(offset + 1, offset + 1, AsTime(log.stream_times[static_cast<size_t>(offset)]));
    if (offset % 100 != 0) continue;
    const absl::Time now = AsTime(log.stream_times[static_cast<size_t>(offset)]);
    points.Drop(points.For(now));
    auto restored = RestartPoints::Parse(kHorizon, points.ToString());
    ASSERT_TRUE(restored.has_value()) << points.ToString();
    EXPECT_LT(points.ToString().size(), 10'000u);
    EXPECT_EQ(restored->ToString(), points.ToString());
    // Both go on alike.
    points.Note(offset + 2, offset + 2, now + kHorizon / 32);
    restored->Note(offset + 2, offset + 2, now + kHorizon / 32);
    EXPECT_EQ(restored->For(now + 2 * kHorizon).offset, points.For(now + 2 * kHorizon).offset);
    points.Truncate(offset + 1);
  }
}

TEST(RestartPointsTest, NoOtherTextIsTaken) {
  for (const char* text :
       {"", "1", "1:2", "1:2:x", "1:2:3,", "5:-:1,4:10:2", "5:10:1,6:9:2", "a:-:0", "1:-:2:3"}) {
    EXPECT_FALSE(RestartPoints::Parse(kHorizon, text).has_value()) << text;
  }
  EXPECT_TRUE(RestartPoints::Parse(kHorizon, "7:-:0,9:1700000000000:2").has_value());
}

}  // namespace
}  // namespace lethe::kafka
