// The array of passed ids against a map that forgets nothing.
#include "src/filter/passed_ids.h"

#include <algorithm>
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

TEST(PassedIdsTest, NeedsMemoryForItsFirstLines) {
  MemoryBudget budget(PassedIds::kFewestBytes - 1);
  EXPECT_EQ(PassedIds::Create(kHorizon, &budget).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lethe
