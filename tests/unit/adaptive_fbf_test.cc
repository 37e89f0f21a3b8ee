#include "src/published/adaptive_fbf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using StepKind = AdaptationStep::Kind;

std::unique_ptr<AdaptiveFbf> Make(MemoryBudget* memory, absl::Duration horizon, double target) {
  auto filter = AdaptiveFbf::Create({.horizon = horizon, .target_fpp = target, .memory = memory});
  EXPECT_OK(filter);
  return *std::move(filter);
}

// The paper's Figure 13, on a horizon of 10,000 s: the load rises thirtyfold and falls again. The filters
// double and the period falls as it rises; they become fewer, one by one, when it has fallen; the rate stays
// under the target, by the model and by the bits that are set.
TEST(AdaptiveFbfTest, FollowsARisingAndAFallingLoad) {
  const uint64_t seed = TestSeed();
  constexpr double kTarget = 2e-3;
  MemoryBudget memory(int64_t{1} << 20);
  auto filter = Make(&memory, absl::Seconds(10'000), kTarget);
  uint64_t number = 0;
  int64_t now_s = 0;
  double owed = 0;
  double worst_modelled = 0;
  double worst_estimated = 0;
  const auto run = [&](int64_t seconds, double from, double to) {
    for (int64_t i = 0; i < seconds; ++i, ++now_s) {
      filter->AdvanceTo(now_s * 1000);
      owed += from + (to - from) * static_cast<double>(i) / static_cast<double>(seconds);
      for (; owed >= 1; --owed) InsertOne(*filter, NumberedId(number++, seed), now_s * 1000);
      if (i % 50 != 0) continue;
      const FilterStatus status = filter->Status();
      worst_modelled = std::max(worst_modelled, status.fpp.modelled);
      worst_estimated = std::max(worst_estimated, status.fpp.estimated);
      EXPECT_GE(status.window, std::min(absl::Seconds(10'000), absl::Seconds(now_s)));
      EXPECT_GE((status.shape.past_generations + 1) * status.shape.refresh_period, absl::Seconds(10'000));
    }
    return filter->Status();
  };
  const FilterStatus quiet = run(30'000, 0.03, 0.03);
  EXPECT_EQ(quiet.shape.past_generations, 1);
  EXPECT_EQ(quiet.shape.refresh_period, absl::Seconds(5000));
  EXPECT_TRUE(quiet.steps.empty());

  const FilterStatus busy = run(30'000, 0.03, 1);
  EXPECT_GE(busy.shape.past_generations, 22);
  EXPECT_LE(busy.shape.refresh_period, absl::Seconds(435));
  EXPECT_GT(busy.memory_bytes, 4 * quiet.memory_bytes);
  const auto ups = std::count_if(busy.steps.begin(), busy.steps.end(),
                                 [](const AdaptationStep& step) { return step.kind == StepKind::kScaleUp; });
  EXPECT_GE(ups, 3);
  // A doubling may be more than is needed for the time being.
  EXPECT_GT(2 * ups, static_cast<std::ptrdiff_t>(busy.steps.size()));
  EXPECT_EQ(busy.steps.back().kind, StepKind::kScaleUp);
  const FilterStatus steady = run(20'000, 1, 1);
  const double measured = MeasuredFpp(*filter, uint64_t{1} << 40, 200'000, seed);
  EXPECT_NEAR(measured, steady.fpp.estimated, BinomialBound(steady.fpp.estimated, 200'000));

  const FilterStatus quiet_again = run(90'000, 0.03, 0.03);
  EXPECT_LE(quiet_again.shape.past_generations, 3);
  EXPECT_LE(quiet_again.memory_bytes, 3 * quiet.memory_bytes);
  EXPECT_EQ(quiet_again.steps.back().kind, StepKind::kScaleDown);
  EXPECT_FALSE(quiet_again.steps.back().reason.empty());
  EXPECT_EQ(quiet_again.limit_hits, 0);
  EXPECT_EQ(quiet_again.step_counts.size(), 5u) << "a step of a kind or reason not counted from zero on";
  for (const StepCount& steps : quiet_again.step_counts) {
    const bool expected = steps.kind == StepKind::kScaleUp || steps.kind == StepKind::kScaleDown;
    EXPECT_EQ(steps.count > 0, expected) << steps.reason;
  }
  EXPECT_GT(steady.present_fill, 0);
  EXPECT_LT(steady.present_fill, 0.9);

  EXPECT_LE(worst_modelled, 0.9 * kTarget);
  EXPECT_GT(worst_modelled, kTarget / 4);
  EXPECT_LE(worst_estimated, kTarget);
}

// A burst at a moment at which no time has passed, and even before time has begun: the interval that is full
// ends with the id that fills it.
// The future, the present and N past ones; an id is in two of them, and no older than the horizon allows.
TEST(AdaptiveFbfTest, DescribesItsGenerations) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{1} << 20);
  auto filter = Make(&memory, absl::Seconds(1000), 1e-2);
  for (int64_t i = 0; i < 2500; ++i) {
    InsertOne(*filter, NumberedId(static_cast<uint64_t>(i), seed), 1000 * i);
  }
  const FilterStatus status = filter->Status();
  ASSERT_GE(status.generations.size(), 3u);
  EXPECT_EQ(status.generations[0].newest, absl::ZeroDuration());
  int64_t ids = 0;
  for (size_t i = 0; i < status.generations.size(); ++i) {
    const GenerationStatus& generation = status.generations[i];
    ids += generation.ids;
    EXPECT_GE(generation.oldest, generation.newest);
    EXPECT_LT(generation.oldest, status.window + absl::Seconds(1000));
    EXPECT_GT(generation.ids, 0);
    EXPECT_GT(generation.fill, 0);
    EXPECT_LT(generation.fill, 1);
    if (i > 0) {
      EXPECT_GE(generation.oldest, status.generations[i - 1].oldest);
    }
  }
  EXPECT_GE(ids, status.ids);
  EXPECT_LE(ids, 2 * status.ids);
}

TEST(AdaptiveFbfTest, ABurstBeforeTimeBeginsKeepsTheTargetToo) {
  const uint64_t seed = TestSeed();
  for (const int64_t now : {kNoStreamTime, int64_t{5000}}) {
    MemoryBudget memory(int64_t{8} << 20);
    auto filter = Make(&memory, absl::Seconds(10), 1e-3);
    for (uint64_t i = 0; i < 20'000; ++i) {
      InsertOne(*filter, NumberedId(i, seed), now);
      if (i % 100 != 0) continue;
      ASSERT_LE(filter->Status().fpp.estimated, 1e-3) << i;
    }
    const FilterStatus burst = filter->Status();
    EXPECT_GT(burst.steps.size(), 4u);
    EXPECT_EQ(burst.limit_hits, 0);
    EXPECT_LE(burst.fpp.modelled, 0.9e-3);
    filter->AdvanceTo(6000);
    filter->AdvanceTo(15'000);
    for (uint64_t i = 0; i < 20'000; ++i) ASSERT_TRUE(IsContained(*filter, NumberedId(i, seed))) << i;
    filter->AdvanceTo(30'000);
    EXPECT_EQ(filter->Status().ids, 0);
  }
}

// The oracle: every id with its time. Loads of all sizes, bursts, gaps and small budgets; whenever N has
// changed, and now and then, each id that is not older than the horizon and the window is contained. Only
// at the memory limit the window is shorter than the horizon.
TEST(AdaptiveFbfTest, NoCopyPassesWithinTheHorizonAtAnyStep) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  std::set<StepKind> seen;
  for (int round = 0; round < 40; ++round) {
    const int64_t horizon = 1 + below(round % 4 == 0 ? 100 : 1'000'000);
    const int64_t limit = (int64_t{16} << 10) + below(round % 3 == 0 ? 20'000 : 1'000'000);
    MemoryBudget memory(limit);
    auto filter = Make(&memory, absl::Milliseconds(horizon), round % 5 == 0 ? 1e-6 : 1e-2);
    std::deque<std::pair<uint64_t, int64_t>> log;
    uint64_t next = 0;
    int64_t now = below(1'000'000) - 500'000;
    int past = 1;
    int64_t pace = 1;  // ids in a tenth of the horizon
    int64_t held = 0;  // by others on the same budget
    for (int step = 0; step < 12'000; ++step) {
      if (step % 1000 == 0) {
        pace = int64_t{1} << below(10);
        memory.Release(held);
        held = random() % 2 == 0 ? 0 : below(memory.limit_bytes() - memory.used_bytes() + 1);
        ASSERT_TRUE(memory.Reserve(held));
      }
      if (random() % 2000 == 0) now += below(2 * horizon);
      now += random() % 1000 == 0 ? horizon / 10 : below(horizon / (5 * pace) + 2);
      const uint64_t number = next++;
      if (TestAndInsertOne(*filter, NumberedId(number, seed), now) == Verdict::kUnique) {
        log.emplace_back(number, now);
      }
      while (!log.empty() && now - log.front().second > horizon) log.pop_front();
      ASSERT_LE(memory.used_bytes(), limit);
      if (step % 100 != 0 && step % 1000 > 30) continue;
      const FilterStatus status = filter->Status();
      ASSERT_EQ(status.memory_bytes + held, memory.used_bytes());
      for (const AdaptationStep& taken : status.steps) seen.insert(taken.kind);
      const bool is_short = status.limit_hits > 0;
      const int64_t covered = is_short ? absl::ToInt64Milliseconds(status.window) : horizon;
      if (!is_short) {
        ASSERT_GE(status.window, absl::Milliseconds(log.empty() ? 0 : now - log.front().second));
      }
      if (status.shape.past_generations == past && step % 500 != 0) continue;
      past = status.shape.past_generations;
      for (const auto& [id, time] : log) {
        // An id of the window's very first moment may have gone with the interval before.
        if (now - time >= covered && is_short) continue;
        ASSERT_TRUE(IsContained(*filter, NumberedId(id, seed)))
            << "round " << round << ": horizon " << horizon << ", inserted " << now - time << " ago";
      }
    }
    filter.reset();
    EXPECT_EQ(memory.used_bytes(), held);
    memory.Release(held);
  }
  EXPECT_TRUE(seen.contains(StepKind::kScaleUp));
  EXPECT_TRUE(seen.contains(StepKind::kScaleDown));
}

// A load that no step can meet, within a memory limit of sixteen filters.
TEST(AdaptiveFbfTest, AtTheMemoryLimitTheWindowGivesWay) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{16} << 10);
  auto filter = Make(&memory, absl::Seconds(10'000), 1e-3);
  for (int64_t second = 0; second < 30'000; ++second) {
    InsertOne(*filter, NumberedId(static_cast<uint64_t>(second), seed), second * 1000);
    ASSERT_LE(memory.used_bytes(), memory.limit_bytes());
  }
  const FilterStatus status = filter->Status();
  EXPECT_GT(status.limit_hits, 0);
  EXPECT_TRUE(std::any_of(status.steps.begin(), status.steps.end(),
                          [](const AdaptationStep& step) { return step.kind == StepKind::kUnfoldRefused; }));
  EXPECT_LE(status.fpp.modelled, 1e-3);
  EXPECT_LT(status.window, absl::Seconds(10'000));
  EXPECT_GT(status.window, absl::Seconds(2000));
}

// Two filters on one budget, of which the other takes what this one has counted on: two filters must do.
TEST(AdaptiveFbfTest, AnotherFilterMayTakeTheMemoryFirst) {
  const uint64_t seed = TestSeed();
  MemoryBudget memory(int64_t{16} << 10);
  auto filter = Make(&memory, absl::Seconds(100), 1e-3);
  const int64_t rest = memory.limit_bytes() - memory.used_bytes();
  ASSERT_TRUE(memory.Reserve(rest));
  for (uint64_t i = 0; i < 5000; ++i) {
    InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i) * 100);
    ASSERT_LE(memory.used_bytes(), memory.limit_bytes());
    ASSERT_TRUE(IsContained(*filter, NumberedId(i, seed)));
    ASSERT_TRUE(IsContained(*filter, NumberedId(i - std::min<uint64_t>(i, 1), seed))) << i;
  }
  const FilterStatus status = filter->Status();
  EXPECT_EQ(status.memory_bytes, 2 * 1024);
  EXPECT_TRUE(std::any_of(status.steps.begin(), status.steps.end(),
                          [](const AdaptationStep& step) { return step.kind == StepKind::kShortenWindow; }));
  memory.Release(rest);
}

TEST(AdaptiveFbfTest, NeedsRoomForTwoFilters) {
  MemoryBudget memory(2 * 1024);
  EXPECT_OK(AdaptiveFbf::Create({.memory = &memory}));
  ASSERT_TRUE(memory.Reserve(1));
  EXPECT_THAT(AdaptiveFbf::Create({.memory = &memory}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(memory.used_bytes(), 1);
  memory.Release(1);
}

// Ids that are inserted while the image is copied are not in what is restored, though their bits are in the
// arrays that are copied.
TEST(AdaptiveFbfTest, AnImageHasTheIdsOfItsMoment) {
  const uint64_t seed = TestSeed();
  constexpr uint64_t kBefore = 500;
  MemoryBudget memory(int64_t{64} << 20);
  auto filter = Make(&memory, absl::Seconds(100), 1e-6);
  for (uint64_t i = 0; i < kBefore; ++i) {
    InsertOne(*filter, NumberedId(i, seed), static_cast<int64_t>(i) * 100);
  }
  auto image = filter->BeginCopy();
  ASSERT_OK(image);
  for (uint64_t i = kBefore; i < 2 * kBefore; ++i) {
    InsertOne(*filter, NumberedId(i, seed), (kBefore - 1) * 100);
  }
  std::vector<std::string> copied;
  int64_t bytes = 0;
  for (const absl::Span<const char> span : image->memory) {
    std::string& to = copied.emplace_back(span.size(), '\0');
    ASSERT_TRUE(filter->CopyMemory(*image, span.first(64), to.data()));
    ASSERT_TRUE(filter->CopyMemory(*image, span.subspan(64), to.data() + 64));
    bytes += static_cast<int64_t>(span.size());
  }
  filter->AdvanceTo(1'000'000);
  EXPECT_FALSE(filter->CopyMemory(*image, image->memory[0], copied[0].data())) << "the filter has refreshed";

  // Under another limit, where filters begin with another size.
  MemoryBudget other(int64_t{16} << 20);
  auto restored = Make(&other, absl::Seconds(100), 1e-6);
  const auto places = restored->Restore(image->state, bytes);
  ASSERT_OK(places);
  ASSERT_EQ(places->size(), copied.size());
  for (size_t i = 0; i < copied.size(); ++i)
    std::copy(copied[i].begin(), copied[i].end(), (*places)[i].begin());
  EXPECT_TRUE(restored->Restored());
  EXPECT_EQ(other.used_bytes(), bytes);
  EXPECT_EQ(restored->Status().ids, static_cast<int64_t>(kBefore));
  for (uint64_t i = 0; i < 2 * kBefore; ++i) {
    const IdHash id = NumberedId(i, seed);
    Verdict verdict;
    restored->Contains({&id, 1}, {&verdict, 1});
    EXPECT_EQ(verdict == Verdict::kDuplicate, i < kBefore) << i;
  }

  for (const size_t cut : {size_t{0}, size_t{8}, image->state.size() - 8}) {
    auto damaged = Make(&other, absl::Seconds(100), 1e-6);
    EXPECT_THAT(damaged->Restore(image->state.substr(0, cut), bytes).status(),
                StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(Make(&other, absl::Seconds(100), 1e-6)->Restore(image->state, bytes + 8).status(),
              StatusIs(absl::StatusCode::kDataLoss));
  MemoryBudget small(int64_t{1} << 20);
  auto has_no_room = Make(&small, absl::Seconds(100), 1e-6);
  small.SetLimit(bytes - 1);
  EXPECT_THAT(has_no_room->Restore(image->state, bytes).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace lethe
