#include "src/filter/epoch_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "src/filter/fixed_share.h"
#include "tests/support/filter_testing.h"

namespace lethe {
namespace {

constexpr int64_t kChunkBytes = 16 << 10;
constexpr int64_t kEntriesInChunk = 4096;

std::unique_ptr<EpochTable> Make(MemoryBudget* memory, absl::Duration horizon,
                                 const LineOperations& operations = FastestLineOperations(),
                                 double target = 1e-6) {
  auto filter = EpochTable::Create({.horizon = horizon, .target_fpp = target, .memory = memory}, operations);
  EXPECT_TRUE(filter.ok()) << filter.status();
  return *std::move(filter);
}

TEST(EpochTableTest, IsAThirteenthOfTheHorizonLateAtMost) {
  MemoryBudget memory(1 << 20);
  for (int64_t phase = 0; phase < 100; ++phase) {
    auto filter = Make(&memory, absl::Milliseconds(1300));
    InsertOne(*filter, NumberedId(1, 0), phase);
    filter->AdvanceTo(phase + 1300);
    EXPECT_TRUE(IsContained(*filter, NumberedId(1, 0)));
    filter->AdvanceTo(1400);
    EXPECT_FALSE(IsContained(*filter, NumberedId(1, 0)));
  }
}

// The rate, made measurable: ids of which 18 of the 28 bits of the fingerprint are the same in all meet 2^18
// times as often. A new one is contained unless all of the entries that it meets differ.
TEST(EpochTableTest, MeasuredRateIsTheEstimatedOne) {
  const uint64_t seed = TestSeed();
  const auto short_id = [&](uint64_t number) {
    IdHash id = NumberedId(number, seed);
    id.a &= ~(((uint64_t{1} << 18) - 1) << 16);
    return id;
  };
  // 64 chunks at once: the six lowest bits choose one, and the 28 behind them are the fingerprint.
  MemoryBudget memory(64 * 64 * kChunkBytes);
  for (const double load : {0.2, 0.45, 0.69}) {
    auto filter = Make(&memory, absl::Hours(1));
    const auto ids = static_cast<uint64_t>(load * 64 * kEntriesInChunk);
    for (uint64_t i = 0; i < ids; ++i) InsertOne(*filter, short_id(i), 0);
    const FilterStatus status = filter->Status();
    // Equal ones are stored once, so there are fewer by about the rate.
    EXPECT_NEAR(static_cast<double>(status.ids), static_cast<double>(ids), 0.02 * static_cast<double>(ids));
    constexpr uint64_t kProbes = 300'000;
    uint64_t hits = 0;
    for (uint64_t i = 0; i < kProbes; ++i) hits += IsContained(*filter, short_id(10'000'000 + i)) ? 1 : 0;
    const double expected = 1 - std::exp(-std::ldexp(status.fpp_estimated, 18));
    // Besides the sampling, 1 % for lines that are unequally full.
    EXPECT_NEAR(static_cast<double>(hits) / kProbes, expected,
                BinomialBound(expected, kProbes) + 0.01 * expected)
        << "load " << load;
    EXPECT_EQ(status.fpp_estimated, status.fpp_modelled);
  }
}

// Sixty-fold growth within one epoch costs bits of its ids' fingerprints, and Status() says how much; the
// epochs that follow have them whole again.
TEST(EpochTableTest, GrowthInOneEpochRaisesTheRateForAHorizon) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{4} << 20);
  auto filter = Make(&memory, absl::Milliseconds(1300));
  const int64_t start_bytes = filter->Status().memory_bytes;
  constexpr uint64_t kIds = 200'000;
  uint64_t number = 0;
  while (number < kIds) InsertOne(*filter, NumberedId(number++, seed), 0);
  const FilterStatus grown = filter->Status();
  EXPECT_GE(grown.memory_bytes, 16 * start_bytes);
  EXPECT_GT(grown.fpp_estimated, 4 * grown.fpp_modelled);
  constexpr uint64_t kProbes = 5'000'000;
  uint64_t hits = 0;
  for (uint64_t i = 0; i < kProbes; ++i) {
    hits += IsContained(*filter, NumberedId((uint64_t{1} << 40) + i, seed)) ? 1 : 0;
  }
  const double expected = grown.fpp_estimated * static_cast<double>(kProbes);
  // The number of hits is a Poisson variable of the mean `expected`, some 7: 31 or more come about less than
  // once in 10^9.
  EXPECT_LE(static_cast<double>(hits), expected + 24) << expected;
  // A horizon on, with as many ids in the window, the rate is what the load makes it; twice that at most
  // where the table is about to shrink.
  for (int64_t now = 100; now < 3000; ++now) {
    for (int i = 0; i < 154; ++i) InsertOne(*filter, NumberedId(number++, seed), now);
  }
  const FilterStatus steady = filter->Status();
  EXPECT_LE(steady.fpp_estimated, 2.01 * steady.fpp_modelled);
  EXPECT_LT(steady.fpp_estimated, 1.2e-7);
  EXPECT_EQ(steady.limit_hits, 0);
}

// Under a load that only grows, doubling within each horizon, old epochs keep their rate as chunks split.
TEST(EpochTableTest, SplitsLeaveTheRateOfOldEpochsAsItWas) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, absl::Milliseconds(1300));
  uint64_t number = 0;
  double rate = 20;
  for (int64_t now = 0; now < 6500; ++now) {
    rate *= std::pow(2, 1 / 1300.0);
    for (int i = 0; i < static_cast<int>(rate); ++i) InsertOne(*filter, NumberedId(number++, seed), now);
    if (now % 100 == 99) {
      EXPECT_LE(filter->Status().fpp_estimated, EpochTable::kLowestTargetFpp) << now;
    }
  }
  EXPECT_GT(filter->Status().memory_bytes, int64_t{2} << 20);
}

// Both lines of these ids are the same for all, so that what is more than 32 goes into the exact table.
TEST(EpochTableTest, IdsThatFindTheirLinesFullAreKeptExactly) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(1 << 20);
  auto filter = Make(&memory, absl::Milliseconds(1300));
  const int64_t bytes = filter->Status().memory_bytes;
  const auto crowded = [&](uint64_t number) {
    return IdHash{.a = NumberedId(number, seed).a >> 8, .b = NumberedId(number, seed).b >> 8};
  };
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(TestAndInsertOne(*filter, crowded(i), static_cast<int64_t>(i)), Verdict::kUnique);
    for (uint64_t j = 0; j <= i; ++j) ASSERT_TRUE(IsContained(*filter, crowded(j)));
  }
  EXPECT_GT(filter->Status().memory_bytes, bytes);
  EXPECT_EQ(filter->Status().ids, 300);
  InsertOne(*filter, crowded(100), 1000);  // renewed where it is
  EXPECT_EQ(filter->Status().ids, 300);
  for (int64_t now = 1300; now < 3000; ++now) {
    filter->AdvanceTo(now);
    for (uint64_t i = 0; i < 300; ++i) {
      const int64_t inserted = i == 100 ? 1000 : static_cast<int64_t>(i);
      const bool contained = IsContained(*filter, crowded(i));
      ASSERT_TRUE(contained || now - inserted > 1300);
      ASSERT_TRUE(!contained || now - inserted < 1400);
    }
  }
  EXPECT_EQ(filter->Status().memory_bytes, bytes);
  EXPECT_EQ(filter->Status().ids, 0);
}

// Random loads, with growth, shrinking and the memory limit: with either set of line operations the filter
// does the same, and no id is missed that the window covers.
TEST(EpochTableTest, IsTheSameOnEveryProcessor) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 6; ++round) {
    const auto limit = static_cast<int64_t>(40'000 + random() % 2'000'000);
    MemoryBudget fast_memory(limit);
    MemoryBudget portable_memory(limit);
    auto fast = Make(&fast_memory, absl::Milliseconds(500));
    auto portable = Make(&portable_memory, absl::Milliseconds(500), PortableLineOperations());
    std::vector<std::pair<uint64_t, int64_t>> log;
    int64_t now = 0;
    uint64_t next = 0;
    for (int phase = 0; phase < 12; ++phase) {
      const uint64_t rate = uint64_t{1} << random() % 9;
      for (int64_t end = now + 200; now < end; ++now) {
        for (uint64_t i = 0; i < rate; ++i) {
          const uint64_t number = next > 0 && random() % 8 == 0 ? random() % next : next++;
          const IdHash id = NumberedId(number, seed);
          const Verdict verdict = TestAndInsertOne(*fast, id, now);
          ASSERT_EQ(TestAndInsertOne(*portable, id, now), verdict);
          if (verdict == Verdict::kUnique) log.emplace_back(number, now);
        }
      }
      const FilterStatus status = fast->Status();
      ASSERT_EQ(portable->Status().ids, status.ids);
      ASSERT_EQ(portable->Status().memory_bytes, status.memory_bytes);
      ASSERT_LE(fast_memory.used_bytes(), limit);
      for (const auto& [number, time] : log) {
        const int64_t age = now - 1 - time;
        if (absl::Milliseconds(age) < status.window && age <= 500) {
          ASSERT_TRUE(IsContained(*fast, NumberedId(number, seed))) << age << " ms old";
        }
      }
    }
  }
}

// The ids of a full table need the memory that the header says.
TEST(EpochTableTest, NeedsFortyToEightyBitsAnId) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, absl::Hours(1));
  const auto beginning = static_cast<uint64_t>(filter->Status().memory_bytes / 4);
  for (uint64_t i = 0; i < 4'000'000; ++i) {
    InsertOne(*filter, NumberedId(i, seed), 0);
    if (i < beginning || i % 10'000 != 0) continue;
    const double bits = 8 * static_cast<double>(filter->Status().memory_bytes) / static_cast<double>(i + 1);
    ASSERT_GE(bits, 40) << i;
    ASSERT_LE(bits, 81) << i;
  }
}

}  // namespace
}  // namespace lethe
