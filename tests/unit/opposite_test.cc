#include "src/reference/bloom/opposite.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

// A 64th of 1 MiB is 16 KiB, 2,048 slots.
constexpr double kSlots = 2048;

class OppositeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto filter = Opposite::Create({.memory = &memory_});
    ASSERT_OK(filter);
    filter_ = *std::move(filter);
  }

  MemoryBudget memory_{int64_t{1} << 20};
  std::unique_ptr<Opposite> filter_;
};

TEST_F(OppositeTest, NeverCallsAUniqueEventADuplicate) {
  const uint64_t seed = TestSeed();
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    ASSERT_EQ(TestAndInsertOne(*filter_, NumberedId(i, seed), 0), Verdict::kUnique);
    ASSERT_EQ(TestAndInsertOne(*filter_, NumberedId(i, seed), 0), Verdict::kDuplicate);
  }
  const FilterStatus status = filter_->Status();
  EXPECT_EQ(status.ids, static_cast<int64_t>(kSlots));
  EXPECT_EQ(status.limit_hits, 1'000'000 - status.ids);
  EXPECT_EQ(status.window, absl::ZeroDuration());
  EXPECT_LE(status.fpp.estimated, std::ldexp(1, -64));
}

// Ids of one shard have eight bits of their hash in common; they are told apart by the others.
TEST_F(OppositeTest, TellsIdsOfOneShardApart) {
  const uint64_t seed = TestSeed();
  for (uint64_t i = 0; i < 100'000; ++i) {
    IdHash id = NumberedId(i, seed);
    id.b = (id.b & ~uint64_t{0x1fe}) | 0x0aa;
    ASSERT_EQ(TestAndInsertOne(*filter_, id, 0), Verdict::kUnique);
    id.a ^= 1;
    EXPECT_FALSE(IsContained(*filter_, id));
  }
}

// A copy passes if one of the ids in between had its slot: with d of them, all but e^(-d / slots) do not.
TEST_F(OppositeTest, FindsCopiesThatFollowSoon) {
  const uint64_t seed = TestSeed();
  constexpr uint64_t kIds = 100'000;
  for (const uint64_t between : {100, 1000, 3000}) {
    int found = 0;
    for (uint64_t i = 0; i < kIds; ++i) {
      InsertOne(*filter_, NumberedId(i, seed + between), 0);
      if (i >= between) found += IsContained(*filter_, NumberedId(i - between, seed + between)) ? 1 : 0;
    }
    const double expected = std::exp(-static_cast<double>(between) / kSlots);
    const auto tried = static_cast<double>(kIds - between);
    // Copies that are near each other share their fate in part, as one id displaces one at most: so the
    // trials vary less than independent ones would.
    EXPECT_NEAR(found / tried, expected, BinomialBound(expected, tried));
  }
}

// Threads race with the same ids. Each id is called unique by one at least; an id that is not in the race
// is never contained. Few enough ids that none displaces another (their slots are made to differ).
TEST_F(OppositeTest, ThreadsAgreeOnOneFirst) {
  constexpr int kThreads = 4;
  constexpr uint64_t kIds = 2000;
  const auto id = [](uint64_t i) { return IdHash{.a = (i << 53) + 12345, .b = i * 0x9e3779b97f4a7c15}; };
  std::array<std::atomic<int>, kIds> uniques{};
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ++ready;
      while (ready.load() < kThreads) std::this_thread::yield();
      for (uint64_t i = 0; i < kIds; ++i) {
        if (TestAndInsertOne(*filter_, id(i), 0) == Verdict::kUnique) ++uniques[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint64_t i = 0; i < kIds; ++i) {
    EXPECT_EQ(uniques[i].load(), 1) << i;
    EXPECT_FALSE(IsContained(*filter_, {.a = id(i).a, .b = id(i).b + 2}));
  }
  EXPECT_EQ(filter_->Status().ids, static_cast<int64_t>(kIds));
}

TEST_F(OppositeTest, TakesItsMemoryFromTheBudget) {
  EXPECT_EQ(memory_.used_bytes(), 16 << 10);
  EXPECT_EQ(filter_->Status().memory_bytes, 16 << 10);
  filter_.reset();
  EXPECT_EQ(memory_.used_bytes(), 0);
  MemoryBudget none(1000);
  EXPECT_THAT(Opposite::Create({.memory = &none}).status(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace lethe
