// The audit through the stage: around filters that are right, or wrong at known rates.
#include "src/fpp/audit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/faulty_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

constexpr absl::Duration kHorizon = absl::Seconds(1000);
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class AuditTest : public testing::TestWithParam<int> {
 protected:
  void Open(double share, FaultyRates rates = {}, int64_t memory_limit_bytes = 1 << 30) {
    partition_.reset();
    auto stage = DedupStage::Create({.horizon = kHorizon,
                                     .memory_limit_bytes = memory_limit_bytes,
                                     .shards = GetParam(),
                                     .audit_share = share},
                                    FaultyFilter::Factory(ExactFilter::Factory(), rates));
    ASSERT_OK(stage);
    stage_ = *std::move(stage);
    partition_ = *stage_->Open("p");
  }

  std::vector<Event> Events(int first, int count, absl::string_view payload = {}) {
    std::vector<Event> events;
    for (int i = first; i < first + count; ++i) {
      events.push_back({.id = partition_->Hash(absl::StrCat(i)), .time = kStart, .payload = payload});
    }
    return events;
  }

  void Judge(const std::vector<Event>& events, Transaction* transaction = nullptr) {
    std::vector<Verdict> verdicts(events.size());
    const absl::Span<Verdict> answers = absl::MakeSpan(verdicts);
    EXPECT_OK(
        (transaction == nullptr ? partition_->Judge(events, answers) : transaction->Judge(events, answers)));
  }

  void MoveTo(absl::Time time) {
    for (int i = 0; i < 101; ++i) EXPECT_OK(partition_->Observe(time));
    Begin().Commit();  // tells every shard
  }

  Transaction Begin() { return *partition_->Begin(); }
  AuditStatus Status() { return partition_->Status().audit; }

  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
};

INSTANTIATE_TEST_SUITE_P(Shards, AuditTest, testing::Values(1, 16));

TEST_P(AuditTest, FindsNothingWrongWithAFilterThatIsRight) {
  Open(1);
  MoveTo(kStart);
  Judge(Events(0, 3000));
  Judge(Events(0, 1000));
  Transaction transaction = Begin();
  Judge(Events(2500, 2000), &transaction);  // 500 copies
  Judge(Events(4000, 1000), &transaction);  // 500 copies of what is pending
  transaction.Commit();
  const AuditStatus status = Status();
  EXPECT_EQ(status.share, 1);
  EXPECT_EQ(status.events, 7000);
  EXPECT_EQ(status.fresh, 5000);
  EXPECT_EQ(status.copies, 2000);
  EXPECT_EQ(status.false_drops, 0);
  EXPECT_EQ(status.missed, 0);
  EXPECT_EQ(status.compared, 0);
  EXPECT_EQ(status.ids, 5000);
  EXPECT_EQ(status.fpp_measured, 0);
  EXPECT_EQ(status.fpp_low, 0);
  EXPECT_NEAR(status.fpp_high, -std::log(0.005) / 5000, 1e-6);
}

TEST_P(AuditTest, CountsEveryFalseDropAndMiss) {
  const FaultyRates rates{.false_positives = 0.02, .losses = 0.03};
  Open(1, rates);
  int64_t false_drops = 0, missed = 0;
  for (const Event& event : Events(0, 10'000)) {
    false_drops += FaultyFilter::IsFalsePositive(event.id, rates);
    missed += FaultyFilter::IsLost(event.id, rates);
  }
  Judge(Events(0, 10'000));
  EXPECT_EQ(Status().false_drops, false_drops);
  EXPECT_EQ(Status().missed, 0);
  Judge(Events(0, 10'000));  // what was lost is no copy, and not lost twice
  EXPECT_EQ(Status().false_drops, false_drops);
  EXPECT_EQ(Status().fresh, 10'000);
  EXPECT_EQ(Status().copies, 10'000 - false_drops);
  EXPECT_EQ(Status().missed, missed);
  EXPECT_EQ(Status().events, 20'000);
}

TEST_P(AuditTest, ASampleTellsTheRateOfAll) {
  std::mt19937_64 random(TestSeed());
  const FaultyRates rates{.false_positives = 0.01};
  Open(1.0 / 16, rates);
  std::vector<Event> events(200'000);
  const uint32_t key_check = partition_->Hash("").key_check;
  for (Event& event : events) event = {.id = {{random(), random()}, key_check}, .time = kStart};
  Judge(events);
  const AuditStatus status = Status();
  EXPECT_EQ(status.share, 1.0 / 16);
  // 12,500 +- 5 standard deviations of 108 (once in 1.7 million).
  EXPECT_NEAR(static_cast<double>(status.events), 12'500, 540);
  // 125 +- 5 of 11, and a little for the skew.
  EXPECT_NEAR(static_cast<double>(status.false_drops), 125, 60);
  EXPECT_DOUBLE_EQ(status.fpp_measured,
                   static_cast<double>(status.false_drops) / static_cast<double>(status.fresh));
  EXPECT_LT(status.fpp_low, status.fpp_measured);
  EXPECT_GT(status.fpp_high, status.fpp_measured);
  EXPECT_LT(status.fpp_high, 0.02);
}

TEST_P(AuditTest, AnAbortTakesBackWhatWasCountedAndRemembered) {
  Open(1, {.false_positives = 0.02});
  Judge(Events(0, 1000));
  const AuditStatus before = Status();
  {
    Transaction transaction = Begin();
    Judge(Events(0, 3000, "x"), &transaction);
    Judge(Events(0, 3000, "y"), &transaction);
  }
  EXPECT_EQ(Status().events, before.events);
  EXPECT_EQ(Status().fresh, before.fresh);
  EXPECT_EQ(Status().false_drops, before.false_drops);
  EXPECT_EQ(Status().copies, before.copies);
  EXPECT_EQ(Status().payload_mismatches, 0);
  EXPECT_EQ(Status().ids, before.ids);
}

TEST_P(AuditTest, AForgottenEventIsFreshAgain) {
  Open(1);
  Transaction transaction = Begin();
  EXPECT_OK(transaction.Judge("a", kStart));
  EXPECT_OK(transaction.Forget(partition_->Hash("a")));
  EXPECT_OK(transaction.Judge("a", kStart));
  EXPECT_OK(transaction.Forget(partition_->Hash("a")));
  transaction.Commit();
  EXPECT_EQ(Status().fresh, 2);
  EXPECT_EQ(Status().copies, 0);
  EXPECT_EQ(Status().ids, 0);
}

TEST_P(AuditTest, ReplayIsRememberedAndNotJudged) {
  Open(1);
  ASSERT_OK(partition_->Replay(Events(0, 1000, "x")));
  EXPECT_EQ(Status().events, 0);
  EXPECT_EQ(Status().ids, 1000);
  Judge(Events(0, 1000, "y"));
  EXPECT_EQ(Status().copies, 1000);
  EXPECT_EQ(Status().missed, 0);
  EXPECT_EQ(Status().payload_mismatches, 1000);
}

TEST_P(AuditTest, BetweenHorizonAndFadingNothingIsLearnt) {
  const FaultyRates all_duplicate{.false_positives = 1};
  Open(1, all_duplicate);
  MoveTo(kStart);
  ASSERT_OK(partition_->Replay(Events(0, 100)));
  const auto judged_after = [&](absl::Duration age) {
    MoveTo(kStart + age);
    const AuditStatus before = Status();
    Judge(Events(0, 100));
    const AuditStatus after = Status();
    EXPECT_EQ(after.events - before.events, 100);
    return std::pair(after.copies - before.copies, after.false_drops - before.false_drops);
  };
  EXPECT_EQ(judged_after(kHorizon), std::pair(int64_t{100}, int64_t{0}));
  EXPECT_EQ(judged_after(kHorizon + absl::Milliseconds(1)), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(judged_after(1.25 * kHorizon), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(judged_after(1.25 * kHorizon + absl::Milliseconds(1)), std::pair(int64_t{0}, int64_t{100}));
}

TEST_P(AuditTest, AnIdIsOldByTheTimeThatTheFilterHasReached) {
  // In a transaction the filter stands still, and may still hold what is long over by the event's time.
  Open(1);
  MoveTo(kStart);
  Judge(Events(0, 100));
  Transaction transaction = Begin();
  for (int i = 0; i < 101; ++i) EXPECT_OK(transaction.Observe(kStart + 10 * kHorizon));
  Judge(Events(0, 100), &transaction);
  transaction.Commit();
  EXPECT_EQ(Status().false_drops, 0);
  EXPECT_EQ(Status().missed, 0);
  EXPECT_EQ(Status().copies, 0);
}

TEST_P(AuditTest, ComparesPayloadsOfCopies) {
  Open(1);
  Judge(Events(0, 100, "one"));
  Judge(Events(100, 100));  // without a payload
  Judge(Events(0, 200, "one"));
  EXPECT_EQ(Status().compared, 100);
  EXPECT_EQ(Status().payload_mismatches, 0);
  Judge(Events(0, 200, "two"));
  EXPECT_EQ(Status().compared, 200);
  EXPECT_EQ(Status().payload_mismatches, 100);
  Judge(Events(0, 100, ""));  // empty, and not absent
  EXPECT_EQ(Status().payload_mismatches, 200);
  Transaction transaction = Begin();
  Judge(Events(500, 50, "one"), &transaction);
  Judge(Events(500, 50, "two"), &transaction);
  transaction.Commit();
  EXPECT_EQ(Status().payload_mismatches, 250);
}

TEST_P(AuditTest, ForgetsWhatTheFilterForgotBeforeItGrows) {
  Open(1);
  int64_t most = 0;
  for (int round = 0; round < 60; ++round) {
    MoveTo(kStart + round * kHorizon);
    Judge(Events(1000 * round, 1000));
    most = std::max(most, Status().ids);
  }
  EXPECT_EQ(Status().fresh, 60'000);
  EXPECT_EQ(Status().missed, 0);
  EXPECT_LE(most, 20'000);
  EXPECT_LE(Status().memory_bytes, 48 * 16 * 2048);
}

// No id waits while the whole set is moved or looked through: the set is in parts, and takes or looks through
// one of them.
TEST(AuditAloneTest, GrowsAndForgetsPartByPart) {
  constexpr int64_t kMostBytesAtOnce = 3 * 48 * 512 / 2;
  MemoryBudget for_filter(ExactFilter::kBytes);
  MemoryBudget memory(int64_t{1} << 30);
  const auto filter = *ExactFilter::Factory()({.horizon = kHorizon, .memory = &for_filter});
  Audit audit(1, kHorizon, filter.get(), &memory, HashKey());
  std::mt19937_64 random(TestSeed());
  int64_t most_ids = 0;
  for (int64_t i = 0; i < 200'000; ++i) {
    const AuditStatus before = audit.Status();
    const TimedId timed = {.id = {.a = random(), .b = random()}, .stream_time_ms = 10 * i};
    audit.AdvanceTo(timed.stream_time_ms);
    audit.Judged(timed, true, {});
    const AuditStatus after = audit.Status();
    ASSERT_LE(after.memory_bytes - before.memory_bytes, kMostBytesAtOnce) << i;
    ASSERT_GE(after.ids - before.ids, -512) << i;
    ASSERT_EQ(memory.used_bytes(), after.memory_bytes) << i;
    most_ids = std::max(most_ids, after.ids);
  }
  // A horizon and a quarter has 125,000 of them.
  EXPECT_GE(most_ids, 125'000);
  EXPECT_LE(audit.Status().memory_bytes, 200'000 * 48 * 2);
  EXPECT_EQ(audit.Status().fresh, 200'000);
}

TEST_P(AuditTest, HalvesItsShareWhereMemoryIsShort) {
  const int64_t limit = std::max<int64_t>(8, GetParam() * 8 / 7 + 1) * ExactFilter::kBytes;
  const int64_t for_audit = limit / 8;
  const FaultyRates rates{.false_positives = 0.02, .losses = 0.02};
  Open(1, rates, limit);
  int64_t missed_of_all = 0;
  for (int first = 0; first < 200'000; first += 5000) {
    const std::vector<Event> events = Events(first, 5000);
    for (const Event& event : events) missed_of_all += FaultyFilter::IsLost(event.id, rates);
    Judge(events);
    Judge(events);
    ASSERT_LE(stage_->memory().used_bytes(), stage_->memory().limit_bytes());
  }
  const AuditStatus status = Status();
  EXPECT_LT(status.share, 0.5);
  EXPECT_GT(status.share, 0.01);
  EXPECT_LE(status.memory_bytes, for_audit);
  EXPECT_GT(status.missed, 0);
  EXPECT_LT(status.missed, missed_of_all);
  // Both rates are still right: 0.02 +- 5 standard deviations and more.
  EXPECT_NEAR(status.fpp_measured, 0.02, 0.006);
  EXPECT_NEAR(static_cast<double>(status.missed) / static_cast<double>(status.copies), 0.02, 0.006);
  partition_.reset();
  EXPECT_EQ(stage_->memory().used_bytes(), 0);
}

TEST(AuditAloneTest, WithoutAnyMemoryItIsOff) {
  MemoryBudget for_filter(ExactFilter::kBytes);
  MemoryBudget none(0);
  const auto filter = *ExactFilter::Factory()({.horizon = kHorizon, .memory = &for_filter});
  Audit audit(1, kHorizon, filter.get(), &none, HashKey());
  for (uint64_t i = 0; i < 1000; ++i) {
    const TimedId timed = {.id = {.a = i, .b = i}, .stream_time_ms = 0};
    if (audit.Audits(timed.id)) audit.Judged(timed, true, {});
  }
  EXPECT_EQ(audit.Status().share, 0);
  EXPECT_EQ(audit.Status().ids, 0);
  EXPECT_EQ(audit.Status().memory_bytes, 0);
}

TEST_P(AuditTest, AShareThatIsNoneIsItsNearerEnd) {
  const auto share = [&](double wanted) {
    Open(wanted);
    return Status().share;
  };
  EXPECT_EQ(share(-1), 0);
  EXPECT_EQ(share(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(share(7), 1);
  EXPECT_EQ(share(1.0 / 256), 1.0 / 256);
  EXPECT_EQ(share(1e-9), 1.0 / 65'536);
  Open(0);
  Judge(Events(0, 1000));
  EXPECT_EQ(Status().events, 0);
  EXPECT_EQ(Status().fpp_high, 1);
}

// Against a filter that is exact, no history of transactions, aborts, replays and times may look wrong.
TEST_P(AuditTest, IsNeverWrongItself) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20; ++round) {
    Open(random() % 2 == 0 ? 1 : 0.25);
    int64_t clock_ms = absl::ToUnixMillis(kStart);
    for (int step = 0; step < 60; ++step) {
      std::vector<Event> events(random() % 200);
      for (Event& event : events) {
        clock_ms += static_cast<int64_t>(random() % (step % 10 == 0 ? 100'000 : 200));
        event = {.id = partition_->Hash(absl::StrCat(random() % 3000)),
                 .time = absl::FromUnixMillis(clock_ms)};
      }
      switch (random() % 4) {
        case 0:
          Judge(events);
          break;
        case 1:
          ASSERT_OK(partition_->Replay(events));
          break;
        default: {
          Transaction transaction = Begin();
          Judge(events, &transaction);
          if (!events.empty()) {
            EXPECT_OK(transaction.Forget(events[0].id));
          }
          Judge(events, &transaction);
          if (random() % 2 == 0) transaction.Commit();
        }
      }
      ASSERT_EQ(Status().false_drops, 0) << "round " << round << ", step " << step;
      ASSERT_EQ(Status().missed, 0) << "round " << round << ", step " << step;
    }
    EXPECT_GT(Status().copies, 0);
    EXPECT_GT(Status().fresh, 0);
  }
}

}  // namespace
}  // namespace lethe
