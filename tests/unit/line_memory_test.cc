#include "src/memory/line_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr int64_t kMiB = 1 << 20;

LineMemory Create(MemoryBudget* budget, int64_t bytes, int64_t most) {
  absl::StatusOr<LineMemory> memory = LineMemory::Create(budget, bytes, most);
  EXPECT_OK(memory);
  return *std::move(memory);
}

TEST(LineMemory, GrowsInPlaceKeepingItsContent) {
  MemoryBudget budget(100 * kMiB);
  LineMemory memory = Create(&budget, 4096, 64 * kMiB);
  auto* bytes = static_cast<unsigned char*>(memory.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
  memset(bytes, 7, 4096);
  for (int64_t size = 8192; size <= 64 * kMiB; size *= 2) {
    ASSERT_TRUE(memory.Grow(size));
    EXPECT_EQ(memory.data(), bytes);
    EXPECT_EQ(memory.bytes(), size);
    EXPECT_EQ(budget.used_bytes(), size);
    EXPECT_EQ(bytes[0], 7);
    EXPECT_EQ(bytes[size / 2], 0);
    bytes[size - 1] = 9;
  }
  EXPECT_FALSE(memory.Grow(65 * kMiB)) << "beyond the room that was asked for";
  EXPECT_EQ(memory.bytes(), 64 * kMiB);
}

// Over several moves, of small pages and huge ones, and back.
TEST(LineMemory, MovesWhereItHasRoomToGrow) {
  MemoryBudget budget(200 * kMiB);
  absl::StatusOr<LineMemory> made = LineMemory::Create(&budget, 4096, kMiB, /*huge_from=*/8 * kMiB);
  ASSERT_OK(made);
  LineMemory memory = *std::move(made);
  const auto at = [&](int64_t offset) -> unsigned char& {
    return static_cast<unsigned char*>(memory.data())[offset];
  };
  EXPECT_FALSE(memory.Grow(2 * kMiB)) << "in place there is no more room";
  int64_t filled = 0;
  int moves = 0;
  for (int round = 0; round < 3; ++round) {
    for (int64_t size = memory.bytes() + 5 * 4096; size <= 130 * kMiB;
         size += size / 3 / 4096 * 4096 + 4096) {
      const int64_t before = memory.bytes();
      const void* const data = memory.data();
      ASSERT_TRUE(memory.GrowOrMove(size));
      moves += memory.data() == data ? 0 : 1;
      memory.Prepare(before);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % LineMemory::kChunkBytes, 0u);
      ASSERT_EQ(memory.bytes(), size);
      ASSERT_EQ(budget.used_bytes(), size);
      for (int64_t page = 0; page < filled; page += 4096) ASSERT_EQ(at(page), page / 4096 % 251) << size;
      for (; filled < size; filled += 4096) {
        ASSERT_EQ(at(filled), 0) << size;
        at(filled) = static_cast<unsigned char>(filled / 4096 % 251);
      }
    }
    memory.Shrink((round + 1) * 9 * kMiB);
    filled = memory.bytes();
  }
  EXPECT_GE(moves, 3);
  const void* const data = memory.data();
  EXPECT_FALSE(memory.GrowOrMove(201 * kMiB)) << "beyond the budget";
  EXPECT_EQ(memory.data(), data);
  EXPECT_EQ(budget.TakeMissingBytes(), kMiB);
}

TEST(LineMemory, ShrinksAndGrowsAgain) {
  MemoryBudget budget(100 * kMiB);
  LineMemory memory = Create(&budget, 16 * kMiB, 64 * kMiB);
  auto* bytes = static_cast<unsigned char*>(memory.data());
  memset(bytes, 5, 16 * kMiB);
  for (int64_t kept = 9 * kMiB; kept >= kMiB; kept -= 4 * kMiB) {
    const int64_t all = memory.bytes();
    EXPECT_EQ(bytes[kept - 1], 5);
    EXPECT_EQ(budget.used_bytes(), all);
    memory.Shrink(kept);
    EXPECT_EQ(budget.used_bytes(), kept);
  }
  ASSERT_TRUE(memory.Grow(16 * kMiB));
  EXPECT_EQ(bytes[kMiB - 1], 5);
  for (int64_t at = kMiB; at < 16 * kMiB; at += 4096) ASSERT_EQ(bytes[at], 0) << at;
}

TEST(LineMemory, StaysWithinTheBudget) {
  MemoryBudget budget(10000);
  {
    LineMemory memory = Create(&budget, 5000, 1 << 20);
    EXPECT_EQ(budget.used_bytes(), 8192) << "whole pages";
    EXPECT_FALSE(memory.Grow(12000));
    EXPECT_EQ(memory.bytes(), 8192);
    EXPECT_THAT(LineMemory::Create(&budget, 4096, 4096).status(),
                StatusIs(absl::StatusCode::kResourceExhausted));
    LineMemory moved = std::move(memory);
    EXPECT_EQ(budget.used_bytes(), 8192);
  }
  EXPECT_EQ(budget.used_bytes(), 0);
}

// The background task's thread is not in a forked process, where nobody may wait for it.
TEST(LineMemory, EndsInAForkedProcess) {
  MemoryBudget budget(100 * kMiB);
  std::optional<LineMemory> memory(Create(&budget, 8 * kMiB, 8 * kMiB));
  memory->Prepare(0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    memory->Shrink(4 * kMiB);
    memory.reset();
    _exit(budget.used_bytes() == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// With a limit far beyond the address space, filters can still be made: they get what room there is.
TEST(LineMemory, MakesDoWithTheAddressSpaceThereIs) {
  MemoryBudget budget(int64_t{1} << 60);
  LineMemory memory = Create(&budget, 4096, int64_t{1} << 60);
  EXPECT_TRUE(memory.Grow(kMiB));
}

}  // namespace
}  // namespace lethe
