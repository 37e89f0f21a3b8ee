#include "src/filter/id_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

// Random insertions, retaggings and sweeps beside a map; keys crowd in few homes, so that runs wrap around
// the end and removals move keys up.
TEST(IdTableTest, DoesWhatAMapDoes) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    MemoryBudget memory(1 << 20);
    IdTable table(&memory);
    std::unordered_map<uint64_t, uint8_t> map;
    const bool crowded = round % 2 == 0;
    const auto key = [&] { return crowded ? ~uint64_t{0} - random() % 5000 : random() % 3000 << 52 | 1; };
    for (int step = 0; step < 3000; ++step) {
      const uint64_t k = key();
      const auto tag = static_cast<uint8_t>(1 + random() % 63);
      uint8_t* const found = table.Find(k);
      ASSERT_EQ(found != nullptr, map.count(k) != 0);
      if (found == nullptr) {
        ASSERT_TRUE(table.Insert(k, tag));
      } else {
        ASSERT_EQ(*found, map[k]);
        *found = tag;
      }
      map[k] = tag;
      if (random() % 500 == 0) {
        const uint64_t kept = random() & random();
        table.KeepOnly(IdTable::TagSet(kept));
        std::erase_if(map, [&](const auto& entry) { return (kept >> entry.second & 1) == 0; });
      }
      ASSERT_EQ(table.size(), static_cast<int64_t>(map.size()));
      ASSERT_EQ(table.memory_bytes(), memory.used_bytes());
    }
    for (const auto& [k, tag] : map) {
      ASSERT_NE(table.Find(k), nullptr);
      EXPECT_EQ(*table.Find(k), tag);
    }
    table.KeepOnly({});
    EXPECT_EQ(table.size(), 0);
    EXPECT_EQ(memory.used_bytes(), 0);
  }
}

TEST(IdTableTest, StopsAtTheBudgetAndShrinksAgain) {
  MemoryBudget memory(10'000);
  IdTable table(&memory);
  uint64_t inserted = 0;
  while (table.Insert(inserted << 50, static_cast<uint8_t>(inserted % 2 + 1))) ++inserted;
  // A table of 9 bytes a slot, three quarters full, and one of half as many slots more do not fit.
  EXPECT_GT(inserted, 10'000 / 9 * 3 / 4 / 4);
  EXPECT_LE(memory.used_bytes(), memory.limit_bytes());
  EXPECT_EQ(table.size(), static_cast<int64_t>(inserted));
  for (uint64_t i = 0; i < inserted; ++i) ASSERT_NE(table.Find(i << 50), nullptr);
  const int64_t most = table.memory_bytes();
  for (uint64_t i = 2; i < inserted; ++i) *table.Find(i << 50) = 3;
  table.KeepOnly(IdTable::TagSet(0b110));
  EXPECT_EQ(table.size(), 2);
  EXPECT_LT(table.memory_bytes(), most);
  EXPECT_NE(table.Find(0), nullptr);
  EXPECT_NE(table.Find(uint64_t{1} << 50), nullptr);
}

}  // namespace
}  // namespace lethe
