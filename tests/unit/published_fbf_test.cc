#include "src/published/published_fbf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "tests/support/filter_testing.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

class PublishedFbfTest : public testing::Test {
 protected:
  std::unique_ptr<PublishedFbf> Make(int past_generations, int64_t bits, int hashes, int64_t refresh_ms) {
    auto filter = PublishedFbf::Create({.past_generations = past_generations,
                                        .bits_per_generation = bits,
                                        .hashes = hashes,
                                        .refresh_period = absl::Milliseconds(refresh_ms),
                                        .memory = &memory_});
    EXPECT_OK(filter);
    return *std::move(filter);
  }

  MemoryBudget memory_{int64_t{256} << 20};
};

TEST_F(PublishedFbfTest, RefusesValuesOutOfRange) {
  const PublishedFbfOptions good = {.past_generations = 1,
                                    .bits_per_generation = 1,
                                    .hashes = 1,
                                    .refresh_period = absl::Milliseconds(1),
                                    .memory = &memory_};
  EXPECT_OK(PublishedFbf::Create(good));
  const auto refused = [&](auto change) {
    PublishedFbfOptions bad = good;
    change(bad);
    EXPECT_THAT(PublishedFbf::Create(bad).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  };
  refused([](PublishedFbfOptions& bad) { bad.past_generations = 0; });
  refused([](PublishedFbfOptions& bad) { bad.past_generations = INT32_MAX; });
  refused([](PublishedFbfOptions& bad) { bad.bits_per_generation = 0; });
  refused([](PublishedFbfOptions& bad) { bad.bits_per_generation = INT64_MAX; });
  refused([](PublishedFbfOptions& bad) { bad.hashes = 0; });
  refused([](PublishedFbfOptions& bad) { bad.hashes = 65; });
  refused([](PublishedFbfOptions& bad) { bad.refresh_period = absl::ZeroDuration(); });
  refused([](PublishedFbfOptions& bad) { bad.refresh_period = absl::InfiniteDuration(); });
  refused([](PublishedFbfOptions& bad) { bad.memory = nullptr; });
  EXPECT_EQ(memory_.used_bytes(), 0);
}

TEST_F(PublishedFbfTest, TakesItsArraysFromTheBudget) {
  MemoryBudget memory(1000);
  PublishedFbfOptions options = {.past_generations = 1,
                                 .bits_per_generation = 2560,
                                 .hashes = 3,
                                 .refresh_period = absl::Seconds(1),
                                 .memory = &memory};
  auto filter = PublishedFbf::Create(options);
  ASSERT_OK(filter);
  EXPECT_EQ(memory.used_bytes(), 960);
  EXPECT_THAT(PublishedFbf::Create(options).status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(memory.used_bytes(), 960);
  filter->reset();
  EXPECT_EQ(memory.used_bytes(), 0);
}

// An id of interval i is there to the end of interval i + N + 1, whatever its phase: for more than
// (N + 1) t, and not longer than (N + 2) t. Arrays are so empty that a false positive is out of question.
TEST_F(PublishedFbfTest, RetentionIsFromNPlus1ToNPlus2Periods) {
  const uint64_t seed = TestSeed();
  constexpr int64_t kPeriod = 40;
  for (const int past : {1, 2, 3, 5, 14, 30}) {
    for (int64_t phase = 0; phase < kPeriod; ++phase) {
      for (const int64_t begin : {int64_t{0}, int64_t{1'700'000'000'000}, int64_t{-1'000'000}}) {
        auto filter = Make(past, 4096, 12, kPeriod);
        filter->AdvanceTo(begin);
        const IdHash id = NumberedId(static_cast<uint64_t>(phase), seed);
        InsertOne(*filter, id, begin + phase);
        const int64_t gone = begin + (past + 2) * kPeriod;
        for (int64_t now = begin + phase; now < gone; now += 7) {
          filter->AdvanceTo(now);
          ASSERT_TRUE(IsContained(*filter, id))
              << "N=" << past << " phase=" << phase << " at " << now - begin;
        }
        filter->AdvanceTo(begin + phase + (past + 1) * kPeriod);
        EXPECT_TRUE(IsContained(*filter, id)) << "N=" << past << " phase=" << phase;
        filter->AdvanceTo(gone - 1);
        EXPECT_TRUE(IsContained(*filter, id)) << "N=" << past << " phase=" << phase;
        filter->AdvanceTo(gone);
        EXPECT_FALSE(IsContained(*filter, id)) << "N=" << past << " phase=" << phase;
        EXPECT_LE(gone - begin - phase, (past + 2) * kPeriod);
      }
    }
  }
}

TEST_F(PublishedFbfTest, TimeNeverGoesBack) {
  auto filter = Make(1, 4096, 8, 10);
  const IdHash early = NumberedId(1, 0);
  const IdHash late = NumberedId(2, 0);
  InsertOne(*filter, early, kNoStreamTime);
  EXPECT_TRUE(IsContained(*filter, early));
  EXPECT_EQ(filter->Status().window, absl::ZeroDuration());
  filter->AdvanceTo(105);  // the first time begins the count; nothing is forgotten
  EXPECT_EQ(filter->Status().refreshes, 0);
  filter->AdvanceTo(119);
  filter->AdvanceTo(kNoStreamTime);
  InsertOne(*filter, late, 3);  // counts as 119
  EXPECT_EQ(filter->Status().refreshes, 1);
  filter->AdvanceTo(129);
  EXPECT_TRUE(IsContained(*filter, early));
  filter->AdvanceTo(130);
  EXPECT_FALSE(IsContained(*filter, early));
  EXPECT_TRUE(IsContained(*filter, late));
  filter->AdvanceTo(140);
  EXPECT_FALSE(IsContained(*filter, late));
}

TEST_F(PublishedFbfTest, AGapInTimeEmptiesTheFilterAtOnce) {
  auto filter = Make(3, 4096, 8, 1);
  const std::vector<int64_t> times = {INT64_MIN + 1, -1'000'000'000'000'000, 0, 7, 1'700'000'000'000,
                                      INT64_MAX};
  int64_t most_refreshes = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    const IdHash id = NumberedId(i, 1);
    InsertOne(*filter, id, times[i]);
    const FilterStatus status = filter->Status();
    EXPECT_EQ(status.ids, 1) << times[i];
    EXPECT_TRUE(IsContained(*filter, id));
    EXPECT_LE(status.refreshes, most_refreshes);
    EXPECT_GE(status.window, absl::ZeroDuration());
    most_refreshes = status.refreshes + 5;
  }
}

TEST_F(PublishedFbfTest, StatusSaysWhatIsCovered) {
  auto filter = Make(2, 1000, 3, 100);
  for (int64_t now = 1050; now < 3000; now += 10) {
    InsertOne(*filter, NumberedId(static_cast<uint64_t>(now), 2), now);
    const FilterStatus status = filter->Status();
    EXPECT_EQ(status.shape.past_generations, 2);
    EXPECT_EQ(status.shape.refresh_period, absl::Milliseconds(100));
    EXPECT_EQ(status.shape.bits_per_generation, 1000);
    EXPECT_EQ(status.shape.bits_per_id, 3);
    EXPECT_EQ(status.refreshes, now / 100 - 10);
    const int64_t oldest = std::max<int64_t>(1050, (now / 100 - 3) * 100);
    EXPECT_EQ(status.window, absl::Milliseconds(now - oldest));
    EXPECT_EQ(status.ids, (now - oldest) / 10 + 1);
  }
}

// The checks, one by one. An id that was inserted in the interval of age j is in the generations of age j
// and j + 1 and in no others, so only one check can see it: the future alone for j = 0, the pair
// (j, j + 1) for 1 <= j <= N, the oldest alone for j = N + 1.
TEST_F(PublishedFbfTest, EveryCheckIsMade) {
  for (const int past : {1, 2, 3, 8}) {
    auto filter = Make(past, 1 << 16, 10, 10);
    const IdHash id = NumberedId(77, 3);
    InsertOne(*filter, id, 0);
    for (int age = 0; age <= past + 1; ++age) {
      filter->AdvanceTo(age * 10);
      EXPECT_TRUE(IsContained(*filter, id)) << "N=" << past << ", age " << age;
    }
    filter->AdvanceTo((past + 2) * 10);
    EXPECT_FALSE(IsContained(*filter, id));
  }
}

// Ids whose bits are all in one place (b = 0 makes the steps small beside 2^64 / m), and one that has its
// two bits in both of these places.
constexpr uint64_t kPlaces = 1024;
constexpr uint64_t kPlace = (uint64_t{1} << 54);  // 2^64 / kPlaces
IdHash OnePlace(uint64_t place) { return {.a = place * kPlace + kPlace / 4, .b = 0}; }
IdHash TwoPlaces(uint64_t first, uint64_t second) {
  return {.a = first * kPlace + kPlace / 4, .b = (second - first) * kPlace};
}

// One generation alone holds both bits: p of its own interval, q of the next newer one; each neighbour
// has only one of them. As the states age, the id must stay out of the set until that generation is the
// oldest, which is checked alone; and so are, at a distance of two, two generations that are no pair.
TEST_F(PublishedFbfTest, MiddleGenerationsAndDistantPairsAreNotChecked) {
  const IdHash p = OnePlace(100);
  const IdHash q = OnePlace(900);
  const IdHash both = TwoPlaces(100, 900);
  for (const int past : {1, 2, 3, 8}) {
    for (const bool distant : {false, true}) {
      auto filter = Make(past, kPlaces, 2, 10);
      // Intervals 0 and 1 put both bits in generation 0; 2 and 3 in generation 2, and 1 and 2 have q both.
      InsertOne(*filter, p, 0);
      InsertOne(*filter, q, 10);
      ASSERT_FALSE(IsContained(*filter, both)) << "the present alone";
      int now = 10;
      if (distant) {
        InsertOne(*filter, q, 20);
        EXPECT_EQ(IsContained(*filter, both), past == 1) << "generation 0, N=" << past;
        InsertOne(*filter, p, 30);
        EXPECT_EQ(IsContained(*filter, both), past == 2) << "present and past 2, N=" << past;
        now = 30;
      }
      for (now += 10; now < (past + 1) * 10; now += 10) {
        filter->AdvanceTo(now);
        EXPECT_FALSE(IsContained(*filter, both)) << "N=" << past << " at " << now;
      }
      const int last_generation = distant ? 2 : 0;
      filter->AdvanceTo((last_generation + past + 1) * 10);
      EXPECT_TRUE(IsContained(*filter, both)) << "the oldest alone, N=" << past;
      filter->AdvanceTo((last_generation + past + 2) * 10);
      EXPECT_FALSE(IsContained(*filter, both)) << "N=" << past;
    }
  }
}

// A false positive is not stored: its own interval's generations are as they were.
TEST_F(PublishedFbfTest, TestAndInsertStoresOnlyWhatItCallsUnique) {
  auto filter = Make(1, kPlaces, 2, 10);
  EXPECT_EQ(TestAndInsertOne(*filter, OnePlace(1), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, OnePlace(2), 0), Verdict::kUnique);
  EXPECT_EQ(TestAndInsertOne(*filter, TwoPlaces(1, 2), 5), Verdict::kDuplicate);
  EXPECT_EQ(filter->Status().ids, 2);
  // A duplicate does not renew its age, so all are gone together; an insertion does.
  EXPECT_EQ(TestAndInsertOne(*filter, OnePlace(1), 10), Verdict::kDuplicate);
  InsertOne(*filter, OnePlace(2), 10);
  filter->AdvanceTo(30);
  EXPECT_FALSE(IsContained(*filter, OnePlace(1)));
  EXPECT_TRUE(IsContained(*filter, OnePlace(2)));
}

TEST_F(PublishedFbfTest, BatchesAreTheSameAsSingleCalls) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  auto single = Make(3, 2000, 4, 50);
  auto batched = Make(3, 2000, 4, 50);
  int64_t now = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<TimedId> ids(random() % 40);
    std::vector<IdHash> hashes;
    for (TimedId& timed : ids) {
      now += static_cast<int64_t>(random() % 5);
      timed = {.id = NumberedId(random() % 400, seed), .stream_time_ms = now};
      hashes.push_back(timed.id);
    }
    std::vector<Verdict> verdicts(ids.size());
    batched->TestAndInsert(ids, absl::MakeSpan(verdicts));
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(TestAndInsertOne(*single, ids[i].id, ids[i].stream_time_ms), verdicts[i]);
    }
    batched->Contains(hashes, absl::MakeSpan(verdicts));
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(IsContained(*single, hashes[i]), verdicts[i] == Verdict::kDuplicate);
    }
  }
}

// Whatever the shape, the load (overfull arrays too) and the gaps in time: an id that was inserted, or
// judged unique, not more than (N + 1) t ago is contained.
TEST_F(PublishedFbfTest, NoFalseNegativeWithinTheWindow) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  for (int round = 0; round < 150; ++round) {
    const int past = static_cast<int>(1 + below(12));
    const int64_t period = 1 + below(round % 2 == 0 ? 20 : 2000);
    auto filter = Make(past, 1 + below(1 << (1 + round % 15)), static_cast<int>(1 + below(10)), period);
    const int64_t horizon = (past + 1) * period;
    std::deque<std::pair<IdHash, int64_t>> stored;
    int64_t now = below(1'000'000) - 500'000;
    for (uint64_t step = 0; step < 600; ++step) {
      switch (random() % 40) {
        case 0:
          now += below(static_cast<uint64_t>(3 * horizon));
          break;
        case 1:
          now += below(static_cast<uint64_t>(2 * period));
          break;
        default:
          now += below(static_cast<uint64_t>(period) / 8 + 2);
      }
      const IdHash id = NumberedId(step, seed + static_cast<uint64_t>(round));
      if (random() % 2 == 0) {
        InsertOne(*filter, id, now);
        stored.emplace_back(id, now);
      } else if (TestAndInsertOne(*filter, id, now) == Verdict::kUnique) {
        stored.emplace_back(id, now);
      }
      while (!stored.empty() && now - stored.front().second > horizon) stored.pop_front();
      if (step % 20 != 0) continue;
      EXPECT_GE(filter->Status().window,
                absl::Milliseconds(stored.empty() ? 0 : now - stored.front().second));
      for (const auto& [stored_id, time] : stored) {
        ASSERT_TRUE(IsContained(*filter, stored_id))
            << "N=" << past << " t=" << period << " inserted at " << time << ", now " << now;
      }
    }
  }
}

// The rate in the middle of an interval, over several filters, against the figures that they report, and
// beside what Equation 3 makes of the same loads. The bounds are kSigmas of the sampling of probes, plus
// those of what each filter's fill may differ from its mean: under 1.5 % of the rate for one filter of this
// size (k times the fill's 0.2 %, and some for the neighbours' common part), less by the root of the number
// of filters.
TEST_F(PublishedFbfTest, MeasuredRateIsTheModelsWithSharedIntervalsAndAboveEquation3) {
  const uint64_t seed = TestSeed();
  constexpr int kPast = 8;
  constexpr uint64_t kIdsAnInterval = 4000;
  constexpr uint64_t kIds = (kPast + 1) * kIdsAnInterval + kIdsAnInterval / 2;
  constexpr int kFilters = 6;
  constexpr uint64_t kProbes = 250'000;
  double measured = 0;
  double estimated = 0;
  double modelled = 0;
  for (uint64_t round = 0; round < kFilters; ++round) {
    auto filter = Make(kPast, 100'000, 5, 1000);
    for (uint64_t i = 0; i < kIds; ++i) {
      InsertOne(*filter, NumberedId(i, seed + round), static_cast<int64_t>(i / (kIdsAnInterval / 1000)));
    }
    const FilterStatus status = filter->Status();
    ASSERT_EQ(status.ids, static_cast<int64_t>(kIds));
    estimated += status.fpp.estimated / kFilters;
    modelled += status.fpp.modelled / kFilters;
    measured += MeasuredFpp(*filter, 1'000'000, kProbes, seed + round) / kFilters;
  }
  std::vector<double> generation_fpp(kPast + 2, BloomFpp(2 * kIdsAnInterval, 100'000, 5));
  generation_fpp[0] = BloomFpp(kIdsAnInterval / 2.0, 100'000, 5);
  generation_fpp[1] = BloomFpp(kIdsAnInterval * 1.5, 100'000, 5);
  const double equation3 = PublishedFpp(generation_fpp);
  const double sampling = BinomialBound(modelled, double{kProbes} * kFilters);
  const double fills = kSigmas * 0.015 * modelled / std::sqrt(kFilters);
  EXPECT_NEAR(measured, modelled, sampling + fills);
  EXPECT_NEAR(measured, estimated, sampling);  // made from these filters' own bits
  EXPECT_LT(equation3, measured - sampling - fills);
  EXPECT_NEAR(modelled, 0.0065, 0.00005);
  EXPECT_NEAR(equation3, 0.0040, 0.00005);
}

// What the filter reports as modelled is what is measured, whatever its generations hold: full ones, and
// loads that rise, fall, stop and burst from interval to interval. Within a tenth, or kSigmas of what chance
// does where that is more: to the probing, and to one filter's rate by the fill of its generations, of which
// the standard deviation is under 0.3 % for each bit that an id sets (1.5 % for five, as above).
TEST_F(PublishedFbfTest, MeasuredRateIsTheModelledOneUnderEvenAndUnevenLoads) {
  const uint64_t seed = TestSeed();
  const struct {
    const char* name;
    int64_t bits;
    int hashes;
    std::vector<int> interval_ids;  // in the order of time
  } loads[] = {
      {"full", 100'000, 5, std::vector<int>(10, 4000)},
      {"full and for a target of 1e-4", 100'000, 10, std::vector<int>(10, 3000)},
      {"rising", 100'000, 5, {50, 100, 200, 400, 800, 1600, 3200, 4500, 6000, 8000}},
      {"falling", 100'000, 5, {8000, 6000, 4500, 3200, 1600, 800, 400, 200, 100, 50}},
      {"stopping", 100'000, 5, {5000, 5000, 0, 0, 5000, 5000, 5000, 0, 5000, 2500}},
      {"one burst in the middle", 100'000, 5, {500, 500, 500, 500, 12'000, 500, 500, 500, 500, 500}},
      {"every second interval", 100'000, 3, {6000, 100, 6000, 100, 6000, 100, 6000, 100, 6000, 100}},
      {"crowded", 50'000, 4, std::vector<int>(10, 6000)},
  };
  for (const auto& load : loads) {
    SCOPED_TRACE(load.name);
    auto filter = Make(8, load.bits, load.hashes, 1000);
    uint64_t number = 0;
    for (size_t interval = 0; interval < load.interval_ids.size(); ++interval) {
      const auto now = static_cast<int64_t>(interval) * 1000;
      filter->AdvanceTo(now);
      for (int i = 0; i < load.interval_ids[interval]; ++i) {
        InsertOne(*filter, NumberedId(number++, seed), now);
      }
    }
    constexpr uint64_t kProbes = 1'000'000;
    const double measured = MeasuredFpp(*filter, 1'000'000, kProbes, seed);
    const double modelled = filter->Status().fpp.modelled;
    const double chance =
        std::hypot(BinomialBound(modelled, kProbes), kSigmas * 0.003 * load.hashes * modelled);
    EXPECT_NEAR(measured, modelled, std::max(0.1 * modelled, chance)) << "LETHE_SEED=" << seed;
    EXPECT_GT(modelled * kProbes, 20) << "nothing was learnt";
  }
}

// The estimate holds for other shapes, phases and unsteady loads: it knows only the bits.
TEST_F(PublishedFbfTest, MeasuredRateIsTheEstimatedOne) {
  const uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  for (uint64_t round = 0; round < 8; ++round) {
    const int past = static_cast<int>(1 + random() % 12);
    const int hashes = static_cast<int>(1 + random() % 8);
    auto filter = Make(past, static_cast<int64_t>(20'000 + random() % 100'000), hashes, 100);
    const uint64_t ids = 1000 + random() % 4000;
    uint64_t number = 0;
    for (int64_t interval = 0; interval < past + 3; ++interval) {
      const uint64_t of_this = random() % ids;
      for (uint64_t i = 0; i < of_this; ++i) InsertOne(*filter, NumberedId(number++, seed), interval * 100);
    }
    constexpr uint64_t kProbes = 300'000;
    const double estimated = filter->Status().fpp.estimated;
    const double measured = MeasuredFpp(*filter, 1'000'000, kProbes, seed);
    EXPECT_NEAR(measured, estimated, BinomialBound(estimated, kProbes)) << "N=" << past << " k=" << hashes;
  }
}

}  // namespace
}  // namespace lethe
