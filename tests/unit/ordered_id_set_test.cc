#include "src/filter/ordered_id_set.h"

#include <algorithm>
#include <random>
#include <unordered_set>
#include <vector>

#include "gtest/gtest.h"
#include "lethe/filter.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

using IdSet = OrderedIdSet<TimedId>;

IdHash Id(uint64_t i) { return {i * 0x9e3779b97f4a7c15, (i + 1) * 0xd1342543de82ef95}; }

TEST(OrderedIdSetTest, HoldsIdsInOrderOfInsertion) {
  IdSet set;
  EXPECT_FALSE(set.Find(Id(1)));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(set.Insert({Id(static_cast<uint64_t>(i)), i}));
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_FALSE(set.Insert({Id(i), 7}));
  ASSERT_EQ(set.InOrder().size(), 1000u);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(set.InOrder()[i].id, Id(i));
    EXPECT_EQ(set.InOrder()[i].stream_time_ms, static_cast<int64_t>(i));
  }
}

TEST(OrderedIdSetTest, AnExpiredIdComesBackInItsNewPlace) {
  IdSet set;
  for (uint64_t i = 0; i < 5; ++i) set.Insert({Id(i), 0});
  EXPECT_TRUE(set.Forget(Id(1)));
  EXPECT_FALSE(set.Forget(Id(1)));
  EXPECT_FALSE(set.Forget(Id(99)));
  EXPECT_FALSE(set.Find(Id(1)));
  EXPECT_EQ(set.size(), 4u);
  EXPECT_TRUE(set.Insert({Id(1), 5}));
  EXPECT_TRUE(set.Forget(Id(3)));
  ASSERT_EQ(set.InOrder().size(), 4u);
  EXPECT_EQ(set.InOrder()[3].id, Id(1));
  EXPECT_TRUE(set.Find(Id(1)));  // also after the places have shifted
  EXPECT_FALSE(set.Insert({Id(4), 6}));
}

TEST(OrderedIdSetTest, IdsWithEqualTagsAndSlotsAreDistinguished) {
  IdSet set;
  for (uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(set.Insert({{.a = i << 40, .b = 0}, 0}));
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ((set.Find({.a = i << 40, .b = 0}) != nullptr), i < 500);
}

TEST(OrderedIdSetTest, BytesAreThoseOfThePresentContent) {
  IdSet set;
  for (uint64_t i = 0; i < 100'000; ++i) set.Insert({Id(i), 0});
  EXPECT_EQ(set.bytes(), 100'000 * IdSet::kBytesPerId);
  set.Clear();
  EXPECT_EQ(set.bytes(), 0);
  set.Insert({Id(1), 0});
  EXPECT_EQ(set.bytes(), IdSet::kBytesPerId);
}

TEST(OrderedIdSetTest, KeepsLiveIds) {
  IdSet set;
  for (int i = 0; i < 1000; ++i) set.Insert({Id(static_cast<uint64_t>(i)), i});
  set.Forget(Id(998));
  set.KeepIf([](const TimedId& entry) { return entry.stream_time_ms >= 900; });
  EXPECT_EQ(set.places(), 99u);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(set.Find(Id(i)) != nullptr, i >= 900 && i != 998);
}

TEST(OrderedIdSetTest, EpochsThatWrapBringNothingBack) {
  IdSet set;
  set.Insert({Id(0), 0});
  for (int epoch = 0; epoch < 70'000; ++epoch) {
    set.Clear();
    ASSERT_FALSE(set.Find(Id(0))) << epoch;
  }
}

TEST(OrderedIdSetTest, AgreesWithAnExactSet) {
  std::mt19937_64 random(TestSeed());
  IdSet set;
  for (int round = 0; round < 200; ++round) {
    std::vector<uint64_t> order;  // the ids that are in the set
    const auto at = [&](uint64_t id) { return std::find(order.begin(), order.end(), id); };
    const uint64_t ids = 1 + random() % 300;
    for (int step = 0; step < 400; ++step) {
      const uint64_t id = random() % ids;
      const bool in = at(id) != order.end();
      ASSERT_EQ((set.Find(Id(id)) != nullptr), in);
      if (random() % 4 == 0) {
        ASSERT_EQ(set.Forget(Id(id)), in);
        if (in) order.erase(at(id));
      } else {
        ASSERT_EQ(set.Insert({Id(id), 0}), !in);
        if (!in) order.push_back(id);
      }
      ASSERT_EQ(set.size(), order.size());
    }
    ASSERT_EQ(set.InOrder().size(), order.size());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(set.InOrder()[i].id, Id(order[i]));
    set.Clear();
  }
}

}  // namespace
}  // namespace lethe
