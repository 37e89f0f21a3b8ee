// What of a stage's options can be changed while its partitions live, and that nothing is forgotten over it.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/filter_testing.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

TEST(MemoryBudgetTest, ALowerLimitIsTakenFromFreeMemory) {
  MemoryBudget whole(1000);
  MemoryBudget part(800, &whole);
  ASSERT_TRUE(part.Reserve(300));
  EXPECT_FALSE(part.SetLimit(299));
  EXPECT_EQ(part.limit_bytes(), 800);
  EXPECT_TRUE(part.SetLimit(300));
  EXPECT_FALSE(part.Reserve(1));
  EXPECT_TRUE(part.SetLimit(2000));
  EXPECT_FALSE(part.Reserve(701)) << "the whole has no more";
  EXPECT_TRUE(whole.SetLimit(2000));
  EXPECT_TRUE(part.Reserve(1700));
  EXPECT_EQ(part.used_bytes(), 2000);
  EXPECT_EQ(whole.used_bytes(), 2000);
  part.Release(2000);
  EXPECT_EQ(whole.used_bytes(), 0);
}

// Whoever reserves while the limit changes: what is held stays within the limit that was set.
TEST(MemoryBudgetTest, NobodyReservesMemoryThatALowerLimitTakes) {
  MemoryBudget budget(1000);
  std::atomic<bool> ended = false;
  std::atomic<int64_t> held = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, bytes = 90 + i] {
      while (!ended) {
        if (!budget.Reserve(bytes)) continue;
        held += bytes;
        held -= bytes;
        budget.Release(bytes);
      }
    });
  }
  for (int round = 0; round < 20'000; ++round) {
    const int64_t limit = round % 2 == 0 ? 100 : 300;
    if (budget.SetLimit(limit)) {
      EXPECT_LE(held, limit);
    }
    EXPECT_LE(budget.used_bytes(), 1000);
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used_bytes(), 0);
  EXPECT_TRUE(budget.SetLimit(0));
}

constexpr int64_t kHorizonMs = 3'600'000;

// One partition under a steady load of numbered ids.
class LiveOptionsTest : public testing::Test {
 protected:
  void Open(StageOptions options) {
    options.horizon = absl::Milliseconds(kHorizonMs);
    options.hash_seed = seed_;
    partition_.reset();
    auto stage = DedupStage::Create(options);
    ASSERT_OK(stage);
    stage_ = *std::move(stage);
    auto partition = stage_->Open("p");
    ASSERT_OK(partition);
    partition_ = *std::move(partition);
  }

  absl::Time Now() const { return absl::FromUnixMillis(kStartMs + now_ms_); }
  Event Numbered(uint64_t number) const {
    return {.id = {NumberedId(number, seed_), partition_->Hash("").key_check}, .time = Now()};
  }

  // For so many horizons, with so many new ids in each.
  void Run(double horizons, double rate) {
    std::vector<Event> events(100);
    std::vector<Verdict> verdicts(events.size());
    for (int64_t n = 0; n < static_cast<int64_t>(horizons * rate / 100); ++n) {
      now_ms_ += static_cast<int64_t>(kHorizonMs * 100 / rate);
      for (Event& event : events) event = Numbered(next_++);
      EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
      for (const Verdict verdict : verdicts) passed_.push_back(verdict == Verdict::kUnique);
    }
  }

  // All but the oldest tenth of the horizon's ids.
  void ExpectAllKnown(double rate) {
    const auto known = static_cast<uint64_t>(0.9 * rate);
    const uint64_t first = next_ < known ? 0 : next_ - known;
    for (uint64_t number = first; number < next_; number += 7) {
      // A false positive is not remembered.
      ASSERT_TRUE(!passed_[number] || IsKnown(number)) << number << " of " << next_;
    }
  }

  // Asks without leaving a trace.
  bool IsKnown(uint64_t number) {
    auto transaction = partition_->Begin();
    const Event event = Numbered(number);
    Verdict verdict = Verdict::kUnique;
    EXPECT_OK(transaction->Judge({&event, 1}, {&verdict, 1}));
    return verdict == Verdict::kDuplicate;
  }

  static constexpr int64_t kStartMs = 1'700'000'000'000;
  const uint64_t seed_ = TestSeed();
  int64_t now_ms_ = 0;
  uint64_t next_ = 0;
  std::vector<bool> passed_;  // by number: what was judged unique
  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
};

TEST_F(LiveOptionsTest, AFilterAtItsLimitTakesTheRoomOfAHigherOne) {
  constexpr double kRate = 200'000;
  Open({.target_fpp = 1e-3, .memory_limit_bytes = 256 << 10});
  Run(2, kRate);
  ASSERT_GT(partition_->Status().filter.limit_hits, 0) << "the limit is too high to tell anything";
  ASSERT_OK(stage_->SetMemoryLimit(2 << 20));
  EXPECT_EQ(stage_->memory().limit_bytes(), 2 << 20);
  Run(1, kRate);  // until what was full already has expired
  const int64_t hits = partition_->Status().filter.limit_hits;
  Run(1.5, kRate);
  const PartitionStatus status = partition_->Status();
  EXPECT_EQ(status.filter.limit_hits, hits);
  EXPECT_GE(status.filter.window, absl::Milliseconds(kHorizonMs));
  EXPECT_GT(stage_->memory().used_bytes(), 256 << 10);
  EXPECT_LE(stage_->memory().used_bytes(), 2 << 20);
  ExpectAllKnown(kRate);
}

TEST_F(LiveOptionsTest, ALowerLimitBindsLaterAllocations) {
  Open({.target_fpp = 1e-3, .memory_limit_bytes = 8 << 20});
  Run(1, 100'000);
  const int64_t used = stage_->memory().used_bytes();
  ASSERT_OK(stage_->SetMemoryLimit(used * 3 / 2));
  Run(2, 1'000'000);
  EXPECT_GT(partition_->Status().filter.limit_hits, 0);
  EXPECT_LE(stage_->memory().used_bytes(), used * 3 / 2);
}

TEST_F(LiveOptionsTest, ALimitBelowTheUsedMemoryIsRefusedWithTheNearest) {
  Open({.target_fpp = 1e-3, .memory_limit_bytes = 8 << 20});
  Run(1, 200'000);
  const absl::Status refused = stage_->SetMemoryLimit(128 << 10);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(stage_->memory().limit_bytes(), 8 << 20);
  const std::string before = "the nearest that can be is ";
  const std::string message(refused.message());
  ASSERT_THAT(message, HasSubstr(before));
  const int64_t nearest = std::stoll(message.substr(message.find(before) + before.size()));
  EXPECT_OK(stage_->SetMemoryLimit(nearest));
  EXPECT_FALSE(stage_->SetMemoryLimit(nearest - 4096).ok());
  EXPECT_THAT(stage_->SetMemoryLimit(1000), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lethe
