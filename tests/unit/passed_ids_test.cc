// The array of passed ids against a map that forgets nothing.
#include "src/second_opinion/passed_ids.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/filter_testing.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr absl::Duration kHorizon = absl::Seconds(100);
constexpr int64_t kHorizonMs = 100'000;

TimedId Timed(uint64_t number, int64_t stream_time_ms) {
  return {.id = NumberedId(number, 7), .stream_time_ms = stream_time_ms};
}

// With room for all, an id is confirmed if and only if it was passed within the horizon.
TEST(PassedIdsTest, KnowsExactlyTheIdsOfTheHorizonWhileThereIsRoom) {
  std::mt19937_64 random(TestSeed());
  MemoryBudget budget(int64_t{64} << 20);
  absl::StatusOr<PassedIds> passed = PassedIds::Create(kHorizon, &budget);
  ASSERT_TRUE(passed.ok()) << passed.status();
  std::map<uint64_t, int64_t> oracle;
  int64_t now_ms = 1'000'000;
  for (int i = 0; i < 400'000; ++i) {
    now_ms += static_cast<int64_t>(random() % 3);
    const uint64_t number = random() % 150'000;
    const auto known = oracle.find(number);
    const bool within = known != oracle.end() && now_ms - known->second <= kHorizonMs;
    ASSERT_EQ(passed->Confirms(Timed(number, now_ms)), within) << i;
    if (within && random() % 2 == 0) continue;
    passed->Remember(Timed(number, now_ms));
    oracle[number] = now_ms;
  }
  const SecondOpinionStatus status = passed->Status();
  EXPECT_EQ(status.displaced, 0);
  EXPECT_EQ(status.memory_bytes, budget.used_bytes());
  const auto live = std::count_if(oracle.begin(), oracle.end(),
                                  [&](const auto& entry) { return now_ms - entry.second <= kHorizonMs; });
  EXPECT_GE(status.ids, live);
  // Half full, with a fifth for what expired and was not looked through yet, and whole pages.
  EXPECT_LE(status.memory_bytes, live * 32 * 3 / 2);
}

// At the limit the latest ids stay, and what was never passed is never confirmed.
TEST(PassedIdsTest, KeepsToItsLimitAndForgetsTheOldest) {
  constexpr int64_t kLimit = int64_t{1} << 20;
  constexpr uint64_t kRoom = kLimit / 16;
  MemoryBudget budget(kLimit);
  {
    absl::StatusOr<PassedIds> passed = PassedIds::Create(kHorizon, &budget);
    ASSERT_TRUE(passed.ok()) << passed.status();
    constexpr uint64_t kIds = 10 * kRoom;
    for (uint64_t i = 0; i < kIds; ++i) passed->Remember(Timed(i, static_cast<int64_t>(i / 100)));
    const auto now_ms = static_cast<int64_t>(kIds / 100);
    EXPECT_LE(budget.used_bytes(), kLimit);
    EXPECT_EQ(passed->Status().ids + passed->Status().displaced, static_cast<int64_t>(kIds));
    uint64_t late = 0;
    uint64_t old = 0;
    for (uint64_t i = 0; i < kRoom / 2; ++i) {
      late += passed->Confirms(Timed(kIds - 1 - i, now_ms)) ? 1 : 0;
      old += passed->Confirms(Timed(i, now_ms)) ? 1 : 0;
      ASSERT_FALSE(passed->Confirms(Timed(kIds + i, now_ms)));
    }
    EXPECT_GT(late, kRoom / 2 * 99 / 100);
    EXPECT_EQ(old, 0u);
  }
  EXPECT_EQ(budget.used_bytes(), 0);
}

// Ids from before time began are as old as its beginning.
TEST(PassedIdsTest, TimeMayBeginLate) {
  MemoryBudget budget(int64_t{1} << 20);
  absl::StatusOr<PassedIds> passed = PassedIds::Create(kHorizon, &budget);
  ASSERT_TRUE(passed.ok()) << passed.status();
  passed->Remember(Timed(1, kNoStreamTime));
  EXPECT_TRUE(passed->Confirms(Timed(1, kNoStreamTime)));
  EXPECT_TRUE(passed->Confirms(Timed(1, 5'000'000)));
  passed->Remember(Timed(2, 5'000'000));
  EXPECT_TRUE(passed->Confirms(Timed(1, 5'000'000 + kHorizonMs)));
  EXPECT_FALSE(passed->Confirms(Timed(1, 5'000'001 + kHorizonMs)));
  EXPECT_FALSE(passed->Confirms(Timed(2, 5'000'001 + kHorizonMs)));
  // Confirming has not moved time.
  EXPECT_TRUE(passed->Confirms(Timed(2, kNoStreamTime)));
}

// A copy that is gone on with while ids are remembered, at many fills: with a replay of what came meanwhile
// it confirms what the array itself confirms, and each id once.
TEST(PassedIdsTest, ACopyMadeBitByBitMissesNothing) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 60; ++round) {
    MemoryBudget budget(int64_t{256} << 10);
    MemoryBudget other_budget(int64_t{1} << 20);
    absl::StatusOr<PassedIds> live = PassedIds::Create(kHorizon, &budget);
    absl::StatusOr<PassedIds> restored = PassedIds::Create(kHorizon, &other_budget);
    ASSERT_TRUE(live.ok() && restored.ok());
    int64_t now_ms = 1'000'000;
    uint64_t next = 0;
    // About as many ids as are within the horizon; the array holds 16384 at most.
    const uint64_t ids = 500 + random() % 13'700;
    const auto remember = [&](PassedIds* passed, uint64_t number, int64_t ms) {
      passed->Remember(Timed(number, ms));
    };
    std::vector<std::pair<uint64_t, int64_t>> log;
    const auto pass_one = [&] {
      // Some of what expired comes again, and is kept elsewhere, maybe.
      const uint64_t number = next > ids && random() % 4 == 0
                                  ? next - ids - random() % std::min<uint64_t>(ids, next - ids)
                                  : next++;
      now_ms += kHorizonMs / static_cast<int64_t>(ids);
      remember(&*live, number, now_ms);
      log.emplace_back(number, now_ms);
    };
    for (uint64_t i = 0; i < ids / 2 + random() % (3 * ids); ++i) pass_one();
    const size_t begun = log.size();
    PassedIds::Copy copy;
    const uint64_t between = random() % 40;
    while (live->GoOn(&copy, 256 + static_cast<int64_t>(random() % 4096)) == PassedIds::CopyState::kGoesOn) {
      for (uint64_t i = 0; i < between; ++i) pass_one();
    }
    const auto memory = restored->MakeRoom(copy.bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    char* to = memory->data();
    for (const std::string& piece : copy.pieces) to = std::copy(piece.begin(), piece.end(), to);
    ASSERT_TRUE(restored->Restored());
    for (size_t i = begun; i < log.size(); ++i) remember(&*restored, log[i].first, log[i].second);
    int64_t confirmed = 0;
    for (uint64_t number = 0; number < next; ++number) {
      const bool known = live->Confirms(Timed(number, now_ms));
      if (live->Status().displaced == 0) {
        ASSERT_EQ(restored->Confirms(Timed(number, now_ms)), known) << number;
      }
      confirmed += restored->Confirms(Timed(number, now_ms)) ? 1 : 0;
    }
    EXPECT_LE(confirmed, restored->Status().ids);
    if (live->Status().displaced == 0) {
      EXPECT_EQ(restored->Status().displaced, 0);
    }
  }
}

// An array as large as at first, in which ids are put where they are wanted: by the halves of their hash.
class MovingIds {
 public:
  static constexpr int64_t kLines = 128;
  static constexpr int64_t kLineBytes = PassedIds::kFewestBytes / kLines;

  explicit MovingIds(PassedIds* passed) : passed_(passed) {}

  TimedId New(int64_t first_line, int64_t second_line) {
    const uint64_t number = ++numbers_;
    const auto half = [number](int64_t line) { return number << 8 | static_cast<uint64_t>(line); };
    return {.id = {half(second_line) << 32 | half(first_line), 1}, .stream_time_ms = now_ms_};
  }
  // Puts an id into line `from`, fills that and line `full`, and then remembers one more of these two: the
  // first can go to `to` alone, and must. All that was there before is past the horizon by then.
  TimedId Move(int64_t from, int64_t to, int64_t full, PassedIds::Copy* copy, int64_t copied_lines) {
    now_ms_ += kHorizonMs + 1;
    const TimedId moving = New(from, to);
    passed_->Remember(moving);
    for (int i = 0; i < 15; ++i) passed_->Remember(New(from, full));
    EXPECT_EQ(LineOf(moving.id), from);
    if (copy != nullptr) {
      EXPECT_EQ(passed_->GoOn(copy, copied_lines * kLineBytes), PassedIds::CopyState::kGoesOn);
    }
    passed_->Remember(New(from, full));
    EXPECT_EQ(LineOf(moving.id), to);
    return moving;
  }
  // The line in which it is, in so many; -1 if it is in none, -2 if it is in more than one.
  int64_t LineOf(IdHash id) const { return LineIn(passed_->memory(), id); }
  static int64_t LineIn(absl::Span<const char> memory, IdHash id) {
    int64_t line = -1;
    for (size_t at = 0; at < memory.size(); at += 16) {
      uint64_t key = 0;
      std::memcpy(&key, memory.data() + at, sizeof key);
      if (key == id.a) line = line == -1 ? static_cast<int64_t>(at) / kLineBytes : -2;
    }
    return line;
  }

 private:
  PassedIds* passed_;
  int64_t now_ms_ = 1'000'000;
  uint64_t numbers_ = 0;
};

// An id moves to a line that was copied, from one that was not, or the other way round: it is in what is made
// of the copy, once.
TEST(PassedIdsTest, AnIdThatMovesDuringACopyIsInItOnce) {
  for (const auto& [from, to] : {std::pair<int64_t, int64_t>{100, 20}, {20, 100}, {63, 64}, {64, 63}}) {
    SCOPED_TRACE(testing::Message() << "from line " << from << " to " << to);
    MemoryBudget budget(int64_t{1} << 20);
    absl::StatusOr<PassedIds> live = PassedIds::Create(kHorizon, &budget);
    absl::StatusOr<PassedIds> restored = PassedIds::Create(kHorizon, &budget);
    ASSERT_TRUE(live.ok() && restored.ok());
    MovingIds ids(&*live);
    PassedIds::Copy copy;
    const TimedId moved = ids.Move(from, to, 5, &copy, 64);
    const size_t before = copy.pieces.front().size();
    EXPECT_EQ(MovingIds::LineIn(copy.pieces.front(), moved.id), from < 64 ? from : -1);
    ASSERT_EQ(live->GoOn(&copy, PassedIds::kFewestBytes), PassedIds::CopyState::kWhole);
    EXPECT_GT(copy.pieces.front().size(), before);
    // In what was copied first, or then, or both.
    EXPECT_EQ(MovingIds::LineIn(copy.pieces.front(), moved.id), from < 64 ? -2 : to);
    const auto memory = restored->MakeRoom(copy.bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    std::copy(copy.pieces.front().begin(), copy.pieces.front().end(), memory->data());
    ASSERT_TRUE(restored->Restored());
    EXPECT_TRUE(restored->Confirms(moved));
    EXPECT_GE(MovingIds::LineIn(restored->memory(), moved.id), 0) << "not once";
    EXPECT_EQ(live->Status().displaced, 0);
    // All but the last one, which came later than the copy was begun, and may be there.
    EXPECT_GE(restored->Status().ids, live->Status().ids - 1);
    EXPECT_LE(restored->Status().ids, live->Status().ids);
  }
}

// It is told that more have moved than are remembered.
TEST(PassedIdsTest, ACopyThatWasLeftTooLongIsBroken) {
  for (const int moves : {4096, 4097}) {
    MemoryBudget budget(int64_t{1} << 20);
    absl::StatusOr<PassedIds> live = PassedIds::Create(kHorizon, &budget);
    ASSERT_TRUE(live.ok());
    MovingIds ids(&*live);
    PassedIds::Copy copy;
    ASSERT_EQ(live->GoOn(&copy, MovingIds::kLineBytes), PassedIds::CopyState::kGoesOn);
    for (int i = 0; i < moves; ++i) ids.Move(100, 20, 5, nullptr, 0);
    EXPECT_EQ(live->GoOn(&copy, MovingIds::kLineBytes),
              moves > 4096 ? PassedIds::CopyState::kBroken : PassedIds::CopyState::kGoesOn);
  }
}

TEST(PassedIdsTest, NeedsMemoryForItsFirstLines) {
  MemoryBudget budget(PassedIds::kFewestBytes - 1);
  EXPECT_EQ(PassedIds::Create(kHorizon, &budget).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lethe
