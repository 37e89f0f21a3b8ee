#include "src/filter/id_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

// Random insertions, retaggings and sweeps beside a map, through growth to many tables and back to none.
TEST(IdTablesTest, DoWhatAMapDoes) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  MemoryBudget memory(int64_t{1} << 30);
  IdTables tables(&memory);
  std::unordered_map<uint64_t, uint8_t> map;
  size_t most = 0;
  for (int round = 0; round < 6; ++round) {
    for (int step = 0; step < 60'000; ++step) {
      const uint64_t key = random() % 400'000 * 0x9E3779B97F4A7C15u;
      const auto tag = static_cast<uint8_t>(1 + random() % 255);
      uint8_t* const found = tables.Find(key);
      ASSERT_EQ(found != nullptr, map.count(key) != 0);
      if (found == nullptr) {
        ASSERT_TRUE(tables.Insert(key, tag));
      } else {
        ASSERT_EQ(*found, map[key]);
        *found = tag;
      }
      map[key] = tag;
    }
    most = std::max(most, tables.tables());
    if (round % 2 == 1) {
      IdTable::TagSet kept;
      for (size_t tag = 1; tag < kept.size(); ++tag) kept[tag] = random() % 8 == 0;
      for (size_t table = 0, all = tables.tables(); table < all; ++table) tables.SweepNext(kept);
      std::erase_if(map, [&](const auto& entry) { return !kept[entry.second]; });
    }
    ASSERT_EQ(tables.size(), static_cast<int64_t>(map.size()));
    ASSERT_EQ(tables.memory_bytes(), memory.used_bytes());
    for (const auto& [key, tag] : map) {
      ASSERT_NE(tables.Find(key), nullptr);
      ASSERT_EQ(*tables.Find(key), tag);
    }
  }
  EXPECT_GE(most, 8u);
  for (size_t table = 0, all = tables.tables(); table < all; ++table) tables.SweepNext({});
  EXPECT_EQ(tables.size(), 0);
  EXPECT_EQ(memory.used_bytes(), 0);
  EXPECT_EQ(tables.Find(1), nullptr);
  EXPECT_TRUE(tables.Insert(1, 1));
}

// Whatever their number: no insertion and no step of a sweep goes through more slots than a table has, or
// than it and the two that it is divided into have.
TEST(IdTablesTest, NoCallGoesThroughMoreThanATable) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  MemoryBudget memory(int64_t{1} << 30);
  IdTables tables(&memory);
  constexpr uint64_t kMost = 3 * IdTables::kMostSlots;
  uint64_t most = 0;
  uint64_t passed = 0;
  const auto note = [&] {
    most = std::max(most, tables.slots_passed() - passed);
    passed = tables.slots_passed();
  };
  for (int i = 0; i < 1'000'000; ++i) {
    ASSERT_TRUE(tables.Insert(random(), static_cast<uint8_t>(1 + i % 2)));
    note();
    // Never a second copy of more than a table either: 12 to 18 bytes an id.
    if (i > 100'000) {
      ASSERT_LE(memory.used_bytes(), 18.2 * i);
    }
  }
  EXPECT_LE(most, kMost);
  EXPECT_GT(tables.slots_passed(), 1'000'000u);
  for (size_t table = 0, all = tables.tables(); table < all; ++table) {
    tables.SweepNext(IdTable::TagSet(2));
    note();
  }
  EXPECT_LE(most, kMost);
  EXPECT_EQ(tables.size(), 500'000);
}

// Where the memory is at an end, what is in the way of a key is swept in its own table.
TEST(IdTablesTest, MakeRoomForAKeyWhereItBelongs) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  MemoryBudget memory(2'000'000);
  IdTables tables(&memory);
  while (tables.Insert(random(), static_cast<uint8_t>(1 + random() % 8))) {
  }
  const int64_t held = tables.size();
  EXPECT_GE(held, 2'000'000 / 36);
  EXPECT_LE(memory.used_bytes(), memory.limit_bytes());
  uint64_t key = random();
  while (tables.Insert(key, 1)) key = random();
  EXPECT_FALSE(tables.SweepAt(key, ~IdTable::TagSet()));
  EXPECT_FALSE(tables.Insert(key, 1));
  EXPECT_TRUE(tables.SweepAt(key, ~IdTable::TagSet(4)));
  EXPECT_TRUE(tables.Insert(key, 1));
  EXPECT_NE(tables.Find(key), nullptr);
  EXPECT_EQ(tables.memory_bytes(), memory.used_bytes());
}

}  // namespace
}  // namespace lethe
