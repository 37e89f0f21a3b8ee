// The memory limit: what was refused is known, also of a part, until it is asked for or is there.
#include "lethe/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lethe {
namespace {

TEST(MemoryBudget, KnowsHowMuchTheLargestRefusedRequestLacks) {
  MemoryBudget budget(100);
  ASSERT_TRUE(budget.Reserve(70));
  EXPECT_EQ(budget.TakeMissingBytes(), 0);
  EXPECT_FALSE(budget.Reserve(40));
  EXPECT_FALSE(budget.HasRoomFor(50));
  EXPECT_FALSE(budget.Reserve(31));
  EXPECT_TRUE(budget.HasRoomFor(30));
  EXPECT_EQ(budget.TakeMissingBytes(), 20);
  EXPECT_EQ(budget.TakeMissingBytes(), 0) << "told once";
  EXPECT_FALSE(budget.Reserve(50));
  budget.Release(20);
  EXPECT_EQ(budget.TakeMissingBytes(), 0) << "it is there by now";
  EXPECT_EQ(budget.used_bytes(), 50);
}

TEST(MemoryBudget, APartKnowsWhatItWasRefused) {
  MemoryBudget whole(100);
  MemoryBudget part(60, &whole);
  MemoryBudget other(40, &whole);
  ASSERT_TRUE(part.Reserve(50));
  EXPECT_FALSE(part.Reserve(20));
  EXPECT_EQ(other.TakeMissingBytes(), 0);
  EXPECT_EQ(part.TakeMissingBytes(), 10);
}

TEST(MemoryBudget, RefusalsOfSomeThreadsReachAnother) {
  constexpr int kRounds = 2000;
  MemoryBudget whole(1000);
  MemoryBudget part(1000, &whole);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const int64_t bytes = 200 + i % 300;
        if (!part.Reserve(bytes)) continue;
        std::this_thread::yield();
        part.Release(bytes);
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) EXPECT_LE(part.TakeMissingBytes(), 500);
  for (std::thread& thread : threads) thread.join();
  part.TakeMissingBytes();
  EXPECT_EQ(whole.used_bytes(), 0);
  EXPECT_EQ(part.used_bytes(), 0);
  EXPECT_EQ(part.TakeMissingBytes(), 0);
}

}  // namespace
}  // namespace lethe
