#include "src/filter/compact_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/filter/engine_filter.h"
#include "src/memory/line_memory.h"
#include "tests/support/filter_testing.h"
#include "tests/support/load_scenarios.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

std::unique_ptr<EngineFilter> Make(MemoryBudget* memory, absl::Duration horizon, double target = 1e-6,
                                   CompactCode code = CompactCode::kFastest) {
  auto filter = NewCompactFilter({.horizon = horizon, .target_fpp = target, .memory = memory}, code);
  EXPECT_OK(filter);
  return std::unique_ptr<EngineFilter>(static_cast<EngineFilter*>(filter->release()));
}

constexpr absl::Duration kDay = absl::Milliseconds(kScenarioHorizonMs);

struct TargetBits {
  double target;
  double worst_bits;  // of memory per id held, in tables this small
};

class CompactScenarioTest : public testing::TestWithParam<TargetBits> {};

// No id is missed within the horizon, none is kept beyond 1.1 of it, the rate is under the target at every
// moment, and memory follows what is held. A measured rate may exceed the target by chance: by more than
// BinomialBound less than once in four million comparisons.
TEST_P(CompactScenarioTest, EveryIdIsFoundAndMemoryFollowsWhatIsHeld) {
  const uint64_t seed = TestSeed();
  const double target = GetParam().target;
  for (const LoadScenario& scenario : LoadScenarios(50'000)) {
    MemoryBudget memory(int64_t{256} << 20);
    auto filter = Make(&memory, kDay, target);
    const ScenarioFigures figures = RunScenario(scenario, 200, seed, filter.get());
    EXPECT_EQ(figures.missed, 0) << scenario.name << ", of " << figures.asked;
    EXPECT_EQ(figures.limit_hits, 0) << scenario.name;
    EXPECT_EQ(figures.lost_ids, 0) << scenario.name;
    EXPECT_LE(figures.worst_fpp, target) << scenario.name;
    EXPECT_GT(figures.least_model, 0.95) << scenario.name;
    EXPECT_LT(figures.most_model, 1.05) << scenario.name;
    EXPECT_LE(figures.measured_fpp, target + BinomialBound(target, figures.probes)) << scenario.name;
    const double kept_asked = static_cast<double>(figures.kept_asked) + 1;
    EXPECT_LE(static_cast<double>(figures.kept) / kept_asked, target + BinomialBound(target, kept_asked))
        << scenario.name;
    EXPECT_LE(figures.worst_bits, GetParam().worst_bits) << scenario.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CompactScenarioTest,
                         testing::Values(TargetBits{1e-2, 39}, TargetBits{1e-4, 50}, TargetBits{1e-6, 58},
                                         TargetBits{1e-9, 76}, TargetBits{1e-15, 155}),
                         [](const auto& of) {
                           return absl::StrCat("e", std::lround(-std::log10(of.param.target)));
                         });

// Either code gives the same verdicts, under random loads with growth, shrinking and the memory limit.
TEST(CompactFilterTest, IsTheSameOnEveryProcessor) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (const double target : {1e-2, 1e-6, 1e-15}) {
    for (const int64_t limit : {int64_t{100'000}, int64_t{64} << 20}) {
      MemoryBudget memory(limit);
      MemoryBudget other_memory(limit);
      auto filter = Make(&memory, absl::Milliseconds(1000), target);
      auto other = Make(&other_memory, absl::Milliseconds(1000), target, CompactCode::kPortable);
      int64_t now = 0;
      uint64_t next = 1;
      for (int round = 0; round < 400; ++round) {
        std::vector<TimedId> ids(random() % 1000 / (round % 100 < 50 ? 1 : 50) + 1);
        for (TimedId& timed : ids) {
          const uint64_t number =
              random() % 3 == 0 ? next - random() % std::min<uint64_t>(next, 5000) : next++;
          timed = {.id = NumberedId(number, seed), .stream_time_ms = now};
        }
        now += static_cast<int64_t>(random() % 20);
        std::vector<Verdict> verdicts(ids.size());
        std::vector<Verdict> others(ids.size());
        if (round % 3 == 0) {
          filter->Insert(ids);
          other->Insert(ids);
        } else {
          filter->TestAndInsert(ids, absl::MakeSpan(verdicts));
          other->TestAndInsert(ids, absl::MakeSpan(others));
        }
        ASSERT_EQ(verdicts, others);
      }
      const FilterStatus status = filter->Status();
      const FilterStatus other_status = other->Status();
      EXPECT_EQ(status.ids, other_status.ids);
      EXPECT_EQ(status.shape.lines, other_status.shape.lines);
      EXPECT_EQ(status.fpp.estimated, other_status.fpp.estimated);
      EXPECT_EQ(status.limit_hits, other_status.limit_hits);
    }
  }
}

// Some are false positives when they come. They renew the entry of another id, which must be found as before,
// also when the table has grown since.
TEST(CompactFilterTest, AnInsertedIdTakesNoOtherAway) {
  constexpr int64_t kIds = 400'000;
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, kDay, 1e-2);
  std::mt19937_64 random(seed);
  std::vector<TimedId> ids;
  for (int64_t i = 0; i < kIds; ++i) {
    ids.push_back({.id = {random(), random()}, .stream_time_ms = i * (kScenarioHorizonMs / 2) / kIds});
  }
  std::vector<Verdict> verdicts(kIds);
  filter->Insert(ids);
  std::vector<IdHash> asked;
  for (const TimedId& timed : ids) asked.push_back(timed.id);
  filter->Contains(asked, absl::MakeSpan(verdicts));
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), Verdict::kUnique), 0);
}

// A table that has grown from nothing goes back to formats that leave nothing for so much growth.
TEST(CompactFilterTest, ASettledTableKeepsLittleForGrowth) {
  const uint64_t seed = TestSeed();
  const struct {
    double target;
    double most_bits;
  } cases[] = {{1e-4, 31.2}, {1e-6, 38.2}, {1e-9, 54.2}};
  for (const auto& [target, most_bits] : cases) {
    for (const uint64_t ids : {uint64_t{100'000}, uint64_t{250'000}}) {
      MemoryBudget memory(int64_t{64} << 20);
      auto filter = Make(&memory, kDay, target);
      for (uint64_t i = 0; i < 3 * ids; ++i) {
        InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i * kScenarioHorizonMs / ids));
      }
      const FilterStatus status = filter->Status();
      EXPECT_LE(512.0 * static_cast<double>(status.shape.lines) / static_cast<double>(ids), most_bits)
          << target;
      EXPECT_LE(status.fpp.modelled, target / 2);
    }
  }
}

// Lines are not packed closer while the stream's pace will make the table grow: it would need wider
// fingerprints for the rest of its growth.
TEST(CompactFilterTest, GrowthDoesNotSpendTheTargetEarly) {
  constexpr double kTarget = 1e-6;
  const uint64_t seed = TestSeed();
  for (const uint64_t ids : {uint64_t{100'000}, uint64_t{250'000}}) {
    MemoryBudget memory(int64_t{64} << 20);
    auto filter = Make(&memory, kDay, kTarget);
    double worst = 0;
    for (uint64_t i = 0; i < 2 * ids; ++i) {
      InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i * kScenarioHorizonMs / ids));
      if (i % 256 == 0) worst = std::max(worst, filter->Figures().fpp.modelled);
    }
    EXPECT_LE(worst, 0.6 * kTarget) << ids;
  }
}

// Of what the target leaves for growth, early doublings of many take little: what they save is of a small
// table.
TEST(CompactFilterTest, EarlyDoublingsOfManyTakeLittleOfTheTarget) {
  constexpr double kIdsPerHorizon = 1e7;
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, kDay);
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    const double horizons = static_cast<double>(i) / kIdsPerHorizon;
    InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(horizons * kScenarioHorizonMs));
    if (i % 8192 != 0) continue;
    ASSERT_LE(filter->Figures().fpp.modelled, 0.35e-6) << i;
  }
}

// A line that is split may have more entries for one of the two than that one has slots.
TEST(CompactFilterTest, GrowthIntoFewerSlotsTakesNoIdAway) {
  constexpr uint64_t kSettled = 100'000;
  constexpr uint64_t kAll = 3'000'000;
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, kDay);
  uint64_t next = 0;
  for (; next < 3 * kSettled; ++next) {
    InsertOne(*filter, NumberedId(next, seed), static_cast<int64_t>(next * kScenarioHorizonMs / kSettled));
  }
  const int settled_bits = static_cast<int>(filter->Status().shape.bits_per_id);
  for (; next < kAll; ++next) InsertOne(*filter, NumberedId(next, seed), 3 * kScenarioHorizonMs);
  EXPECT_GT(static_cast<int>(filter->Status().shape.bits_per_id), settled_bits);
  int64_t missed = 0;
  for (uint64_t i = 2 * kSettled; i < kAll; ++i) missed += IsContained(*filter, NumberedId(i, seed)) ? 0 : 1;
  EXPECT_EQ(missed, 0);
  EXPECT_LE(filter->Status().fpp.estimated, 1e-6);
}

// The rate, made measurable by a high target: what is measured is what the entries imply, also after growth.
TEST(CompactFilterTest, MeasuredRateIsTheEstimatedOne) {
  const uint64_t seed = TestSeed();
  for (const double ids : {1000.0, 30'000.0, 400'000.0}) {
    MemoryBudget memory(int64_t{64} << 20);
    auto filter = Make(&memory, absl::Hours(1), 1e-2);
    for (uint64_t i = 0; i < static_cast<uint64_t>(ids); ++i) InsertOne(*filter, NumberedId(i, seed), 0);
    const FilterStatus status = filter->Status();
    constexpr uint64_t kProbes = 1'000'000;
    const double measured = MeasuredFpp(*filter, uint64_t{1} << 40, kProbes, seed);
    EXPECT_NEAR(measured, status.fpp.estimated,
                BinomialBound(status.fpp.estimated, kProbes) + kSigmas * status.fpp.deviation)
        << ids;
    EXPECT_GT(status.fpp.estimated, 0);
  }
}

// A burst is forgotten, and its memory is back, soon after its last id is older than the horizon: not only
// when the sixteenth of the horizon in which it came is. Half of one that takes that long goes in the middle.
TEST(CompactFilterTest, ABurstGoesSoonAfterItsLastId) {
  constexpr double kIds = 20'000;  // of a horizon
  constexpr double kBurst = 200'000;
  const uint64_t seed = TestSeed();
  const struct {
    double part;  // of a horizon, that it takes
    double gone_after;
    double gone;
  } cases[] = {{0.02, 0.035, 1}, {1.0 / 16, 0.04, 0.5}, {1.0 / 16, 0.075, 1}};
  for (const auto& [part, gone_after, gone] : cases) {
    MemoryBudget memory(int64_t{64} << 20);
    auto filter = Make(&memory, kDay);
    std::vector<int64_t> times_ms;
    constexpr int64_t kSteps = 4096;  // in a horizon
    double due = 0;
    int64_t now_ms = 0;
    for (int64_t step = 0; now_ms < static_cast<int64_t>((2.5 + gone_after) * kScenarioHorizonMs); ++step) {
      const double time = static_cast<double>(step) / kSteps;
      now_ms = step * kScenarioHorizonMs / kSteps;
      due += (kIds + (time >= 1.5 && time < 1.5 + part ? kBurst / part : 0)) / kSteps;
      for (; due >= 1; due -= 1) {
        InsertOne(*filter, NumberedId(times_ms.size(), seed), now_ms);
        times_ms.push_back(now_ms);
      }
    }
    const FilterStatus status = filter->Status();
    EXPECT_LE(static_cast<double>(status.ids), kIds * 1.1 + kBurst * (1 - gone))
        << part << ", " << gone_after;
    EXPECT_LE(static_cast<double>(status.memory_bytes) * 8, 80 * static_cast<double>(status.ids));
    for (size_t i = 0; i < times_ms.size(); ++i) {
      if (now_ms - times_ms[i] > kScenarioHorizonMs) continue;
      ASSERT_TRUE(IsContained(*filter, NumberedId(i, seed))) << part << ", " << i;
    }
  }
}

// Where hardly any ids come, time makes a table smaller as its ids expire.
TEST(CompactFilterTest, ATableFollowsAFallWithTime) {
  constexpr double kIds = 200'000;
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, kDay);
  uint64_t next = 0;
  constexpr int64_t kSteps = 4096;  // in a horizon
  for (int64_t step = 0; step < 2 * kSteps; ++step) {
    const int64_t now_ms = step * kScenarioHorizonMs / kSteps;
    filter->AdvanceTo(now_ms);
    const auto ids = static_cast<uint64_t>(kIds * std::min(1.5, static_cast<double>(step) / kSteps));
    for (; next < ids; ++next) InsertOne(*filter, NumberedId(next, seed), now_ms);
    if (step < 3 * kSteps / 2 || step % (kSteps / 16) != kSteps / 32) continue;
    // In the middle between two times at which a sixteenth of the ids expires.
    const FilterStatus status = filter->Status();
    EXPECT_LE(512.0 * static_cast<double>(status.shape.lines) / static_cast<double>(status.ids), 45) << step;
  }
  EXPECT_LT(filter->Status().ids, 0.6 * kIds);
}

// After two million ids a day the load falls to one id an hour, and nothing else tells the time: ids are
// forgotten within 1.1 horizons, and memory is back within 1.2.
TEST(CompactFilterTest, ATrickleForgetsAndGivesMemoryBack) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, kDay);
  constexpr uint64_t kIds = 2'000'000;
  for (uint64_t i = 0; i < kIds; ++i) {
    InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i * kScenarioHorizonMs / kIds));
  }
  const int64_t full = filter->Status().memory_bytes;
  EXPECT_GT(full, int64_t{8} << 20);
  constexpr int64_t kHourMs = kScenarioHorizonMs / 24;
  for (int64_t hour = 1; hour <= 29; ++hour) {
    InsertOne(*filter, NumberedId(kIds + static_cast<uint64_t>(hour), seed),
              kScenarioHorizonMs + hour * kHourMs);
    if (hour == 26) {
      // 26.4 hours are 1.1 horizons. A false positive here comes less than once in 1,000 runs.
      for (uint64_t i = kIds - 1000; i < kIds; ++i) EXPECT_FALSE(IsContained(*filter, NumberedId(i, seed)));
      EXPECT_LE(filter->Status().ids, 26);
    }
  }
  EXPECT_LE(filter->Status().memory_bytes, int64_t{16} << 10);
}

// Many more ids than there is memory for: the latest are there without a gap, as many as fit.
TEST(CompactFilterTest, AtTheLimitTheWindowIsShortenedByEpochs) {
  const uint64_t seed = TestSeed();
  constexpr int64_t kLimit = int64_t{1} << 20;
  MemoryBudget memory(kLimit);
  auto filter = Make(&memory, absl::Seconds(1000));
  uint64_t next = 0;
  for (; next < 1'000'000; ++next) {
    InsertOne(*filter, NumberedId(next, seed), static_cast<int64_t>(next / 100));
    ASSERT_LE(memory.used_bytes(), kLimit);
  }
  const FilterStatus status = filter->Status();
  EXPECT_GT(status.limit_hits, 0);
  // At most a sixteenth of the slots are free, besides those that always are.
  EXPECT_LE(8.0 * kLimit / static_cast<double>(status.ids), 55);
  for (uint64_t i = 1; i <= static_cast<uint64_t>(status.ids); ++i) {
    ASSERT_TRUE(IsContained(*filter, NumberedId(next - i, seed))) << i;
  }
  EXPECT_GE(status.window, absl::Milliseconds(status.ids / 100 - 1));
}

// Ids that somebody has chosen who knows the hash: all have the same two lines, in tables of up to 2^16
// lines, and differ in the address bits above.
IdHash ForgedId(uint64_t number, uint64_t seed) {
  return {.a = (number * 0x9E3779B97F4A7C15ULL & ~uint64_t{0xffff}) | (seed & 0xffff), .b = seed};
}

// Inserts forged ids. Returns how many were new to the filter.
int64_t Forge(Filter& filter, uint64_t ids, uint64_t seed, int64_t stream_time_ms) {
  int64_t fresh = 0;
  for (uint64_t i = 0; i < ids; ++i) {
    const IdHash id = ForgedId(i, seed);
    if (i % 2 == 0) {
      fresh += TestAndInsertOne(filter, id, stream_time_ms) == Verdict::kUnique ? 1 : 0;
    } else {
      fresh += IsContained(filter, id) ? 0 : 1;
      InsertOne(filter, id, stream_time_ms);
    }
  }
  return fresh;
}

// Their lines and the stash are soon full. That costs the forged ids alone: no earlier id, no window and
// hardly any memory, also when the table grows later and splits their lines.
TEST(CompactFilterTest, ChosenHashesCostNoOtherIds) {
  const uint64_t seed = TestSeed();
  for (const double target : {1e-6, 1e-9, 1e-15}) {
    for (const uint64_t ids : {uint64_t{0}, uint64_t{700}, uint64_t{40'000}}) {
      MemoryBudget memory(int64_t{64} << 20);
      auto filter = Make(&memory, kDay, target);
      const auto time_of = [ids](uint64_t i) {
        return static_cast<int64_t>(i * (kScenarioHorizonMs / 2) / std::max<uint64_t>(1, ids));
      };
      for (uint64_t i = 0; i < ids; ++i) InsertOne(*filter, NumberedId(i, seed), time_of(i));
      const FilterStatus before = filter->Status();
      const int64_t fresh = Forge(*filter, 10'000, seed, time_of(ids));
      const FilterStatus after = filter->Status();
      EXPECT_GT(after.lost_ids, 1000);
      EXPECT_EQ(after.ids, before.ids + fresh - after.lost_ids);
      EXPECT_EQ(after.limit_hits, 0);
      EXPECT_LE(after.memory_bytes, before.memory_bytes * 7 / 5 + (int64_t{16} << 10)) << ids;
      for (uint64_t i = 0; i < ids; ++i) ASSERT_TRUE(IsContained(*filter, NumberedId(i, seed))) << i;

      // Three times as many.
      for (uint64_t i = ids; i < 3 * ids; ++i) InsertOne(*filter, NumberedId(i, seed), time_of(ids));
      const FilterStatus grown = filter->Status();
      EXPECT_EQ(grown.limit_hits, 0);
      EXPECT_GE(grown.window, absl::Milliseconds(time_of(ids)));
      EXPECT_LE(grown.memory_bytes, 4 * before.memory_bytes + (int64_t{32} << 10)) << ids;
      int64_t missed = 0;
      for (uint64_t i = 0; i < 3 * ids; ++i) missed += IsContained(*filter, NumberedId(i, seed)) ? 0 : 1;
      EXPECT_LE(missed, grown.lost_ids - after.lost_ids);
      EXPECT_LE(missed, 100) << "of their lines alone";
    }
  }
}

// Where there is no memory, the oldest ids make room for new ones, not for these.
TEST(CompactFilterTest, ChosenHashesAtTheLimitShortenTheWindowByAnEpochAtMost) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{1} << 20);
  auto filter = Make(&memory, absl::Seconds(1000));
  uint64_t next = 0;
  for (; next < 400'000; ++next)
    InsertOne(*filter, NumberedId(next, seed), static_cast<int64_t>(next / 1000));
  const FilterStatus before = filter->Status();
  ASSERT_GT(before.limit_hits, 0);
  EXPECT_EQ(before.lost_ids, 0);
  Forge(*filter, 10'000, seed, static_cast<int64_t>(next / 1000));
  const FilterStatus after = filter->Status();
  EXPECT_LE(after.limit_hits, before.limit_hits + 2);
  EXPECT_GE(after.ids, before.ids * 7 / 8);
  EXPECT_GT(after.lost_ids, 1000);
}

// Epochs that began in a small table have entries that lost bits as it grew, and others that did not. At the
// limit all may get narrower fingerprints, as far as the target allows.
TEST(CompactFilterTest, NarrowerFingerprintsAtTheLimitKeepTheTarget) {
  const uint64_t seed = TestSeed();
  for (const int64_t limit : {1'170'000, 1'320'000}) {
    for (const double horizons_to_limit : {0.3, 0.5}) {
      MemoryBudget memory(limit);
      auto filter = Make(&memory, absl::Milliseconds(1000));
      const int64_t ids_at_limit = limit / 5;
      const double ids_per_ms = static_cast<double>(ids_at_limit) / (1000 * horizons_to_limit);
      for (int64_t i = 0; i < ids_at_limit * 3 / 2; ++i) {
        InsertOne(*filter, NumberedId(static_cast<uint64_t>(i), seed),
                  static_cast<int64_t>(static_cast<double>(i) / ids_per_ms));
        if (i % 2048 != 0) continue;
        const FilterStatus status = filter->Status();
        ASSERT_LE(status.fpp.modelled, status.fpp.target) << limit << ", " << horizons_to_limit << ", " << i;
      }
      EXPECT_GT(filter->Status().limit_hits, 0);
    }
  }
}

// The lines are copied in parts, while ids are inserted that split lines and move entries. What is restored
// has all that was there before, and forgets none of what came later before its time.
TEST(CompactFilterTest, ACopyHasAllThatWasThereWhenItWasBegun) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, absl::Milliseconds(16'000));
  uint64_t next = 0;
  // Nearly as many as there is room for where the lines are: they will move.
  while (filter->Status().memory_bytes < LineMemory::kFirstRoomBytes - (int64_t{96} << 10)) {
    for (int i = 0; i < 1000; ++i, ++next) {
      InsertOne(*filter, NumberedId(next, seed), 16'000 + static_cast<int64_t>(next / 2000));
    }
  }
  const uint64_t before = next;
  const FilterStatus begun = filter->Status();
  const auto image = filter->BeginCopy();
  ASSERT_OK(image);
  const absl::Span<const char> lines = image->memory.front();
  std::vector<char> copied(lines.size());
  constexpr size_t kPart = 8192;
  for (size_t at = 0; at < lines.size(); at += kPart) {
    ASSERT_TRUE(filter->CopyMemory(*image, lines.subspan(at, kPart), copied.data() + at));
    // Some are copies, which renew what is there.
    for (int i = 0; i < 150; ++i)
      InsertOne(*filter, NumberedId(i % 10 == 0 ? next / 2 : next, seed), 16'900), ++next;
  }
  EXPECT_GT(filter->Status().shape.lines, begun.shape.lines + 100);
  EXPECT_LT(begun.memory_bytes, LineMemory::kFirstRoomBytes);
  EXPECT_GT(filter->Status().memory_bytes, LineMemory::kFirstRoomBytes);

  auto restored = Make(&memory, absl::Milliseconds(16'000));
  const auto to = restored->Restore(image->state, static_cast<int64_t>(copied.size()));
  ASSERT_OK(to);
  std::copy(copied.begin(), copied.end(), to->front().begin());
  ASSERT_TRUE(restored->Restored());
  for (uint64_t i = 0; i < before; ++i) ASSERT_TRUE(IsContained(*restored, NumberedId(i, seed))) << i;
  std::vector<uint64_t> also;
  for (uint64_t i = before; i < next; ++i) {
    if (IsContained(*restored, NumberedId(i, seed))) also.push_back(i);
  }
  EXPECT_FALSE(also.empty());
  restored->AdvanceTo(16'900 + 16'000);
  for (const uint64_t i : also) ASSERT_TRUE(IsContained(*restored, NumberedId(i, seed))) << i;
}

TEST(CompactFilterTest, LinesThatCannotBeAreRefused) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  MemoryBudget memory(int64_t{64} << 20);
  for (const double target : {1e-2, 1e-6}) {
    auto filter = Make(&memory, kDay, target);
    for (uint64_t i = 0; i < 2000; ++i) InsertOne(*filter, NumberedId(i, seed), 0);
    const auto image = filter->BeginCopy();
    ASSERT_OK(image);
    int refused = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<char> lines(image->memory.front().begin(), image->memory.front().end());
      for (int i = 0; i < 1 + round % 20; ++i) lines[random() % lines.size()] = static_cast<char>(random());
      auto restored = Make(&memory, kDay, target);
      const auto to = restored->Restore(image->state, static_cast<int64_t>(lines.size()));
      ASSERT_OK(to);
      std::copy(lines.begin(), lines.end(), to->front().begin());
      if (!restored->Restored()) {
        ++refused;
        continue;
      }
      // What it says may be wrong, but it works: it grows, forgets and shrinks.
      for (uint64_t i = 0; i < 5000; ++i) InsertOne(*restored, NumberedId(1'000'000 + i, seed), 1000);
      for (int64_t step = 1; step < 40; ++step) {
        TestAndInsertOne(*restored, NumberedId(random(), seed), step * kScenarioHorizonMs / 10);
      }
      EXPECT_GE(restored->Status().ids, 0);
    }
    EXPECT_GT(refused, 10);
  }
}

// Whatever one of its numbers is: it is refused, or the ages that the filter tells are of times that can be.
TEST(CompactFilterTest, TimesThatCannotBeAreRefused) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{64} << 20);
  constexpr int64_t kFarthestMs = int64_t{1} << 61;
  for (const bool has_time : {false, true}) {
    auto filter = Make(&memory, kDay);
    InsertOne(*filter, NumberedId(0, seed), has_time ? 1000 : kNoStreamTime);
    const auto image = filter->BeginCopy();
    ASSERT_OK(image);
    int refused = 0;
    for (size_t at = 0; at + 8 <= image->state.size(); at += 8) {
      for (const int64_t number : {std::numeric_limits<int64_t>::min(), -kFarthestMs, -(int64_t{1} << 55),
                                   int64_t{1} << 55, kFarthestMs, std::numeric_limits<int64_t>::max()}) {
        std::string state = image->state;
        std::memcpy(state.data() + at, &number, sizeof number);
        auto restored = Make(&memory, kDay);
        const auto to = restored->Restore(state, static_cast<int64_t>(image->memory.front().size()));
        if (!to.ok()) {
          ++refused;
          continue;
        }
        for (const GenerationStatus& generation : restored->Status().generations) {
          for (const absl::Duration age : {generation.oldest, generation.newest}) {
            EXPECT_LE(absl::AbsDuration(age), absl::Milliseconds(2 * kFarthestMs)) << at << ": " << number;
          }
        }
      }
    }
    EXPECT_GT(refused, 20);
  }
}

// One limit for all: while what all hold fits with room to spare, nobody is refused, whoever came first.
TEST(CompactFilterTest, PartitionsShareOneLimitByNeed) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{40} << 20);
  std::vector<std::unique_ptr<Filter>> filters;
  for (int i = 0; i < 8; ++i) filters.push_back(Make(&memory, kDay));
  constexpr uint64_t kIds = 600'000;
  for (size_t i = 0; i < filters.size(); ++i) {
    for (uint64_t j = 0; j < kIds; ++j) InsertOne(*filters[i], NumberedId(j, seed + i), 0);
  }
  int64_t missed = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < filters.size(); ++i) {
    for (uint64_t j = 0; j < kIds; ++j) missed += IsContained(*filters[i], NumberedId(j, seed + i)) ? 0 : 1;
    const FilterStatus status = filters[i]->Status();
    EXPECT_EQ(status.limit_hits, 0);
    bytes += status.memory_bytes;
  }
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(bytes, memory.used_bytes());
}

}  // namespace
}  // namespace lethe
