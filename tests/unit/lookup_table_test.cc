#include "src/reconcile/lookup_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lethe {
namespace {

struct Sets {
  std::vector<uint64_t> only_here, only_there, both;
};

Sets MakeSets(uint64_t seed, int here, int there, int both) {
  std::mt19937_64 random(seed);
  Sets sets;
  for (auto& [count, keys] :
       {std::pair{here, &sets.only_here}, {there, &sets.only_there}, {both, &sets.both}}) {
    for (int i = 0; i < count; ++i) keys->push_back(random());
    std::sort(keys->begin(), keys->end());
  }
  return sets;
}

std::optional<LookupTable::Difference> Differ(const Sets& sets, uint64_t cells, uint64_t seed) {
  LookupTable here(cells, seed), there(cells, seed);
  for (const uint64_t key : sets.both) here.Insert(key), there.Insert(key);
  for (const uint64_t key : sets.only_here) here.Insert(key);
  for (const uint64_t key : sets.only_there) there.Insert(key);
  auto difference = here.Subtract(there.ToBytes());
  if (difference) {
    std::sort(difference->only_here.begin(), difference->only_here.end());
    std::sort(difference->only_there.begin(), difference->only_there.end());
  }
  return difference;
}

TEST(LookupTableTest, ListsTheDifferenceItWasSizedFor) {
  for (const int keys : {0, 1, 2, 5, 20, 100, 1000, 20'000}) {
    const int rounds = keys > 1000 ? 20 : 2000;
    int failed = 0;
    for (int round = 0; round < rounds; ++round) {
      const auto seed = static_cast<uint64_t>(round);
      const Sets sets = MakeSets(seed, keys / 2, keys - keys / 2, 50);
      const auto difference = Differ(sets, LookupTable::CellsFor(keys), seed);
      if (!difference) {
        ++failed;
        continue;
      }
      EXPECT_EQ(difference->only_here, sets.only_here);
      EXPECT_EQ(difference->only_there, sets.only_there);
    }
    // Fewer than one in a thousand is promised; ten of 2,000 would happen less than once in a million runs.
    EXPECT_LT(failed, 10) << keys << " keys";
  }
}

TEST(LookupTableTest, ATableThatIsTooSmallSaysSo) {
  int listed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    listed += Differ(MakeSets(seed, 500, 500, 100), 500, seed).has_value() ? 1 : 0;
  }
  EXPECT_EQ(listed, 0);
}

TEST(LookupTableTest, BytesOfAnotherSizeAreRefused) {
  LookupTable table(100, 1);
  EXPECT_FALSE(table.Subtract(std::string(99 * LookupTable::kCellBytes, '\0')).has_value());
}

// Each cell is pure in turn, for ever, if nothing ends it.
TEST(LookupTableTest, ATableThatWasMadeToDeceiveEnds) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    LookupTable table(64, 1), other(64, 1);
    for (int i = 0; i < 20; ++i) other.Insert(random());
    std::string bytes = other.ToBytes();
    for (int i = 0; i < 8; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    table.Insert(random());
    const auto difference = table.Subtract(bytes);
    const size_t listed = difference ? difference->only_here.size() + difference->only_there.size() : 0;
    EXPECT_LE(listed, 8u * 64);
  }
}

}  // namespace
}  // namespace lethe
