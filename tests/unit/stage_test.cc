// The stage with an exact filter: every verdict can be foretold.
#include "lethe/stage.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/exact_filter.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kHorizon = absl::Seconds(1000);
const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

class StageTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    auto stage = DedupStage::Create({.horizon = kHorizon, .shards = GetParam(), .hash_seed = 7},
                                    ExactFilter::Factory());
    ASSERT_OK(stage);
    stage_ = *std::move(stage);
    partition_ = Open();
  }

  std::unique_ptr<Partition> Open() {
    auto partition = stage_->Open("p");
    EXPECT_OK(partition);
    return *std::move(partition);
  }

  Transaction Begin() { return *partition_->Begin(); }

  // Stream time goes to `time`, by records without an id.
  void MoveTo(absl::Time time) {
    for (int i = 0; i < 101; ++i) EXPECT_OK(partition_->Observe(time));
    ASSERT_EQ(partition_->stream_time(), time);
  }

  std::vector<Event> Events(int first, int count, absl::Time time = kStart) {
    std::vector<Event> events;
    for (int i = first; i < first + count; ++i) {
      events.push_back({.id = partition_->Hash(absl::StrCat("id", i)), .time = time});
    }
    return events;
  }

  static int CountUnique(const std::vector<Verdict>& verdicts) {
    return static_cast<int>(std::count(verdicts.begin(), verdicts.end(), Verdict::kUnique));
  }

  std::unique_ptr<DedupStage> stage_;
  std::unique_ptr<Partition> partition_;
};

INSTANTIATE_TEST_SUITE_P(Shards, StageTest, testing::Values(1, 2, 16, 256));

// 60 records of the past before the first of today: those remembered until time starts are not older than
// that.
TEST_P(StageTest, AMajorityOfThePastAtTheStartChangesNoVerdict) {
  for (int wild = 0; wild < 60; ++wild)
    EXPECT_OK(partition_->Judge(absl::StrCat("wild", wild), absl::UnixEpoch()));
  std::vector<Event> events;
  for (int i = 0; i < 500; ++i) {
    events.push_back({.id = partition_->Hash(absl::StrCat("id", i)), .time = kStart + absl::Milliseconds(i)});
  }
  std::vector<Verdict> verdicts(events.size());
  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 500);
  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 0);
}

TEST_P(StageTest, AReplayEndsAtTheGivenStreamTime) {
  partition_->LimitStreamTime(kStart);
  EXPECT_OK(partition_->Replay(Events(0, 300, kStart + kHorizon / 2)));
  EXPECT_EQ(partition_->stream_time(), kStart);
  Transaction transaction = Begin();
  partition_->LimitStreamTime(absl::InfiniteFuture());
  transaction.Abort();  // of the events, not of the limit
  EXPECT_EQ(*partition_->Judge("id0", kStart), Verdict::kDuplicate);
  EXPECT_EQ(partition_->stream_time(), kStart + kHorizon / 2);
}

TEST_P(StageTest, AMajorityOfTheFutureForgetsNothingUnderALimit) {
  std::vector<Verdict> verdicts(300);
  EXPECT_OK(partition_->Judge(Events(0, 300), absl::MakeSpan(verdicts)));
  partition_->LimitStreamTime(kStart + absl::Seconds(1));
  EXPECT_OK(partition_->Judge(Events(300, 300, kStart + 1000 * kHorizon), absl::MakeSpan(verdicts)));
  EXPECT_EQ(partition_->stream_time(), kStart + absl::Seconds(1));
  EXPECT_OK(partition_->Judge(Events(0, 300), absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 0);
  // Time goes on with the limit, also when the clocks are right again.
  partition_->LimitStreamTime(kStart + 3 * kHorizon);
  EXPECT_OK(partition_->Judge(Events(600, 300, kStart + 2 * kHorizon), absl::MakeSpan(verdicts)));
  EXPECT_EQ(*partition_->Judge("id0", kStart + 2 * kHorizon), Verdict::kUnique);
}

TEST_P(StageTest, OneStep) {
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kDuplicate);
  EXPECT_EQ(*partition_->Judge("b", kStart), Verdict::kUnique);
  const PartitionStatus status = partition_->Status();
  EXPECT_EQ(status.name, "p");
  EXPECT_EQ(status.unique, 2);
  EXPECT_EQ(status.duplicates, 1);
  EXPECT_EQ(status.filter.ids, 2);
}

TEST_P(StageTest, VerdictsOfABatchAreInItsOrder) {
  std::mt19937_64 random(TestSeed());
  std::vector<Event> events;
  std::map<std::string, int> seen;
  std::vector<Verdict> expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string id = absl::StrCat(random() % 2000);
    events.push_back({.id = partition_->Hash(id), .time = kStart});
    expected.push_back(seen[id]++ == 0 ? Verdict::kUnique : Verdict::kDuplicate);
  }
  std::vector<Verdict> verdicts(events.size());
  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(verdicts, expected);
  // The same in transactions, in batches of any size.
  partition_ = Open();
  for (size_t first = 0; first < events.size();) {
    Transaction transaction = Begin();
    for (int batch = 0; batch < 3; ++batch) {
      const size_t size = std::min(random() % 1500, events.size() - first);
      std::vector<Verdict> some(size);
      EXPECT_OK(transaction.Judge(absl::MakeConstSpan(events).subspan(first, size), absl::MakeSpan(some)));
      EXPECT_TRUE(std::equal(some.begin(), some.end(), expected.begin() + static_cast<ptrdiff_t>(first)));
      first += size;
    }
    transaction.Commit();
  }
}

TEST_P(StageTest, AnIdIsADuplicateUpToTheHorizonAndNotRenewed) {
  MoveTo(kStart);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  MoveTo(kStart + kHorizon / 2);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kDuplicate);
  MoveTo(kStart + kHorizon);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kDuplicate);
  MoveTo(kStart + kHorizon + absl::Milliseconds(1));
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
}

// The loss that a stage without transactions cannot avoid, first without and then with one.
TEST_P(StageTest, AWriteThatFailsLosesNothing) {
  const std::vector<Event> events = Events(0, 2000);
  std::vector<Verdict> verdicts(events.size());

  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 2000);
  // The write fails, and the batch is read again: all of it looks like duplicates.
  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 0);

  partition_ = Open();
  Transaction failing = Begin();
  EXPECT_OK(failing.Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 2000);
  failing.Abort();
  Transaction again = Begin();
  EXPECT_OK(again.Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 2000);
  again.Commit();
  Transaction retries = Begin();
  EXPECT_OK(retries.Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 0);
  retries.Commit();
}

TEST_P(StageTest, ASecondCopyInTheSameTransactionIsADuplicate) {
  Transaction transaction = Begin();
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kDuplicate);
  EXPECT_EQ(partition_->Status().pending, 1);
  EXPECT_EQ(partition_->Status().filter.ids, 0);
  EXPECT_EQ(transaction.pending_bytes(), 80);
  transaction.Commit();
  EXPECT_FALSE(transaction.open());
  EXPECT_EQ(transaction.pending_bytes(), 0);
  const PartitionStatus status = partition_->Status();
  EXPECT_EQ(status.pending, 0);
  EXPECT_EQ(status.unique, 1);
  EXPECT_EQ(status.duplicates, 1);
  EXPECT_EQ(status.filter.ids, 1);
}

TEST_P(StageTest, AnAbortRestoresStreamTimeAndCounts) {
  for (int i = 0; i < 60; ++i) EXPECT_OK(partition_->Judge(absl::StrCat("before", i), kStart));
  Transaction transaction = Begin();
  for (int i = 0; i < 60; ++i) EXPECT_OK(transaction.Judge(absl::StrCat("in", i), kStart));
  EXPECT_OK(transaction.Judge("in0", kStart));
  EXPECT_EQ(partition_->stream_time(), kStart);
  transaction.Abort();
  EXPECT_EQ(partition_->stream_time(), absl::InfinitePast());
  EXPECT_EQ(partition_->Status().unique, 60);
  EXPECT_EQ(partition_->Status().duplicates, 0);
  // The window of timestamps is as it was, too: 41 more fill it, not fewer.
  for (int i = 0; i < 40; ++i) EXPECT_OK(partition_->Observe(kStart));
  EXPECT_EQ(partition_->stream_time(), absl::InfinitePast());
  EXPECT_OK(partition_->Observe(kStart));
  EXPECT_EQ(partition_->stream_time(), kStart);
}

TEST_P(StageTest, JudgingInATransactionDoesNotMoveTheFiltersTime) {
  MoveTo(kStart);
  EXPECT_OK(partition_->Judge("a", kStart));
  Transaction transaction = Begin();
  for (int i = 0; i < 101; ++i) EXPECT_OK(transaction.Observe(kStart + 10 * kHorizon));
  EXPECT_OK(transaction.Judge("b", kStart + 10 * kHorizon));
  transaction.Abort();
  EXPECT_EQ(partition_->stream_time(), kStart);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kDuplicate);
  // Committed, it does; also in shards in which nothing was passed.
  transaction = Begin();
  for (int i = 0; i < 101; ++i) EXPECT_OK(transaction.Observe(kStart + 10 * kHorizon));
  transaction.Commit();
  EXPECT_EQ(*Begin().Judge("a", kStart), Verdict::kUnique);
}

TEST_P(StageTest, PendingIdsEnterAtTheTimeOfTheirJudgement) {
  MoveTo(kStart);
  Transaction transaction = Begin();
  EXPECT_OK(transaction.Judge("a", kStart));
  for (int i = 0; i < 101; ++i) EXPECT_OK(transaction.Observe(kStart + kHorizon / 2));
  EXPECT_OK(transaction.Judge("b", kStart + kHorizon / 2));
  transaction.Commit();
  MoveTo(kStart + kHorizon + absl::Milliseconds(1));
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  EXPECT_EQ(*partition_->Judge("b", kStart), Verdict::kDuplicate);
}

TEST_P(StageTest, AForgottenIdIsNewAgain) {
  Transaction transaction = Begin();
  const HashedId a = partition_->Hash("a");
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  EXPECT_OK(transaction.Forget(a));
  EXPECT_OK(transaction.Forget(partition_->Hash("never seen")));
  EXPECT_EQ(partition_->Status().pending, 0);
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  EXPECT_OK(transaction.Forget(a));
  transaction.Commit();
  EXPECT_EQ(partition_->Status().unique, 0);
  transaction = Begin();
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  transaction.Commit();
  transaction = Begin();
  EXPECT_OK(transaction.Forget(a));  // it is committed, and stays
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kDuplicate);
}

TEST_P(StageTest, ReplayRemembersWhateverTheFilterSays) {
  MoveTo(kStart);
  const std::vector<Event> events = Events(0, 3000);
  ASSERT_OK(partition_->Replay(events));
  MoveTo(kStart + kHorizon / 2);
  ASSERT_OK(partition_->Replay(events));  // contained, and inserted all the same
  EXPECT_EQ(partition_->Status().replayed, 6000);
  EXPECT_EQ(partition_->Status().unique, 0);
  MoveTo(kStart + kHorizon + absl::Milliseconds(1));
  std::vector<Verdict> verdicts(events.size());
  EXPECT_OK(partition_->Judge(events, absl::MakeSpan(verdicts)));
  EXPECT_EQ(CountUnique(verdicts), 0);
}

TEST_P(StageTest, StartsAtAStreamTime) {
  ASSERT_OK(partition_->StartAt(absl::InfinitePast()));  // the log's start: there was none
  ASSERT_OK(partition_->StartAt(kStart));
  EXPECT_EQ(partition_->stream_time(), kStart);
  EXPECT_OK(partition_->Judge("a", kStart));
  MoveTo(kStart + kHorizon + absl::Milliseconds(1));
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  EXPECT_THAT(partition_->StartAt(kStart), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Its events were never there.
TEST_P(StageTest, StartsAtAStreamTimeAfterAnAbort) {
  Transaction transaction = Begin();
  EXPECT_THAT(partition_->StartAt(kStart), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  transaction.Abort();
  EXPECT_EQ(partition_->stream_time(), absl::InfinitePast());
  EXPECT_OK(partition_->StartAt(kStart));
  EXPECT_EQ(partition_->stream_time(), kStart);
}

TEST_P(StageTest, WrongUseIsRefusedOrHarmless) {
  constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;
  std::vector<Verdict> verdicts(10);
  Transaction transaction = Begin();
  EXPECT_THAT(partition_->Begin().status(), StatusIs(kRefused));
  EXPECT_THAT(partition_->Replay(Events(0, 10)), StatusIs(kRefused));
  EXPECT_THAT(partition_->Judge("a", kStart).status(), StatusIs(kRefused));
  EXPECT_THAT(partition_->Judge(Events(0, 10), absl::MakeSpan(verdicts)), StatusIs(kRefused));
  EXPECT_THAT(partition_->Observe(kStart), StatusIs(kRefused));
  EXPECT_THAT(partition_->AdvanceTo(kStart), StatusIs(kRefused));
  EXPECT_EQ(partition_->Status().pending, 0);
  EXPECT_EQ(partition_->stream_time(), absl::InfinitePast());
  EXPECT_EQ(*transaction.Judge("a", kStart), Verdict::kUnique);
  transaction.Abort();
  EXPECT_EQ(partition_->Status().filter.ids, 0);
  // One that has ended refuses, too, and remembers nothing.
  EXPECT_THAT(transaction.Judge("a", kStart).status(), StatusIs(kRefused));
  EXPECT_THAT(transaction.Judge(Events(0, 10), absl::MakeSpan(verdicts)), StatusIs(kRefused));
  EXPECT_THAT(transaction.Observe(kStart), StatusIs(kRefused));
  EXPECT_THAT(transaction.status(), StatusIs(kRefused));
  EXPECT_THAT(transaction.Forget(partition_->Hash("a")), StatusIs(kRefused));
  transaction.Commit();
  transaction.Abort();
  EXPECT_EQ(partition_->Status().unique, 0);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
}

TEST_P(StageTest, AdvanceToMovesTimeWithoutAnEvent) {
  MoveTo(kStart);
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  ASSERT_OK(partition_->AdvanceTo(kStart + kHorizon));
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kDuplicate);
  ASSERT_OK(partition_->AdvanceTo(kStart + kHorizon + absl::Milliseconds(1)));
  EXPECT_EQ(partition_->stream_time(), kStart + kHorizon + absl::Milliseconds(1));
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  ASSERT_OK(partition_->AdvanceTo(kStart));  // it does not go back
  ASSERT_OK(partition_->AdvanceTo(absl::InfinitePast()));
  EXPECT_EQ(partition_->stream_time(), kStart + kHorizon + absl::Milliseconds(1));
}

TEST_P(StageTest, ATransactionThatIsMovedStaysOpenAndOneThatIsDestroyedAborts) {
  {
    Transaction first = Begin();
    EXPECT_OK(first.Judge("a", kStart));
    Transaction second = std::move(first);
    EXPECT_FALSE(first.open());  // NOLINT(bugprone-use-after-move): that is what is tested
    EXPECT_EQ(*second.Judge("a", kStart), Verdict::kDuplicate);
  }
  EXPECT_EQ(partition_->Status().pending, 0);
  auto other = Open();
  Transaction next = Begin();
  EXPECT_EQ(*next.Judge("a", kStart), Verdict::kUnique);
  next = *other->Begin();  // aborts the one that it replaces
  EXPECT_EQ(*Begin().Judge("a", kStart), Verdict::kUnique);
}

TEST_P(StageTest, PartitionsAreApart) {
  auto other = Open();
  EXPECT_EQ(*partition_->Judge("a", kStart), Verdict::kUnique);
  EXPECT_EQ(*other->Judge("a", kStart), Verdict::kUnique);
}

TEST_P(StageTest, OpenBeyondTheMemoryLimitIsRefusedAndGivesBack) {
  const int64_t room = ExactFilter::kBytes * GetParam();
  auto stage = *DedupStage::Create({.memory_limit_bytes = 2 * room + room / 2, .shards = GetParam()},
                                   ExactFilter::Factory());
  auto first = stage->Open("first");
  auto second = stage->Open("second");
  ASSERT_OK(first);
  ASSERT_OK(second);
  EXPECT_THAT(stage->Open("third").status(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(stage->memory().used_bytes(), 2 * room);
  first->reset();
  EXPECT_EQ(stage->memory().used_bytes(), room);
  EXPECT_OK(stage->Open("third"));
}

TEST_P(StageTest, StatusIsThatOfAllShards) {
  std::vector<Verdict> verdicts(10'000);
  EXPECT_OK(partition_->Judge(Events(0, 10'000), absl::MakeSpan(verdicts)));
  const FilterStatus filter = partition_->Status().filter;
  EXPECT_EQ(filter.ids, 10'000);
  EXPECT_EQ(filter.shape.bits_per_generation, 100 * GetParam());
  EXPECT_EQ(filter.shape.bits_per_id, 3);
  EXPECT_EQ(filter.memory_bytes, ExactFilter::kBytes * GetParam());
  EXPECT_EQ(filter.window, kHorizon);
  EXPECT_DOUBLE_EQ(filter.fpp.target, 1e-6);
}

// A stream that falls silent, or whose events have no ids any more, gives back what the horizon has passed.
TEST(SilentStreamTest, GivesItsMemoryBack) {
  for (const bool observes : {false, true}) {
    auto stage = *DedupStage::Create(
        {.horizon = kHorizon, .memory_limit_bytes = int64_t{64} << 20, .engine = Engine::kCompact});
    auto partition = *stage->Open("p");
    std::vector<Event> events;
    for (int i = 0; i < 200'000; ++i) {
      events.push_back({.id = partition->Hash(absl::StrCat(i)), .time = kStart + absl::Milliseconds(4 * i)});
    }
    std::vector<Verdict> verdicts(events.size());
    ASSERT_OK(partition->Judge(events, absl::MakeSpan(verdicts)));
    const PartitionStatus full = partition->Status();
    ASSERT_GT(full.filter.ids, 190'000);
    for (int step = 1; step <= 400; ++step) {
      const absl::Time time = kStart + step * kHorizon / 100;
      ASSERT_OK((observes ? partition->Observe(time) : partition->AdvanceTo(time)));
    }
    const PartitionStatus silent = partition->Status();
    EXPECT_EQ(silent.filter.ids, 0) << observes;
    EXPECT_LT(silent.filter.memory_bytes, full.filter.memory_bytes / 4) << observes;
  }
}

// A sample is taken in each epoch and for each size; in between the estimate follows what the filter holds.
TEST(StatusTest, TheEstimateFollowsTheIdsBetweenSamples) {
  auto stage = *DedupStage::Create({.horizon = kHorizon, .shards = 4});
  auto partition = *stage->Open("p");
  int next = 0;
  const auto judge_up_to = [&](int ids) {
    for (; next < ids; ++next) ASSERT_OK(partition->Judge(absl::StrCat(next), kStart));
  };
  judge_up_to(130'000);
  const FilterStatus before = partition->Status().filter;
  judge_up_to(180'000);
  const FilterStatus after = partition->Status().filter;
  ASSERT_GT(after.fpp.modelled, 1.1 * before.fpp.modelled);
  EXPECT_GT(before.fpp.estimated, 0);
  EXPECT_NEAR(after.fpp.estimated / before.fpp.estimated, after.fpp.modelled / before.fpp.modelled, 0.05);
}

TEST(CreateTest, RefusesOptionsThatCannotBeMet) {
  const auto refused = [](const StageOptions& options, absl::string_view name) {
    EXPECT_EQ(DedupStage::Create(options).status(), Validate(options));
    for (const absl::Status& status : {DedupStage::Create(options).status(),
                                       DedupStage::Create(options, ExactFilter::Factory()).status()}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
    }
  };
  refused({.horizon = absl::ZeroDuration()}, "horizon");
  refused({.horizon = absl::InfiniteDuration()}, "horizon");
  refused({.target_fpp = 0}, "target_fpp");
  refused({.target_fpp = 1}, "target_fpp");
  refused({.target_fpp = std::nan("")}, "target_fpp");
  refused({.memory_limit_bytes = 0}, "memory_limit_bytes");
  refused({.shards = 0}, "shards");
  refused({.shards = 512}, "shards");
  refused({.shards = 6}, "shards");
  EXPECT_OK(Validate({}));
}

TEST(CreateTest, AFactoryThatMakesNoFilterIsRefused) {
  const auto stage = *DedupStage::Create(
      {}, [](const FilterOptions&) -> absl::StatusOr<std::unique_ptr<Filter>> { return nullptr; });
  EXPECT_THAT(stage->Open("p").status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(HashSeedTest, IsRandomUnlessSet) {
  const auto hash = [](std::optional<uint64_t> seed) {
    auto stage = *DedupStage::Create({.hash_seed = seed}, ExactFilter::Factory());
    return (*stage->Open("p"))->Hash("id");
  };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7).a, hash(8).a);
  EXPECT_NE(hash(std::nullopt).a, hash(std::nullopt).a);
}

TEST(HashSeedTest, EachPartitionHasAKeyOfItsOwn) {
  const auto stage = *DedupStage::Create({}, ExactFilter::Factory());
  const auto one = *stage->Open("p");
  const auto other = *stage->Open("p");
  EXPECT_NE(one->Hash("id").a, other->Hash("id").a);
  EXPECT_NE(one->Hash("id").b, other->Hash("id").b);
  const Event event = {.id = one->Hash("id"), .time = absl::UnixEpoch()};
  Verdict verdict;
  EXPECT_THAT(other->Judge({&event, 1}, {&verdict, 1}), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lethe
