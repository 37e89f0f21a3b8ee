// The second opinion in a stage, on top of a filter that is wrong at a known rate: every verdict can be
// foretold.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lethe/stage.h"
#include "tests/support/exact_filter.h"
#include "tests/support/faulty_filter.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

constexpr absl::Duration kHorizon = absl::Seconds(1000);
constexpr FaultyRates kRates = {.false_positives = 0.1};
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class SecondOpinionTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { Open(int64_t{64} << 20); }

  void Open(int64_t memory_limit_bytes, int shards = 4) {
    partition_.reset();
    auto stage = DedupStage::Create({.horizon = kHorizon,
                                     .memory_limit_bytes = memory_limit_bytes,
                                     .shards = shards,
                                     .second_opinion = SecondOpinion::kOpposite,
                                     .pass_suspects = passes(),
                                     .audit_share = 1,
                                     .hash_seed = 7},
                                    FaultyFilter::Factory(ExactFilter::Factory(), kRates));
    ASSERT_TRUE(stage.ok()) << stage.status();
    stage_ = *std::move(stage);
    auto partition = stage_->Open("p");
    ASSERT_TRUE(partition.ok()) << partition.status();
    partition_ = *std::move(partition);
  }

  bool passes() const { return GetParam(); }
  Event Numbered(uint64_t number, absl::Time time = kStart) const {
    return {.id = partition_->Hash(absl::StrCat("id", number)), .time = time};
  }
  bool IsFalsePositive(uint64_t number) const {
    return FaultyFilter::IsFalsePositive(Numbered(number).id, kRates);
  }
  uint64_t FalsePositive() const {
    uint64_t number = 0;
    while (!IsFalsePositive(number)) ++number;
    return number;
  }
  Verdict Judge(uint64_t number, absl::Time time = kStart) {
    return *partition_->Judge(absl::StrCat("id", number), time);
  }

  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
};

INSTANTIATE_TEST_SUITE_P(, SecondOpinionTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Pass" : "Drop"; });

TEST_P(SecondOpinionTest, ASuspectIsRememberedIfItIsPassed) {
  const uint64_t number = FalsePositive();
  EXPECT_EQ(Judge(number), Verdict::kSuspect);
  EXPECT_EQ(Judge(number), passes() ? Verdict::kDuplicate : Verdict::kSuspect);
  EXPECT_EQ(partition_->Status().suspects, passes() ? 1 : 2);
  EXPECT_EQ(partition_->Status().duplicates, passes() ? 1 : 0);
  EXPECT_EQ(partition_->Status().second_opinion.ids, passes() ? 1 : 0);
}

TEST_P(SecondOpinionTest, ThePolicyMayChange) {
  const uint64_t number = FalsePositive();
  EXPECT_EQ(Judge(number), Verdict::kSuspect);
  ASSERT_TRUE(partition_->SetPassSuspects(!passes()).ok());
  const Verdict then = passes() ? Verdict::kDuplicate : Verdict::kSuspect;  // it was passed before, or is now
  EXPECT_EQ(Judge(number), then);
  EXPECT_EQ(Judge(number), Verdict::kDuplicate);
}

// A batch that holds a suspect twice.
TEST_P(SecondOpinionTest, InABatch) {
  const uint64_t number = FalsePositive();
  const std::vector<Event> events(3, Numbered(number));
  std::vector<Verdict> verdicts(3);
  EXPECT_TRUE(partition_->Judge(events, absl::MakeSpan(verdicts)).ok());
  const Verdict again = passes() ? Verdict::kDuplicate : Verdict::kSuspect;
  EXPECT_EQ(verdicts, (std::vector<Verdict>{Verdict::kSuspect, again, again}));
}

TEST_P(SecondOpinionTest, AnAbortForgetsSuspects) {
  const uint64_t number = FalsePositive();
  for (int i = 0; i < 2; ++i) {
    auto transaction = *partition_->Begin();
    EXPECT_EQ(*transaction.Judge(absl::StrCat("id", number), kStart), Verdict::kSuspect);
    EXPECT_EQ(*transaction.Judge(absl::StrCat("id", number), kStart),
              passes() ? Verdict::kDuplicate : Verdict::kSuspect);
    EXPECT_EQ(partition_->Status().suspects, 0);
    transaction.Abort();
  }
  EXPECT_EQ(partition_->Status().second_opinion.ids, 0);
  auto transaction = *partition_->Begin();
  EXPECT_EQ(*transaction.Judge(absl::StrCat("id", number), kStart), Verdict::kSuspect);
  transaction.Commit();
  EXPECT_EQ(partition_->Status().suspects, 1);
  EXPECT_EQ(partition_->Status().unique, 0);
  EXPECT_EQ(Judge(number), passes() ? Verdict::kDuplicate : Verdict::kSuspect);
}

TEST_P(SecondOpinionTest, ASuspectCanBeTakenBack) {
  const uint64_t number = FalsePositive();
  auto transaction = *partition_->Begin();
  EXPECT_EQ(*transaction.Judge(absl::StrCat("id", number), kStart), Verdict::kSuspect);
  transaction.Forget(Numbered(number).id);
  EXPECT_EQ(*transaction.Judge(absl::StrCat("id", number), kStart), Verdict::kSuspect);
  transaction.Commit();
  EXPECT_EQ(partition_->Status().suspects, passes() ? 1 : 2);
  EXPECT_EQ(partition_->Status().unique, 0);
}

TEST_P(SecondOpinionTest, AReplayIsRememberedByBoth) {
  std::vector<Event> events;
  for (uint64_t i = 0; i < 1000; ++i) events.push_back(Numbered(i));
  ASSERT_TRUE(partition_->Replay(events).ok());
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(Judge(i), Verdict::kDuplicate);
}

// In one step, in transactions that commit or abort, and in replays.
TEST_P(SecondOpinionTest, WithRoomEnoughEveryVerdictIsExact) {
  std::mt19937_64 random(TestSeed());
  Open(int64_t{64} << 20, 1);
  std::map<uint64_t, absl::Time> passed;
  int64_t fresh = 0;
  int64_t suspects = 0;
  absl::Time now = kStart;
  for (int round = 0; round < 300; ++round) {
    // Stream time is the batch's throughout.
    now += absl::Seconds(static_cast<int64_t>(random() % 60));
    for (int i = 0; i < 101; ++i) EXPECT_TRUE(partition_->Observe(now).ok());
    // So is the filter's, which stands still in transactions.
    uint64_t other = 1'000'000 + 1000 * static_cast<uint64_t>(round);
    while (IsFalsePositive(other)) ++other;
    ASSERT_EQ(Judge(other, now), Verdict::kUnique);
    ++fresh;
    const bool in_transaction = random() % 2 == 0;
    const bool commits = random() % 4 != 0;
    std::map<uint64_t, absl::Time> known = passed;
    std::vector<Event> events;
    std::vector<Verdict> expected;
    int64_t fresh_here = 0;
    int64_t suspects_here = 0;
    for (uint64_t i = random() % 200; i > 0; --i) {
      const uint64_t number = random() % 3000;
      events.push_back(Numbered(number, now));
      const auto found = known.find(number);
      const bool copy = found != known.end() && now - found->second <= kHorizon;
      const Verdict verdict = copy                      ? Verdict::kDuplicate
                              : IsFalsePositive(number) ? Verdict::kSuspect
                                                        : Verdict::kUnique;
      expected.push_back(verdict);
      fresh_here += verdict == Verdict::kUnique ? 1 : 0;
      suspects_here += verdict == Verdict::kSuspect ? 1 : 0;
      if (verdict == Verdict::kUnique || (verdict == Verdict::kSuspect && passes())) known[number] = now;
    }
    std::vector<Verdict> verdicts(events.size());
    if (in_transaction) {
      auto transaction = *partition_->Begin();
      EXPECT_TRUE(transaction.Judge(events, absl::MakeSpan(verdicts)).ok());
      if (commits) {
        transaction.Commit();
      } else {
        transaction.Abort();
      }
    } else {
      EXPECT_TRUE(partition_->Judge(events, absl::MakeSpan(verdicts)).ok());
    }
    ASSERT_EQ(verdicts, expected) << "round " << round;
    if (in_transaction && !commits) continue;
    passed = known;
    fresh += fresh_here;
    suspects += suspects_here;
  }
  const PartitionStatus status = partition_->Status();
  EXPECT_EQ(status.unique, fresh);
  EXPECT_EQ(status.suspects, suspects);
  EXPECT_GT(status.suspects, 0);
  EXPECT_EQ(status.second_opinion.displaced, 0);
  EXPECT_EQ(status.audit.missed, 0);
  EXPECT_EQ(status.audit.false_drops > 0, !passes());
}

// Where the array is too small, copies are suspects, and all that is called a duplicate is one.
TEST_P(SecondOpinionTest, WithoutRoomCopiesAreSuspects) {
  Open(int64_t{8} << 20, 1);
  constexpr uint64_t kIds = 400'000;  // the array has room for some 130,000
  for (uint64_t i = 0; i < kIds; ++i) Judge(i);
  const SecondOpinionStatus opinion = partition_->Status().second_opinion;
  EXPECT_GT(opinion.displaced, 0);
  EXPECT_LE(opinion.memory_bytes, int64_t{2} << 20);
  EXPECT_LE(stage_->memory().used_bytes(), stage_->memory().limit_bytes());
  uint64_t duplicates = 0;
  for (uint64_t i = 0; i < 1000; ++i) duplicates += Judge(kIds - 1 - i) == Verdict::kDuplicate ? 1 : 0;
  EXPECT_GT(duplicates, 1000 * 8 / 10u);
  EXPECT_EQ(Judge(0), Verdict::kSuspect);
  for (uint64_t i = kIds; i < kIds + 10'000; ++i) ASSERT_NE(Judge(i), Verdict::kDuplicate);
}

// With the real filter, at a rate of false positives that shows.
TEST(SecondOpinionOfTheFbfTest, NoGoodEventIsLostAndNoCopyPasses) {
  for (const Engine engine : {Engine::kSliced, Engine::kPublished, Engine::kBloom, Engine::kCompact}) {
    auto stage = DedupStage::Create({.horizon = kHorizon,
                                     .target_fpp = 0.05,
                                     .engine = engine,
                                     .second_opinion = SecondOpinion::kOpposite,
                                     .audit_share = 1});
    ASSERT_TRUE(stage.ok()) << stage.status();
    auto partition = *(*stage)->Open("p");
    constexpr int kIds = 100'000;
    for (int i = 0; i < kIds; ++i) {
      // In half of the horizon.
      const absl::Time time = kStart + kHorizon * i / kIds / 2;
      ASSERT_NE(*partition->Judge(absl::StrCat(i), time), Verdict::kDuplicate) << EngineName(engine);
      ASSERT_EQ(*partition->Judge(absl::StrCat(i / 2), time), Verdict::kDuplicate) << EngineName(engine);
    }
    const PartitionStatus status = partition->Status();
    EXPECT_EQ(status.unique + status.suspects, kIds);
    EXPECT_EQ(status.audit.false_drops, 0);
    EXPECT_EQ(status.audit.missed, 0);
    EXPECT_EQ(status.second_opinion.displaced, 0);
    if (engine == Engine::kSliced) {
      EXPECT_GT(status.suspects, 0);
    }
  }
}

// An id past the horizon, of which the filter knows yet and the second opinion not, comes twice in a batch:
// once before the filter forgets it, and once after.
TEST(SecondOpinionOfTheFbfTest, ASuspectThatWasPassedIsKnownToTheEndOfItsBatch) {
  auto stage = DedupStage::Create(
      {.horizon = kHorizon, .engine = Engine::kSliced, .second_opinion = SecondOpinion::kOpposite});
  ASSERT_TRUE(stage.ok()) << stage.status();
  auto partition = *(*stage)->Open("p");
  const auto move_to = [&](absl::Time time) {
    for (int i = 0; i < 101; ++i) EXPECT_TRUE(partition->Observe(time).ok());
  };
  move_to(kStart);
  ASSERT_EQ(*partition->Judge("a", kStart), Verdict::kUnique);
  move_to(kStart + kHorizon / 8);
  ASSERT_EQ(*partition->Judge("of the same interval", kStart + kHorizon / 8), Verdict::kUnique);
  const absl::Time past = kStart + kHorizon + kHorizon / 16;
  move_to(past);
  std::vector<Event> events = {{.id = partition->Hash("a"), .time = past}};
  for (int i = 0; i < 101; ++i) {
    events.push_back({.id = partition->Hash(absl::StrCat(i)), .time = kStart + 2 * kHorizon});
  }
  events.push_back({.id = partition->Hash("a"), .time = kStart + 2 * kHorizon});
  std::vector<Verdict> verdicts(events.size());
  EXPECT_TRUE(partition->Judge(events, absl::MakeSpan(verdicts)).ok());
  EXPECT_EQ(verdicts.front(), Verdict::kSuspect);
  EXPECT_EQ(verdicts.back(), Verdict::kDuplicate);
}

}  // namespace
}  // namespace lethe
