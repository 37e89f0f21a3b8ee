// Where a partition starts, and with which filter, after whatever may have become of its offsets and its log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/assign/topic_id_watch.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/snapshots/snapshot_folder.h"
#include "src/text/format.h"
#include "tests/support/status_matchers.h"
#include "tests/support/task_peer.h"

namespace lethe {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kHorizon = absl::Hours(1);
constexpr int32_t kPartitions = 4;

absl::Time At(double hours) { return absl::FromUnixMillis(1'700'000'000'000) + hours * kHorizon; }

DaemonOptions Options() {
  DaemonOptions options;
  options.input = "orders";
  options.process.group = "lethe-orders";
  options.record.id = *IdSpec::Parse("json:/id");
  options.stage.horizon = kHorizon;
  return options;
}

Topics OfPartitions() {
  Topics topics;
  topics.partitions = topics.output_partitions = kPartitions;
  return topics;
}

class AssignmentTest : public testing::Test {
 protected:
  AssignmentTest() {
    stage_ = *DedupStage::Create(options_.stage);
    flow_.SetTopics(OfPartitions());
  }

  CommitMetadata Story(int64_t origin, int64_t restart, absl::Time restart_time, absl::Time committed_time) {
    return {{origin, kPartitions},
            {restart, restart_time},
            committed_time,
            options_.record.id.Fingerprint(),
            kHorizon};
  }
  absl::StatusOr<std::unique_ptr<Task>> Prepare(int64_t offset, const std::string& metadata, LogState log,
                                                Uncommitted uncommitted = Uncommitted::kNew) {
    flow_.SetTopics(OfPartitions());  // with the options as they are now
    Assigner assigner(flow_, kept_, [this](TopicPartition) { return go_on_(); });
    return assigner.Prepare(2, {offset, metadata}, log, uncommitted, absl::Now());
  }
  // A filter that knows the ids of [0, end).
  std::unique_ptr<Task> Kept(int64_t end) {
    auto owned = *Prepare(-1, "", {0, 1000});
    TaskPeer::SetEnd(*owned, end);
    TaskPeer::SetMark(*owned, {end - 1, 17});
    return owned;
  }

  Flow flow_{Options(), nullptr};
  DaemonOptions& options_ = flow_.options;
  std::unique_ptr<DedupStage>& stage_ = flow_.stage;
  std::unique_ptr<Snapshots>& snapshots_ = flow_.snapshots;
  std::function<bool()> go_on_ = [] { return true; };
  KeptPartitions kept_;
};

TEST_F(AssignmentTest, WithoutACommitItBeginsWhereTheOptionsSay) {
  auto owned = Prepare(-1, "", {100, 1000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->next(), 100);
  EXPECT_EQ((*owned)->origin().offset, 100);
  EXPECT_EQ((*owned)->phase(), Phase::kActive);
  EXPECT_TRUE(Assigner::NeedsFirstCommit(**owned, {}));

  options_.start = Start::kLatest;
  EXPECT_EQ((*Prepare(-1, "", {100, 1000}))->next(), 1000);
  EXPECT_EQ((*Prepare(-1, "", {100, 1000}, Uncommitted::kAdded))->next(), 100);
  EXPECT_EQ((*Prepare(-1, "", {100, 1000}, Uncommitted::kRecreated))->next(), 100);
  // What was routed, and not judged, is lost.
  options_.half.routed_from = {"west", "east"};
  const auto routed = Prepare(-1, "", {0, 0}, Uncommitted::kRecreated);
  EXPECT_EQ((*routed)->phase(), Phase::kFailed);
  EXPECT_THAT((*routed)->problem(), HasSubstr("-repartition --topic west --topic east --reset-offsets"));
}

TEST_F(AssignmentTest, WhyNothingIsCommittedIsInTheCommitsOfTheOthers) {
  const CommittedOffset none{-1, ""};
  const CommittedOffset ours{10, Story(0, 0, At(1), At(1)).ToString()};
  const auto why = [](int32_t partition, const std::vector<CommittedOffset>& committed, bool begun) {
    return UncommittedReason(committed, begun).Of(partition);
  };
  EXPECT_EQ(why(2, {none, none, none}, false), Uncommitted::kNew);
  EXPECT_EQ(why(2, {none, none, none}, true), Uncommitted::kRecreated);
  // Another instance was to begin there, and did not come to it.
  EXPECT_EQ(why(2, {ours, none, none}, true), Uncommitted::kNew);
  EXPECT_EQ(why(kPartitions, {ours, none, none}, true), Uncommitted::kAdded);
}

TEST_F(AssignmentTest, ACommitIsReplayedFromItsRestartPoint) {
  auto owned = Prepare(1000, Story(5, 400, At(2), At(3)).ToString(), {0, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->phase(), Phase::kRestoring);
  EXPECT_EQ((*owned)->next(), 400);
  EXPECT_EQ((*owned)->committed(), 1000);
  EXPECT_EQ((*owned)->origin().offset, 5);
  EXPECT_EQ((*owned)->filter()->stream_time(), At(2));
  EXPECT_FALSE((*owned)->short_history());
  EXPECT_FALSE(Assigner::NeedsFirstCommit(**owned, {1000, Story(5, 400, At(2), At(3)).ToString()}));
}

// Records below the restart point that is reported may be deleted.
TEST_F(AssignmentTest, AKeptFilterReportsTheRestartPointOfTheCommit) {
  auto kept = *Prepare(1000, Story(0, 600, At(2), At(3)).ToString(), {0, 2000});
  EXPECT_EQ(kept->restart(), 600);
  TaskPeer::SetEnd(*kept, 1000);
  TaskPeer::SetMark(*kept, {999, 17});
  kept_.Put(std::move(kept), SteadyNow());
  // Another instance has committed since, and knew earlier points alone.
  const auto owned = *Prepare(1100, Story(0, 400, At(1), At(3)).ToString(), {0, 2000});
  ASSERT_EQ(owned->filter_end(), 1000) << "it is the kept one";
  EXPECT_EQ(owned->restart(), 400);
}

// The record that an interrupted restore was to compare is before what is read after a reset.
TEST_F(AssignmentTest, AKeptFilterComparesNothingOfARestoreThatAResetHasEnded) {
  CommitMetadata story = Story(0, 0, At(2), At(3));
  story.last = {999, 17};
  auto kept = *Prepare(1000, story.ToString(), {0, 2000});
  ASSERT_TRUE(kept->to_compare());
  TaskPeer::SetEnd(*kept, 600);
  TaskPeer::SetMark(*kept, {599, 16});
  kept_.Put(std::move(kept), SteadyNow());
  const auto owned = *Prepare(1400, "", {0, 2000});
  ASSERT_EQ(owned->origin().offset, 1400) << "it begins again";
  EXPECT_FALSE(owned->to_compare());
}

TEST_F(AssignmentTest, ACommitOfAnotherTopicOfThisNameStopsThePartition) {
  const auto prepare = [this](const std::string& judged, const std::string& present) {
    Assigner assigner(flow_, kept_, [](TopicPartition) { return true; });
    assigner.SetTopicId(present);
    CommitMetadata story = Story(0, 400, At(2), At(3));
    story.topic_id = judged;
    return *assigner.Prepare(2, {1000, story.ToString()}, {0, 2000}, Uncommitted::kNew, absl::Now());
  };
  for (const auto& [judged, present] : {std::pair("", ""), {"", "id1"}, {"id1", ""}, {"id1", "id1"}}) {
    const auto task = prepare(judged, present);
    EXPECT_EQ(task->phase(), Phase::kRestoring) << judged << " " << present;
    EXPECT_EQ(task->topic_id(), present);
  }
  const auto task = prepare("id1", "id2");
  EXPECT_EQ(task->phase(), Phase::kFailed);
  EXPECT_THAT(task->problem(), HasSubstr("--reset-offsets"));
}

TEST(TopicIdWatchTest, ATopicIsAnotherWhenTwoAnswersInARowSayTheSame) {
  TopicIdWatch watch;
  EXPECT_FALSE(watch.IsRecreated("id1", "id1"));
  EXPECT_FALSE(watch.IsRecreated("id1", "id2"));
  EXPECT_FALSE(watch.IsRecreated("id1", "id1")) << "a broker was behind";
  EXPECT_FALSE(watch.IsRecreated("id1", "id2"));
  EXPECT_FALSE(watch.IsRecreated("id1", "")) << "no answer";
  EXPECT_FALSE(watch.IsRecreated("id1", "id2"));
  EXPECT_TRUE(watch.IsRecreated("id1", "id2"));
  EXPECT_FALSE(watch.IsRecreated("", "id2")) << "the id was not known";
}

TEST_F(AssignmentTest, WithoutMemoryForItsFilterAPartitionFailsUntilThereIsSome) {
  options_.stage.memory_limit_bytes = LeastMemory(options_, 1);
  stage_ = *DedupStage::Create(options_.stage);
  Assigner assigner(flow_, kept_, [](TopicPartition) { return true; });
  auto first = *assigner.Prepare(0, {-1, ""}, {0, 1000}, Uncommitted::kNew, absl::Now());
  EXPECT_EQ(first->phase(), Phase::kActive);
  const auto second = *assigner.Prepare(1, {-1, ""}, {0, 1000}, Uncommitted::kNew, absl::Now());
  EXPECT_EQ(second->phase(), Phase::kFailed);
  EXPECT_TRUE(second->lacks_memory());
  EXPECT_THAT(second->problem(), HasSubstr(BytesSetting(options_.stage.memory_limit_bytes)))
      << "the figure that the user has set";
  EXPECT_THAT(second->problem(), HasSubstr(BytesSetting(LeastMemory(options_, kPartitions))));
  EXPECT_FALSE(assigner.MakeRoomForFilters(1, SteadyNow()));
  kept_.Put(std::move(first), SteadyNow());
  EXPECT_FALSE(assigner.MakeRoomForFilters(1, SteadyNow())) << "it may come back";
  EXPECT_TRUE(assigner.MakeRoomForFilters(1, SteadyNow() + absl::Minutes(1)));
  EXPECT_EQ((*assigner.Prepare(1, {-1, ""}, {0, 1000}, Uncommitted::kNew, absl::Now()))->phase(),
            Phase::kActive);
}

TEST_F(AssignmentTest, TheLeastMemoryIsEnoughForThePartitions) {
  options_.stage.memory_limit_bytes = LeastMemory(options_, 60);
  stage_ = *DedupStage::Create(options_.stage);
  std::vector<std::unique_ptr<Task>> tasks;
  for (int32_t partition = 0; partition < 60; ++partition) {
    tasks.push_back(*Prepare(-1, "", {0, 1000}));
    ASSERT_EQ(tasks.back()->phase(), Phase::kActive) << partition << ": " << tasks.back()->problem();
  }
}

TEST_F(AssignmentTest, APlainCommitIsANewBeginningThere) {
  for (const char* metadata : {"", "by another program"}) {
    auto owned = Prepare(400, metadata, {0, 2000});
    ASSERT_OK(owned);
    EXPECT_EQ((*owned)->phase(), Phase::kActive);
    EXPECT_EQ((*owned)->origin().offset, 400);
    EXPECT_EQ((*owned)->next(), 400);
    EXPECT_TRUE(Assigner::NeedsFirstCommit(**owned, {400, metadata}));
  }
}

// Nobody knows what lies before it: it may have been judged, or not.
TEST_F(AssignmentTest, APlainCommitIsShortHistoryUntilAHorizonHasPassed) {
  auto owned = *Prepare(400, "", {0, 2000});
  EXPECT_TRUE(owned->short_history());
  // The next owner learns it from the first commit, whose clock has not started.
  owned = *Prepare(400, owned->Metadata(absl::Now()).ToString(), {0, 2000});
  EXPECT_EQ(owned->next(), 400);
  EXPECT_TRUE(owned->short_history());
  // What is read from there on is known, as soon as a clock tells since when.
  TaskPeer::SetTimedRecords(*owned, 101);
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(2)));
  owned->SkipTo(501);
  owned->Committed();
  EXPECT_EQ(owned->covered_since(), At(2));
  EXPECT_TRUE(owned->short_history());
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(3)));
  EXPECT_FALSE(owned->short_history());

  EXPECT_FALSE((*Prepare(0, "", {0, 2000}))->short_history()) << "nothing lies before it";
  options_.half.routing.emplace();
  EXPECT_FALSE((*Prepare(400, "", {0, 2000}))->short_history()) << "routers remember nothing";
}

TEST_F(AssignmentTest, APlainCommitStopsThePartitionWhereTheUserSaysSo) {
  options_.policies.on_short_history = OnShortHistory::kFail;
  const auto owned = *Prepare(400, "", {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kFailed);
  EXPECT_THAT(owned->problem(), HasSubstr("on_short_history"));
  EXPECT_FALSE(Assigner::NeedsFirstCommit(*owned, {400, ""})) << "a restart must find the same";
  EXPECT_NE((*Prepare(0, "", {0, 2000}))->phase(), Phase::kFailed);
  kept_.Put(Kept(400), SteadyNow());
  EXPECT_NE((*Prepare(400, "", {0, 2000}))->phase(), Phase::kFailed) << "all is known";
}

// The ids before F have passed. What lies between F and the committed offset was judged by another instance,
// or skipped by an operator, and then it has not passed.
TEST_F(AssignmentTest, AKeptFilterThatIsBehindAPlainCommitIsUsedAndTheGapIsNotRead) {
  auto kept = Kept(400);
  for (int i = 0; i < 101; ++i) EXPECT_OK(kept->filter()->Observe(At(1)));
  kept_.Put(std::move(kept), SteadyNow());
  const auto owned = *Prepare(900, "", {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kChecking);
  EXPECT_EQ(owned->next(), 399) << "the record before F shows whether the log is the same";
  EXPECT_EQ(owned->filter_end(), 900);
  EXPECT_EQ(owned->committed(), 900);
  EXPECT_EQ(owned->restore().left(), 0);
  EXPECT_TRUE(owned->short_history());
  EXPECT_TRUE(Assigner::NeedsFirstCommit(*owned, {900, ""}));
  // No restart reads what lies before, either.
  const CommitMetadata story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.origin.offset, 900);
  EXPECT_EQ(story.restart.offset, 900);
  EXPECT_TRUE(owned->Recognize(At(1))) << "the source must skip the gap";
  EXPECT_EQ(owned->next(), 900);
  // The old clock does not say since when the ids are known.
  owned->Activate();
  EXPECT_GT(owned->covered_since(), At(4));
  TaskPeer::SetTimedRecords(*owned, 101);
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(3)));
  owned->SkipTo(1001);
  owned->Committed();
  EXPECT_EQ(owned->covered_since(), At(3));
}

TEST_F(AssignmentTest, AKeptFilterAtAPlainCommitKnowsAll) {
  kept_.Put(Kept(400), SteadyNow());
  const auto owned = *Prepare(400, "", {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kChecking);
  EXPECT_EQ(owned->filter_end(), 400);
  EXPECT_FALSE(owned->short_history());
  EXPECT_EQ(owned->Metadata(absl::Now()).origin.offset, 0) << "its life goes on";
  EXPECT_FALSE(owned->Recognize(At(1)));
}

TEST_F(AssignmentTest, AKeptFilterThatIsAheadOfAPlainCommitOrCannotBeCheckedIsNotUsed) {
  for (const LogState& log : {LogState{0, 2000}, LogState{500, 2000}}) {
    kept_.Put(Kept(log.start == 0 ? 1000 : 400), SteadyNow());
    const auto owned = *Prepare(600, "", log);
    EXPECT_EQ(owned->phase(), Phase::kActive);
    EXPECT_EQ(owned->next(), 600);
    EXPECT_TRUE(owned->short_history());
  }
}

TEST_F(AssignmentTest, WhatCannotBeReadIsRefusedWithTheRemedy) {
  CommitMetadata other_id = Story(0, 0, At(0), At(1));
  other_id.id_fingerprint = IdSpec::Parse("key")->Fingerprint();
  for (const std::string& metadata :
       {std::string("lethe/3 o=0"), std::string("lethe/1 o=0 r="), other_id.ToString()}) {
    const absl::Status status = Prepare(400, metadata, {0, 2000}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("orders-2"));
    EXPECT_THAT(status.message(), HasSubstr("reset"));
  }
}

TEST_F(AssignmentTest, ACommitThatCannotBeTrueIsRefused) {
  CommitMetadata other_output = Story(0, 0, At(0), At(1));
  other_output.output = "elsewhere";
  CommitMetadata beyond = Story(0, 0, At(0), At(1));
  beyond.last.offset = 400;
  for (const auto& [story, says] :
       {std::pair(Story(0, 448, At(0), At(1)), "another cluster"), std::pair(beyond, "another cluster"),
        std::pair(other_output, "Use another group")}) {
    const absl::Status status = Prepare(400, story.ToString(), {0, 2000}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(says));
  }
}

TEST_F(AssignmentTest, TheRecordBeforeTheCommitIsComparedWhereTheLogHasIt) {
  CommitMetadata story = Story(0, 300, At(0), At(1));
  story.last.offset = 398;
  story.last.hash = 17;
  const auto rebuilt = *Prepare(400, story.ToString(), {0, 2000});
  ASSERT_TRUE(rebuilt->to_compare().has_value());
  EXPECT_EQ(rebuilt->to_compare()->offset, 398);
  EXPECT_EQ(rebuilt->to_compare()->hash, 17u);
  EXPECT_FALSE((*Prepare(400, story.ToString(), {399, 2000}))->to_compare().has_value());
  // A kept filter that is at the committed offset has remembered another record there.
  kept_.Put(Kept(400), SteadyNow());
  EXPECT_EQ((*Prepare(400, story.ToString(), {0, 2000}))->phase(), Phase::kRestoring);
  story.last.offset = 399;
  kept_.Put(Kept(400), SteadyNow());
  EXPECT_EQ((*Prepare(400, story.ToString(), {0, 2000}))->phase(), Phase::kChecking);
}

TEST_F(AssignmentTest, WhatWasUndeliverableIsPassedOnWithTheCommit) {
  auto owned = *Prepare(-1, "", {0, 1000});
  owned->NoteUndeliverable(3, {"too large", false});
  owned->NoteUndeliverable(12, {"too large", false});
  owned->SkipTo(10);
  EXPECT_EQ(owned->Metadata(absl::Now()).undeliverable, std::vector<int64_t>{3});
  owned->Committed();
  const CommitMetadata story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.undeliverable, std::vector<int64_t>{3});
  const auto next = *Prepare(10, story.ToString(), {0, 1000});
  for (int64_t offset = 0; offset < 20; ++offset)
    EXPECT_EQ(next->IsPassedOver(offset), offset == 3) << offset;
}

// Nothing of the log was judged by then, so no record of it can be compared.
TEST_F(AssignmentTest, WhatAFormerTopicOfThisNameRejectedIsNotRejectedInThePresentOne) {
  for (const std::string present : {"id1", "id2"}) {
    auto former = *Prepare(-1, "", {0, 1000});
    former->SetTopicId("id1");
    former->NoteUndeliverable(0, {"too large", false});
    kept_.Put(std::move(former), SteadyNow());
    flow_.SetTopics(OfPartitions());
    Assigner assigner(flow_, kept_, [](TopicPartition) { return true; });
    assigner.SetTopicId(present);
    CommitMetadata story = Story(0, 0, absl::InfinitePast(), absl::InfinitePast());
    story.topic_id = present;
    const auto task = *assigner.Prepare(2, {0, story.ToString()}, {0, 1000}, Uncommitted::kNew, absl::Now());
    EXPECT_EQ(task->UndeliverableAt(0) == nullptr, present == "id2") << present;
  }
}

TEST_F(AssignmentTest, ALogThatDoesNotHoldTheCommittedOffsetFailsThePartition) {
  const std::string story = Story(0, 0, At(0), At(1)).ToString();
  for (const auto& [log, remedy] :
       {std::pair(LogState{1001, 2000}, "on_unread_deleted"), {LogState{0, 999}, "--reset-offsets"}}) {
    auto owned = Prepare(1000, story, log);
    ASSERT_OK(owned);
    EXPECT_EQ((*owned)->phase(), Phase::kFailed);
    EXPECT_THAT((*owned)->problem(), HasSubstr(remedy));
  }
  EXPECT_NE((*Prepare(1000, story, {1000, 1000}))->phase(), Phase::kFailed);
}

// The clock of a rebuild stands still for its first 101 records. What it reads then must not look older than
// it is, or it is forgotten before its horizon is over.
TEST_F(AssignmentTest, WithShortHistoryTheClockStartsWhereItWasAtTheCommit) {
  auto owned = Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {950, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->next(), 950);
  EXPECT_EQ((*owned)->restore().from(), 950);
  EXPECT_EQ((*owned)->filter()->stream_time(), At(3));
  EXPECT_TRUE((*owned)->short_history());
  // The next owner learns it from the commit, wherever its log starts.
  const CommitMetadata next = (*owned)->Metadata(absl::Now());
  EXPECT_TRUE((*Prepare(1000, next.ToString(), {0, 2000}))->short_history());
}

TEST_F(AssignmentTest, AKeptFilterThatIsNotAheadGoesOn) {
  kept_.Put(Kept(900), SteadyNow());
  auto owned = Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {0, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->phase(), Phase::kChecking);
  EXPECT_EQ((*owned)->next(), 899);
  EXPECT_EQ((*owned)->filter_end(), 900);
}

// (Sought in batch 7 of one lane, it comes to another that is at batch 6: the next batch would be taken for
// stale, and its records would be passed over.)
TEST_F(AssignmentTest, AKeptPartitionKnowsNothingOfTheLaneThatHadIt) {
  auto kept = Kept(900);
  kept->ReachEndOfLog(2000);
  kept_.Put(std::move(kept), SteadyNow());
  auto owned = Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {0, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->filter_end(), 900);
  EXPECT_EQ((*owned)->end_of_log(), 0);
}

// (A filter of [0, 1000), the group reset to 400: 400 to 999 would look like duplicates.)
TEST_F(AssignmentTest, AKeptFilterThatIsAheadIsNotUsed) {
  kept_.Put(Kept(1000), SteadyNow());
  auto owned = Prepare(400, Story(0, 100, At(2), At(3)).ToString(), {0, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->phase(), Phase::kRestoring);
  EXPECT_EQ((*owned)->next(), 100);
  kept_.Put(Kept(1000), SteadyNow());
  EXPECT_EQ((*Prepare(400, "", {0, 2000}))->origin().offset, 400);
}

TEST_F(AssignmentTest, AKeptFilterOfAnotherLifeOrAnotherLogIsNotUsed) {
  kept_.Put(Kept(900), SteadyNow());
  auto other_life = Prepare(1000, Story(5, 400, At(2), At(3)).ToString(), {0, 2000});
  EXPECT_EQ((*other_life)->next(), 400);
  kept_.Put(Kept(900), SteadyNow());
  auto cannot_be_checked = Prepare(1000, Story(0, 950, At(2), At(3)).ToString(), {900, 2000});
  EXPECT_EQ((*cannot_be_checked)->next(), 950);
  EXPECT_EQ((*cannot_be_checked)->phase(), Phase::kRestoring);
}

// What is not used any more must not stand in the way of what takes its place.
TEST_F(AssignmentTest, AKeptFilterThatIsNotUsedGivesItsMemoryBackFirst) {
  options_.stage.memory_limit_bytes = 1 << 20;
  stage_ = *DedupStage::Create(options_.stage);
  const std::string other_life = Story(5, 400, At(2), At(3)).ToString();
  const struct {
    int64_t offset;
    std::string metadata;
    Phase phase;
  } cases[] = {{-1, "", Phase::kActive}, {400, "", Phase::kActive}, {1000, other_life, Phase::kRestoring}};
  for (const auto& [offset, metadata, phase] : cases) {
    auto kept = Kept(900);
    int id = 0;
    while (stage_->Open("another").ok()) {
      ASSERT_LT(id, 1'000'000) << "there is room for another, however much the kept one holds";
      for (int i = 0; i < 1000; ++i) EXPECT_OK(kept->filter()->Judge(absl::StrCat(id++), At(0)));
    }
    kept_.Put(std::move(kept), SteadyNow());
    const auto owned = Prepare(offset, metadata, {0, 2000});
    ASSERT_OK(owned);
    EXPECT_EQ((*owned)->phase(), phase) << offset << " " << (*owned)->problem();
  }
}

// Four filters that share the limit, three of them of partitions that went away; the fourth goes on.
class KeptMemoryTest : public AssignmentTest, public testing::WithParamInterface<Engine> {
 protected:
  KeptMemoryTest() {
    options_.stage.engine = GetParam();
    options_.stage.memory_limit_bytes = 1 << 20;
    stage_ = *DedupStage::Create(options_.stage);
    std::vector<std::unique_ptr<Task>> partitions;
    for (int32_t id = 0; id < kPartitions; ++id) {
      partitions.push_back(Kept(900));
      TaskPeer::SetId(*partitions.back(), {0, id});
    }
    const auto is_at_limit = [](const auto& each) { return each->filter()->Status().filter.limit_hits > 0; };
    while (!std::any_of(partitions.begin(), partitions.end(), is_at_limit)) {
      for (const auto& each : partitions) Feed(*each->filter());
    }
    live_ = TaskPeer::TakeFilter(*partitions.back());
    partitions.pop_back();
    for (auto& each : partitions) kept_.Put(std::move(each), SteadyNow());
  }

  void Feed(Partition& filter) {
    for (int i = 0; i < 1000; ++i) EXPECT_OK(filter.Judge(absl::StrCat(next_id_++), At(0)));
  }
  int64_t LiveBytes() { return live_->Status().filter.memory_bytes; }
  Assigner NewAssigner() {
    return Assigner(flow_, kept_, [](TopicPartition) { return true; });
  }
  // Where a partition is given up if that is long enough ago.
  static absl::Time Later() { return SteadyNow() + absl::Hours(1); }

  int next_id_ = 0;
  std::unique_ptr<Partition> live_;
};

TEST_P(KeptMemoryTest, IsFreedForAFilterThatNeedsIt) {
  Assigner assigner = NewAssigner();
  int64_t before = 0;  // it had when something was given up for it
  for (int i = 0; before == 0 || LiveBytes() <= before; ++i) {
    ASSERT_LT(i, 1000) << LiveBytes() << " of " << stage_->memory().used_bytes();
    Feed(*live_);
    const int64_t used = stage_->memory().used_bytes();
    EXPECT_LE(used, options_.stage.memory_limit_bytes);
    assigner.GiveUpForMemory(Later());
    if (before == 0 && stage_->memory().used_bytes() < used) before = LiveBytes();
  }
  EXPECT_EQ(kept_.Take({0, 0}), nullptr) << "the one that went first";
  // These grow by small steps.
  if (GetParam() == Engine::kPublished) return;
  EXPECT_NE(kept_.Take({0, 2}), nullptr) << "there was enough without it";
}

TEST_P(KeptMemoryTest, StaysWhileThePartitionMayComeBack) {
  Assigner assigner = NewAssigner();
  const absl::Time now = SteadyNow();
  for (int i = 0; i < 20; ++i) {
    Feed(*live_);
    assigner.GiveUpForMemory(now);
  }
  for (int32_t id = 0; id < kPartitions - 1; ++id) EXPECT_NE(kept_.Take({0, id}), nullptr) << id;
}

TEST_P(KeptMemoryTest, StaysWhileNobodyIsRefusedAny) {
  Assigner assigner = NewAssigner();
  assigner.GiveUpForMemory(SteadyNow());  // what was wanted before they went
  assigner.GiveUpForMemory(Later());
  for (int32_t id = 0; id < kPartitions - 1; ++id) EXPECT_NE(kept_.Take({0, id}), nullptr) << id;
}

INSTANTIATE_TEST_SUITE_P(Engines, KeptMemoryTest,
                         testing::Values(Engine::kCompact, Engine::kPublished, Engine::kExact));

// A folder with a snapshot of a filter that knows the ids of [0, 900).
class SnapshotAssignmentTest : public AssignmentTest {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "lethe-assignment-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    options_.process.snapshots.folder = folder_;
    auto store = OpenSnapshotFolder(options_);
    ASSERT_OK(store);
    snapshots_ = std::make_unique<Snapshots>(*std::move(store), absl::Minutes(5));
    auto owned = Kept(900);
    TaskPeer::SetTimedRecords(*owned, 890);
    Save(*owned, At(1));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Save(Task& owned, absl::Time at) {
    id_ = SnapshotId::New(900, at);
    auto image = owned.filter()->BeginSnapshot(
        {.topic = "orders", .partition = 2, .id_fingerprint = options_.record.id.Fingerprint()},
        owned.PointOf(id_));
    ASSERT_OK(image);
    (*image)->NoteEnd(950);
    ASSERT_OK(snapshots_->store().Write(2, id_, **image, go_on_));
  }

  CommitMetadata Naming(int64_t origin, int64_t restart) {
    CommitMetadata story = Story(origin, restart, At(2), At(3));
    story.snapshot = id_.ToString();
    return story;
  }

  std::string folder_;
  SnapshotId id_;
};

TEST_F(SnapshotAssignmentTest, TheNamedOneIsUsedAndTheLogComparedWithIt) {
  auto owned = Prepare(1000, Naming(0, 400).ToString(), {0, 2000});
  ASSERT_OK(owned);
  EXPECT_EQ((*owned)->phase(), Phase::kChecking);
  EXPECT_EQ((*owned)->next(), 899);
  EXPECT_EQ((*owned)->mark().hash, 17u);
  EXPECT_EQ((*owned)->filter_end(), 900);
  EXPECT_EQ((*owned)->timed_records(), 890);
  EXPECT_EQ((*owned)->restore().left(), 100);
  // It goes on being named.
  EXPECT_EQ((*owned)->snapshot(), id_);
}

// (A snapshot of [0, 950), the group reset to 920 with its story: 920 to 949 would look like duplicates.)
TEST_F(SnapshotAssignmentTest, OneThatReachesBeyondTheCommittedOffsetIsNotUsed) {
  EXPECT_EQ((*Prepare(949, Naming(0, 400).ToString(), {0, 2000}))->next(), 400);
  EXPECT_EQ((*Prepare(950, Naming(0, 400).ToString(), {0, 2000}))->next(), 899);
}

// It ends at 950.
TEST_F(SnapshotAssignmentTest, TheYoungestIsUsedForAPlainCommit) {
  auto owned = *Prepare(1000, "", {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kChecking);
  EXPECT_EQ(owned->next(), 899);
  EXPECT_EQ(owned->mark().hash, 17u);
  EXPECT_EQ(owned->filter_end(), 1000);
  EXPECT_EQ(owned->origin().offset, 1000);
  EXPECT_TRUE(owned->short_history());
  EXPECT_EQ(owned->Metadata(absl::Now()).snapshot, "") << "it lacks what comes after it";
  // It would hold ids from behind the commit.
  EXPECT_EQ((*Prepare(949, "", {0, 2000}))->next(), 949);
  EXPECT_EQ((*Prepare(800, "", {0, 2000}))->next(), 800);
  // Its log cannot be compared.
  EXPECT_EQ((*Prepare(1000, "", {900, 2000}))->next(), 1000);
  // Its ids have passed elsewhere.
  options_.output = "another";
  EXPECT_EQ((*Prepare(1000, "", {0, 2000}))->next(), 1000);
}

TEST_F(SnapshotAssignmentTest, LoadingTheYoungestStopsWithTheLane) {
  go_on_ = [] { return false; };
  EXPECT_THAT(Prepare(1000, "", {0, 2000}).status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(SnapshotAssignmentTest, OneThatIsNotOfThisLifeOrCannotBeCheckedOrIsNotNamedIsNotUsed) {
  EXPECT_EQ((*Prepare(1000, Naming(5, 400).ToString(), {0, 2000}))->next(), 400);
  EXPECT_EQ((*Prepare(1000, Naming(0, 950).ToString(), {900, 2000}))->next(), 950);
  EXPECT_EQ((*Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {0, 2000}))->next(), 400);
  CommitMetadata other = Naming(0, 400);
  other.snapshot = SnapshotId::New(900, At(1)).ToString();
  EXPECT_EQ((*Prepare(1000, other.ToString(), {0, 2000}))->next(), 400);
  other.snapshot = "of-a-later-version";
  EXPECT_EQ((*Prepare(1000, other.ToString(), {0, 2000}))->next(), 400);
}

// It is not the log's turn then: a partition of several gigabytes would be read for nothing.
TEST_F(SnapshotAssignmentTest, LoadingStopsAtOnceWithTheLane) {
  int asked = 0;
  go_on_ = [&] { return ++asked > 0; };
  EXPECT_EQ((*Prepare(1000, Naming(0, 400).ToString(), {0, 2000}))->next(), 899);
  EXPECT_GT(asked, 1);
  const int64_t free = stage_->memory().limit_bytes() - stage_->memory().used_bytes();
  for (int last = 1; last < asked; ++last) {
    int left = last;
    go_on_ = [&] { return --left > 0; };
    const absl::Status status = Prepare(1000, Naming(0, 400).ToString(), {0, 2000}).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
    EXPECT_EQ(left, 0) << "asked again after a no";
  }
  EXPECT_EQ(stage_->memory().limit_bytes() - stage_->memory().used_bytes(), free);
}

// With R beyond it, the log is read from there: it is less.
TEST_F(SnapshotAssignmentTest, OneThatIsOlderThanTheRestartPointIsNamedNoMore) {
  auto owned = *Prepare(1000, Naming(0, 400).ToString(), {0, 2000});
  EXPECT_EQ(owned->Metadata(absl::Now()).snapshot, id_.ToString());
  TaskPeer::SetPoints(*owned, {kHorizon, RestartPoint{901, At(2)}});
  EXPECT_EQ(owned->Metadata(absl::Now()).snapshot, "");
}

TEST_F(SnapshotAssignmentTest, OneWhoseLogWasAnotherIsNotTriedAgain) {
  Assigner assigner(flow_, kept_, [](TopicPartition) { return true; });
  const CommittedOffset there = {1000, Naming(0, 400).ToString()};
  EXPECT_EQ((*assigner.Prepare(2, there, {0, 2000}, Uncommitted::kNew, absl::Now()))->next(), 899);
  assigner.Refuse(id_);
  EXPECT_EQ((*assigner.Prepare(2, there, {0, 2000}, Uncommitted::kNew, absl::Now()))->next(), 400);
}

// It is called in the background: the partition may have a new owner by then, which shares the folder.
TEST_F(SnapshotAssignmentTest, SnapshotsOfALaterOwnerStay) {
  const std::string prefix = std::filesystem::directory_iterator(folder_)->path().string();
  const auto path_of = [&](SnapshotId id, const std::string& suffix) {
    return prefix.substr(0, prefix.find(id_.ToString())) + id.ToString() + suffix;
  };
  const std::string named = path_of(SnapshotId::New(1000, At(3)), ".snapshot");
  const std::string under_way = path_of(SnapshotId::New(1100, At(4)), ".snapshot.new");
  const std::string of_a_life_that_was_reset = path_of(SnapshotId::New(200, At(3)), ".snapshot");
  const std::string left_by_a_crash = path_of(SnapshotId::New(850, At(0)), ".snapshot.new");
  for (const std::string& path : {named, under_way, of_a_life_that_was_reset, left_by_a_crash}) {
    std::ofstream(path) << "x";
  }
  ASSERT_OK(snapshots_->store().DropOlder(2, SnapshotId::New(900, At(2)), std::nullopt, true));
  EXPECT_TRUE(std::filesystem::exists(named));
  EXPECT_TRUE(std::filesystem::exists(under_way));
  EXPECT_TRUE(std::filesystem::exists(of_a_life_that_was_reset));
  EXPECT_FALSE(std::filesystem::exists(left_by_a_crash));
  EXPECT_FALSE(std::filesystem::exists(path_of(id_, ".snapshot")));
}

TEST_F(SnapshotAssignmentTest, NothingStaysOfAnAbandonedOne) {
  auto owned = Kept(900);
  const SnapshotId next = SnapshotId::New(900, At(2));
  auto image = owned->filter()->BeginSnapshot({.topic = "orders", .partition = 2}, owned->PointOf(next));
  int left = 0;
  const GoOn go_on = [&] { return --left >= 0; };
  EXPECT_THAT(snapshots_->store().Write(2, next, **image, go_on), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_LT(left, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    EXPECT_THAT(entry.path().string(), HasSubstr(id_.ToString())) << entry.path();
}

TEST_F(SnapshotAssignmentTest, WhatCountsStaysAlone) {
  auto owned = Kept(900);
  const SnapshotId newer = SnapshotId::New(900, At(2));
  auto image = owned->filter()->BeginSnapshot({.topic = "orders", .partition = 2}, owned->PointOf(newer));
  ASSERT_OK(snapshots_->store().Write(2, newer, **image, go_on_));
  std::ofstream(folder_ + "/somebody else's") << "x";
  ASSERT_OK(snapshots_->store().DropOlder(2, newer, id_, true));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names.push_back(entry.path().filename());
  ASSERT_EQ(names.size(), 2u);
  EXPECT_THAT(names[0] + names[1], HasSubstr(newer.ToString()));
  EXPECT_THAT(snapshots_->store().Restore(2, id_, *stage_, go_on_).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(AssignmentTest, ShortHistoryFailsThePartitionWhereTheUserSaysSo) {
  options_.policies.on_short_history = OnShortHistory::kFail;
  auto owned = Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {401, 2000});
  EXPECT_EQ((*owned)->phase(), Phase::kFailed);
  EXPECT_THAT((*owned)->problem(), HasSubstr("on_short_history"));
  EXPECT_NE((*Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {400, 2000}))->phase(), Phase::kFailed);
}

// What the next owner is told by the commits of this one.
TEST_F(AssignmentTest, AHorizonThatWasRaisedIsShortUntilItHasPassedWhateverIsRestarted) {
  options_.stage.horizon = 3 * kHorizon;
  stage_ = *DedupStage::Create(options_.stage);
  auto owned = *Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kRestoring);
  EXPECT_TRUE(owned->short_history());
  for (int restart = 0; restart < 3; ++restart) {
    const CommitMetadata story = owned->Metadata(absl::Now());
    EXPECT_EQ(story.horizon, options_.stage.horizon);
    EXPECT_EQ(story.covered_since, At(2));
    owned = *Prepare(1000, story.ToString(), {0, 2000});
    EXPECT_TRUE(owned->short_history()) << restart;
  }
  // A second raise does not know more.
  CommitMetadata story = Story(0, 400, At(1.5), At(3));
  story.covered_since = At(2);
  EXPECT_EQ((*Prepare(1000, story.ToString(), {0, 2000}))->covered_since(), At(2));
  // The horizon has gone by since.
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(5)));
  EXPECT_FALSE(owned->short_history());
  story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.covered_since, absl::InfinitePast());
  // From the group's beginning on everything is known.
  EXPECT_EQ((*Prepare(1000, Story(400, 400, At(2), At(3)).ToString(), {0, 2000}))->covered_since(),
            absl::InfinitePast());
}

TEST_F(AssignmentTest, ShortHistoryFailsWhateverItCameFromWhereTheUserSaysSo) {
  const CommitMetadata lower = Story(0, 400, At(2), At(3));
  CommitMetadata carried = Story(0, 400, At(2), At(3));
  carried.covered_since = At(2.5);
  CommitMetadata past = carried;
  past.covered_since = At(2);
  for (const OnShortHistory policy : {OnShortHistory::kContinue, OnShortHistory::kFail}) {
    options_.policies.on_short_history = policy;
    const Phase phase = policy == OnShortHistory::kFail ? Phase::kFailed : Phase::kRestoring;
    options_.stage.horizon = kHorizon;
    const auto told = *Prepare(1000, carried.ToString(), {0, 2000});
    EXPECT_EQ(told->phase(), phase);
    EXPECT_EQ((*Prepare(1000, past.ToString(), {0, 2000}))->phase(), Phase::kRestoring);
    options_.stage.horizon = 2 * kHorizon;
    const auto raised = *Prepare(1000, lower.ToString(), {0, 2000});
    EXPECT_EQ(raised->phase(), phase);
    if (policy == OnShortHistory::kContinue) continue;
    EXPECT_THAT(raised->problem(), HasSubstr("the horizon was raised from 1h to 2h"));
    EXPECT_THAT(raised->problem(), HasSubstr("go back to the former horizon"));
    EXPECT_THAT(raised->problem(), HasSubstr("set on_short_history to continue"));
    EXPECT_THAT(told->problem(), HasSubstr("2023-11-15 00:43:20 UTC"));
  }
}

// Of a group whose stream time was moved to the year 2056 before it was bounded: the restart offset is the
// last one before, and the log from there tells the time.
TEST_F(AssignmentTest, StreamTimesOfTheFutureAreNotBelieved) {
  const absl::Time far = absl::Now() + 30 * 365 * absl::Hours(24);
  auto owned = *Prepare(1000, Story(0, 400, At(2), far).ToString(), {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kRestoring);
  EXPECT_EQ(owned->next(), 400);
  EXPECT_EQ(owned->filter()->stream_time(), At(2));
  EXPECT_EQ(owned->time_at_committed(), absl::InfiniteFuture());
  EXPECT_TRUE(owned->short_history());
  TaskPeer::KnowsSinceStreamTime(*owned);
  EXPECT_EQ(owned->covered_since(), At(2));

  // R itself was noted too late. What covers the horizon is known when the log has told the time.
  owned = *Prepare(1000, Story(0, 400, far, far).ToString(), {0, 2000});
  EXPECT_EQ(owned->filter()->stream_time(), absl::InfinitePast());
  EXPECT_TRUE(owned->short_history());
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(3)));
  TaskPeer::KnowsSinceStreamTime(*owned);
  EXPECT_EQ(owned->covered_since(), At(3));
  EXPECT_TRUE(owned->short_history());

  // From the origin on everything is known.
  EXPECT_FALSE(
      (*Prepare(1000, Story(400, 400, absl::InfinitePast(), far).ToString(), {0, 2000}))->short_history());
  // Neither a filter that is kept, nor other times of the same commit.
  kept_.Put(Kept(900), SteadyNow());
  CommitMetadata story = Story(100, 400, At(2), far);
  story.covered_since = far;
  story.growth = {kPartitions, 300, far};
  owned = *Prepare(1000, story.ToString(), {0, 2000});
  EXPECT_EQ(owned->next(), 400);
  EXPECT_EQ(owned->growth().time, absl::InfinitePast());
  EXPECT_LE(owned->covered_since(), absl::Now() + options_.max_future);
  // One that is believed bounds the replay.
  EXPECT_EQ((*Prepare(1000, Story(0, 400, At(2), At(3)).ToString(), {0, 2000}))->time_at_committed(), At(3));
  // By policy the partition stops, as with any short history.
  options_.policies.on_short_history = OnShortHistory::kFail;
  EXPECT_EQ((*Prepare(1000, Story(0, 400, At(2), far).ToString(), {0, 2000}))->phase(), Phase::kFailed);
}

TEST_F(AssignmentTest, ASnapshotOfATimeThatIsNotBelievedIsNotUsed) {
  const absl::Time far = absl::Now() + 30 * 365 * absl::Hours(24);
  CommitMetadata story = Story(0, 400, At(2), far);
  story.snapshot = SnapshotId::New(900, At(2)).ToString();
  EXPECT_TRUE(story.DropTimesAfter(absl::Now()));
  EXPECT_EQ(story.snapshot, "");
  EXPECT_FALSE(story.DropTimesAfter(absl::Now()));
}

// What is only copied to be judged is not remembered.
TEST_F(AssignmentTest, RoutingNeedsNoHistory) {
  options_.half.routing.emplace();
  options_.scope = Scope::kTopic;
  options_.policies.on_short_history = OnShortHistory::kFail;
  CommitMetadata story = Story(0, 400, At(2), At(3));
  story.id_fingerprint = IdFingerprint(options_, kPartitions);
  auto owned = *Prepare(1000, story.ToString(), {401, 2000});
  EXPECT_EQ(owned->phase(), Phase::kRestoring);
  EXPECT_EQ(owned->next(), 401);
  options_.stage.horizon = 2 * kHorizon;
  owned = *Prepare(1000, story.ToString(), {0, 2000});
  EXPECT_EQ(owned->phase(), Phase::kRestoring);
  EXPECT_FALSE(owned->short_history());
}

TEST_F(SnapshotAssignmentTest, OneOfAShortHistoryIsUsedUnlessTheUserSaysNo) {
  auto owned = Kept(900);
  TaskPeer::SetCoveredSince(*owned, At(2.5));
  Save(*owned, At(2));
  const std::string story = Naming(0, 400).ToString();
  EXPECT_EQ((*Prepare(1000, story, {0, 2000}))->covered_since(), At(2.5));
  EXPECT_EQ((*Prepare(1000, story, {0, 2000}))->phase(), Phase::kChecking);
  options_.policies.on_short_history = OnShortHistory::kFail;
  EXPECT_EQ((*Prepare(1000, story, {0, 2000}))->phase(), Phase::kFailed);
}

// The topic has kPartitions now.
TEST_F(AssignmentTest, ACommitThatNamesFewerPartitionsShowsGrowth) {
  CommitMetadata story = Story(0, 400, At(2), At(3));
  EXPECT_FALSE((*Prepare(1000, story.ToString(), {0, 2000}))->keys_moved());
  story.origin.partitions = 2;
  auto owned = *Prepare(1000, story.ToString(), {0, 2000});
  EXPECT_TRUE(owned->keys_moved());
  EXPECT_EQ(owned->growth().partitions, kPartitions);
  EXPECT_EQ(owned->growth().offset, 2000) << "what is in the log may have been sent before";
  // A restart knows of it, and does not take it for new.
  story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.origin.partitions, 2) << "by which partitions are known that were added";
  owned = *Prepare(1000, story.ToString(), {0, 3000});
  EXPECT_EQ(owned->growth().offset, 2000);
  TaskPeer::SetEnd(*owned, 2000);
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(4)));
  story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.growth.time, At(4));
  owned = *Prepare(2000, story.ToString(), {0, 3000});
  EXPECT_TRUE(owned->keys_moved());
  for (int i = 0; i < 101; ++i) EXPECT_OK(owned->filter()->Observe(At(5)));
  EXPECT_FALSE(owned->keys_moved());
  story = owned->Metadata(absl::Now());
  EXPECT_EQ(story.growth.offset, -1);
  EXPECT_EQ(story.growth.partitions, kPartitions);
  EXPECT_FALSE((*Prepare(2500, story.ToString(), {0, 3000}))->keys_moved());
  // With scope: topic copies meet elsewhere.
  options_.scope = Scope::kTopic;
  story.growth = {};
  EXPECT_FALSE((*Prepare(2500, story.ToString(), {0, 3000}))->keys_moved());
}

TEST_F(AssignmentTest, APartitionThatWasAddedMayHaveTheKeysOfOthers) {
  EXPECT_FALSE((*Prepare(-1, "", {0, 1000}))->keys_moved());
  auto owned = *Prepare(-1, "", {0, 1000}, Uncommitted::kAdded);
  EXPECT_TRUE(owned->keys_moved());
  EXPECT_EQ(owned->growth().offset, 0);
  EXPECT_EQ(owned->Metadata(absl::Now()).growth.partitions, kPartitions);
}

// A lane that stays as it is, while others are given what is new.
TEST_F(AssignmentTest, GrowthIsNotedWhileAPartitionIsOwned) {
  Assigner assigner(flow_, kept_, [](TopicPartition) { return true; });
  auto owned = *assigner.Prepare(2, {1000, Story(0, 400, At(2), At(3)).ToString()}, {0, 2000},
                                 Uncommitted::kNew, absl::Now());
  EXPECT_FALSE(assigner.HasGrownFor(*owned));
  assigner.SetPartitions(kPartitions - 1);  // by a broker that has not heard of all of them
  EXPECT_FALSE(assigner.HasGrownFor(*owned));
  assigner.SetPartitions(kPartitions + 1);
  EXPECT_TRUE(assigner.HasGrownFor(*owned));
  assigner.NoteGrowth(*owned, 2100);
  EXPECT_FALSE(assigner.HasGrownFor(*owned));
  EXPECT_TRUE(owned->keys_moved());
  EXPECT_EQ(owned->growth().offset, 2100);
}

TEST_F(AssignmentTest, UnreadDeletedRecordsArePassedOverWhereTheUserSaysSo) {
  options_.policies.on_unread_deleted = OnUnreadDeleted::kContinue;
  const std::string story = Story(0, 400, At(2), At(3)).ToString();
  for (const bool kept : {false, true}) {
    if (kept) kept_.Put(Kept(900), SteadyNow());
    auto owned = Prepare(1000, story, {1100, 2000});
    EXPECT_EQ((*owned)->phase(), Phase::kActive);
    EXPECT_EQ((*owned)->next(), 1100);
    EXPECT_EQ((*owned)->committed(), 1100);
    EXPECT_EQ((*owned)->unread_deleted(), 100);
    EXPECT_TRUE((*owned)->short_history());
  }
  EXPECT_EQ((*Prepare(1000, "", {1100, 2000}))->origin().offset, 1100);
}

}  // namespace
}  // namespace lethe
