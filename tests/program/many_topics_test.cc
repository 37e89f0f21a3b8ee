// Several topics in one worker: what they share, and what is each one's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/input_watch.h"
#include "src/pipeline/worker.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/life.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

using test::At;
using test::FakeCluster;
using test::FakeRecord;
using test::Life;

class ManyTopicsTest : public testing::Test {
 protected:
  ManyTopicsTest() {
    orders_.input = "orders";
    orders_.output = "orders-unique";
    orders_.process.group = "lethe";
    orders_.process.commit_interval = absl::ZeroDuration();
    orders_.record.id = *IdSpec::Parse("json:/id");
    clicks_ = orders_;
    clicks_.input = "clicks";
    clicks_.output = "clicks-unique";
    clicks_.record.id = *IdSpec::Parse("key");
    cluster_.output_partitions = 2;
  }

  void Send(At partition, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const std::string value = partition.flow == 0 ? absl::StrCat(R"({"id":")", id, R"("})") : "a click";
      cluster_.Append(partition, {id, value, 1'700'000'000'000});
    }
  }
  // The keys of what was committed to a flow's output.
  std::string Out(int32_t flow) const {
    std::string keys;
    for (const FakeCluster::Written& each : cluster_.output) {
      if (each.target.flow == flow) absl::StrAppend(&keys, keys.empty() ? "" : " ", *each.record.key);
    }
    return keys;
  }
  std::unique_ptr<Life> Start() {
    auto life = std::make_unique<Life>(cluster_, orders_);
    life->AddFlow(clicks_, 2);
    return life;
  }

  FakeCluster cluster_;
  DaemonOptions orders_;
  DaemonOptions clicks_;
};

TEST_F(ManyTopicsTest, EachHasItsOwnIdsInOneTransaction) {
  Send({0, 0}, {"a", "b", "a"});
  Send({1, 0}, {"a", "a", "c"});
  const auto life = Start();
  const Task& orders = life->Assign({0, 0});
  const Task& clicks = life->Assign({1, 0});
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a b");
  EXPECT_EQ(Out(1), "a c");
  EXPECT_EQ(orders.counts().duplicate, 1);
  EXPECT_EQ(clicks.counts().duplicate, 1);
  EXPECT_EQ(clicks.Name(), "clicks-0");
  EXPECT_EQ(life->sink.commits, 3) << "both starts, and one for all records";
}

TEST_F(ManyTopicsTest, AnAbortForgetsThoseOfAllAndARestartGoesOnInEach) {
  Send({0, 1}, {"a", "b"});
  Send({1, 0}, {"a", "a"});
  {
    const auto life = Start();
    life->Assign({0, 1});
    life->Assign({1, 0});
    life->sink.fail_commits = 1;
    ASSERT_OK(life->Run());
    EXPECT_EQ(life->sink.aborts, 1);
  }
  Send({0, 1}, {"b", "c"});
  Send({1, 0}, {"b", "a"});
  const auto life = Start();
  const Task& orders = life->Assign({0, 1});
  const Task& clicks = life->Assign({1, 0});
  life->sink.lose_answers = 1;
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a b c");
  EXPECT_EQ(Out(1), "a b");
  EXPECT_EQ(orders.counts().suppressed, 2);
  EXPECT_EQ(clicks.counts().suppressed, 2);
  EXPECT_EQ(cluster_.committed.at({0, 1}).offset, 4);
  EXPECT_EQ(cluster_.committed.at({1, 0}).offset, 4);
}

TEST_F(ManyTopicsTest, EachHasItsOwnPolicies) {
  orders_.policies.on_duplicate = Action::kTag;
  clicks_.policies.on_missing_id = Action::kFail;
  Send({0, 0}, {"a", "a"});
  Send({1, 0}, {"a"});
  cluster_.Append(At(1, 0), {std::nullopt, "no key", 1'700'000'000'000});
  Send({1, 1}, {"b", "b"});
  const auto life = Start();
  const Task& orders = life->Assign({0, 0});
  const Task& stopped = life->Assign({1, 0});
  const Task& other = life->Assign({1, 1});
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a a");
  EXPECT_EQ(Out(1), "a b");
  EXPECT_EQ(orders.counts().tagged, 1);
  EXPECT_EQ(stopped.phase(), Phase::kFailed);
  EXPECT_EQ(stopped.committed(), 1);
  EXPECT_EQ(other.phase(), Phase::kActive);
}

TEST_F(ManyTopicsTest, ARefusedRecordOfOneIsNotLookedForInTheOthers) {
  Send({0, 0}, {"a", "b"});
  Send({1, 0}, {"bad", "b"});
  const auto life = Start();
  const Task& orders = life->Assign({0, 0});
  const Task& clicks = life->Assign({1, 0});
  life->sink.refuses = [](const FakeRecord& record) { return record.key == "bad"; };
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a b");
  EXPECT_EQ(Out(1), "b");
  EXPECT_EQ(orders.counts().undeliverable, 0);
  EXPECT_EQ(clicks.counts().undeliverable, 1);
}

TEST_F(ManyTopicsTest, WhatIsRevokedOfOneStaysOfTheOther) {
  Send({0, 0}, {"a"});
  Send({1, 0}, {"a"});
  const auto life = Start();
  life->Assign({0, 0});
  life->Assign({1, 0});
  life->source.on_idle = [&] {
    if (!life->tasks.contains({1, 0})) return life->stop.Request();
    life->source.Tell(SourceEvent::Kind::kRevoked, {At(1, 0)});
  };
  ASSERT_OK(life->Run());
  EXPECT_TRUE(life->tasks.contains({0, 0}));
  EXPECT_NE(life->kept.Take({1, 0}), nullptr);
  EXPECT_EQ(life->kept.Take({0, 0}), nullptr);
}

TEST_F(ManyTopicsTest, AnOutputThatFailsHoldsItsOwnPartitionsAlone) {
  Send({0, 0}, {"a", "b"});
  Send({1, 0}, {"a"});
  Send({1, 1}, {"b"});
  const auto life = Start();
  const Task& orders = life->Assign({0, 0});
  const Task& first = life->Assign({1, 0});
  const Task& second = life->Assign({1, 1});
  life->sink.bad_outputs = {1};
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a b");
  EXPECT_EQ(Out(1), "");
  EXPECT_EQ(orders.phase(), Phase::kActive);
  for (const Task* task : {&first, &second}) {
    EXPECT_EQ(task->phase(), Phase::kHeld) << task->Name();
    EXPECT_EQ(task->committed(), 0);
    EXPECT_THAT(task->problem(), HasSubstr("the topic is missing"));
  }
  EXPECT_LE(life->sink.aborts, 2) << "the others do not wait for it again and again";
}

// One came after the topic was created again, the other one was owned all the time.
TEST_F(ManyTopicsTest, APartitionOfAFormerTopicStopsBesideOneOfThePresent) {
  const auto life = Start();
  test::ManualClock clock;
  WorkerState state{0, life->stop, clock};
  InputWatch watch({life->shared, state, life->tasks, life->source, life->sink, life->answers},
                   life->worker.ownership());
  life->answers.topic_id = "created again";
  const Task& present = life->Assign({0, 0});
  life->answers.topic_id = "former";
  const Task& former = life->Assign({0, 1});
  life->answers.topic_id = "created again";
  for (int i = 0; i < 3; ++i) {
    watch.Look();
    clock.Pass(absl::Seconds(10));
  }
  EXPECT_EQ(present.phase(), Phase::kActive);
  EXPECT_EQ(former.phase(), Phase::kFailed);
}

// Its other partition belongs to another lane, which has not committed for it, either.
TEST_F(ManyTopicsTest, ATopicThatWasRefusedAtItsAssignmentIsNotTakenForOneWithoutAnOwner) {
  for (const bool is_refused : {false, true}) {
    const auto life = Start();
    test::ManualClock clock;
    WorkerState state{0, life->stop, clock};
    InputWatch watch({life->shared, state, life->tasks, life->source, life->sink, life->answers},
                     life->worker.ownership());
    life->worker.ownership().Assign({At(0, 0), At(0, 1)});
    Task& clicks = life->Assign({1, 0});
    if (is_refused) clicks.Fail("its totals are ahead of the group");
    life->flows.at(1).SetTopics({});  // known before the topic had its partitions
    for (int i = 0; i < 10; ++i) {
      watch.Look();
      clock.Pass(absl::Seconds(10));
    }
    EXPECT_EQ(life->source.rejoins > 0, !is_refused);
    EXPECT_EQ(watch.Unreadable().empty(), is_refused);
  }
}

TEST_F(ManyTopicsTest, WithoutAnotherTopicAnOutputThatFailsIsTriedAgain) {
  Send({1, 0}, {"a"});
  const auto life = Start();
  const Task& clicks = life->Assign({1, 0});
  life->sink.bad_outputs = {1};
  life->sink.on_commit = [&] {
    if (life->sink.aborts == 3) life->sink.bad_outputs.clear();
  };
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(1), "a");
  EXPECT_EQ(clicks.phase(), Phase::kActive);
}

TEST_F(ManyTopicsTest, CommitsThatDoNotFitStopTheirTopicAlone) {
  Send({0, 0}, {"a"});
  Send({1, 0}, {"a"});
  {
    const auto life = Start();
    life->Assign({1, 0});
    ASSERT_OK(life->Run());
  }
  clicks_.record.id = *IdSpec::Parse("value");  // earlier ids would not be recognized
  const auto life = Start();
  const Task& orders = life->Assign({0, 0});
  const Task& clicks = life->Assign({1, 0});
  ASSERT_OK(life->Run());
  EXPECT_EQ(clicks.phase(), Phase::kFailed);
  EXPECT_THAT(clicks.problem(), HasSubstr("another id"));
  EXPECT_EQ(orders.committed(), 1);
  EXPECT_FALSE(life->source.positions.contains({1, 0}));
}

TEST_F(ManyTopicsTest, ATopicThatComesLaterIsSubscribedTo) {
  Send({0, 0}, {"a"});
  Send({1, 0}, {"a"});
  auto life = std::make_unique<Life>(cluster_, orders_);
  life->Assign({0, 0});
  life->source.on_idle = [&] {
    if (life->flows.size() == 1) {
      life->AddFlow(clicks_, 2);
    } else if (life->source.resubscriptions == 1 && !life->tasks.contains({1, 0})) {
      life->source.Tell(SourceEvent::Kind::kAssigned, {At(1, 0)});
    } else if (life->IsAtEnd() && !life->worker.transactions().is_open() && Out(1) == "a") {
      life->stop.Request();
    }
  };
  ASSERT_OK(life->Run());
  EXPECT_EQ(Out(0), "a");
  EXPECT_EQ(Out(1), "a");
  EXPECT_EQ(life->source.resubscriptions, 1);
}

// What it cannot take in half a second waits for the next transaction, in its order.
TEST_F(ManyTopicsTest, ASlowOutputFillsLittleOfATransaction) {
  constexpr int kFirst = 2'000;
  constexpr int kAll = 8'000;
  const auto send = [&](int first, int last) {
    for (int i = first; i < last; ++i) {
      Send({1, i % 2}, {absl::StrCat("click-", i)});
      Send({1, i % 2}, {absl::StrCat("click-", i)});
      if (i % 10 == 0) Send({0, 0}, {absl::StrCat("order-", i)});
    }
  };
  send(0, kFirst);
  const auto life = Start();
  for (const At partition : {At(0, 0), At(1, 0), At(1, 1)}) life->Assign(partition);
  life->sink.bytes_per_second[1] = 20'000;
  constexpr int64_t kHalfASecond = 10'000;
  constexpr int64_t kRecord = 20;
  int rounds = 0;
  int slow_rounds = 0;
  bool has_failed = false;
  life->sink.on_commit = [&] {
    const auto sizes = life->sink.SizeByFlow();
    const auto clicks = sizes.find(1);
    if (clicks == sizes.end()) return;
    if (++rounds == 1) return;  // the first cannot know
    EXPECT_LE(clicks->second.bytes, kHalfASecond + kRecord);
    ++slow_rounds;
    // An abort brings them again, too.
    if (slow_rounds == 3 && !std::exchange(has_failed, true)) life->sink.fail_commits = 1;
  };
  int idle_rounds = 0;
  life->source.on_idle = [&] {
    if (life->worker.transactions().is_open() || !life->IsAtEnd()) return;
    if (idle_rounds++ == 0) return send(kFirst, kAll);
    life->stop.Request();
  };
  ASSERT_OK(life->Run());
  EXPECT_TRUE(has_failed);
  EXPECT_GE(slow_rounds, 5);
  for (const int32_t partition : {0, 1}) {
    int next = partition;
    for (const FakeCluster::Written& each : cluster_.output) {
      if (each.target.flow != 1 || each.partition != partition) continue;
      ASSERT_EQ(*each.record.key, absl::StrCat("click-", next));
      next += 2;
    }
    EXPECT_EQ(next, kAll + partition);
  }
}

TEST_F(ManyTopicsTest, AnAssignmentAsksOfAllTopicsAtOnceAndCommitsTheirStartTogether) {
  Send({0, 0}, {"a"});
  Send({1, 1}, {"a"});
  const auto life = Start();
  ASSERT_OK(life->worker.Open());
  life->worker.ownership().Assign({At(0, 0), At(0, 1), At(1, 0), At(1, 1)});
  EXPECT_EQ(life->sink.commits, 1);
  EXPECT_EQ(life->answers.questions, 3) << "committed offsets, those of the other scope, and the logs";
  EXPECT_EQ(cluster_.committed.size(), 4u);
  for (const auto& [id, task] : life->tasks) EXPECT_EQ(task->phase(), Phase::kActive) << task->Name();
  life->answers.questions = 0;
  life->worker.Step();
  EXPECT_EQ(life->answers.questions, 1) << "the number of partitions of all topics";
}

TEST_F(ManyTopicsTest, TheTimesOfShortLogsAreAskedForTogether) {
  for (const At partition : {At(0, 0), At(0, 1), At(1, 0)}) Send(partition, {"a", "b"});
  {
    const auto life = Start();
    for (const At partition : {At(0, 0), At(0, 1), At(1, 0)}) life->Assign(partition);
    ASSERT_OK(life->Run());
  }
  for (const At partition : {At(0, 0), At(0, 1), At(1, 0)}) cluster_.DeleteBefore(partition, 1);
  const auto life = Start();
  life->worker.ownership().Assign({At(0, 0), At(0, 1), At(1, 0)});
  EXPECT_EQ(life->answers.questions, 4);
  for (const auto& [id, task] : life->tasks) {
    EXPECT_EQ(task->phase(), Phase::kRestoring) << task->Name();
    EXPECT_EQ(task->covered_since(), absl::InfinitePast()) << "the log reaches back over the horizon";
  }
}

TEST_F(ManyTopicsTest, ATopicWithoutAnAnswerStopsAloneUntilThereIsOne) {
  Send({0, 0}, {"a"});
  const auto life = Start();
  life->answers.bad_topics["clicks"] = absl::NotFoundError("clicks does not exist");
  life->worker.ownership().Assign({At(0, 0), At(1, 0)});
  EXPECT_OK(life->state.fatal);
  EXPECT_EQ(life->tasks.at({0, 0})->phase(), Phase::kActive);
  EXPECT_EQ(life->tasks.at({1, 0})->phase(), Phase::kFailed);
  EXPECT_FALSE(life->source.positions.contains({1, 0}));
  life->worker.ownership().LookForAnswers();
  EXPECT_FALSE(life->worker.ownership().TakeRejoin());
  life->answers.bad_topics.clear();
  life->worker.ownership().LookForAnswers();
  EXPECT_TRUE(life->worker.ownership().TakeRejoin());
}

TEST_F(ManyTopicsTest, ATopicThatIsDeletedBeforeItsStartIsCommittedStopsAlone) {
  Send({0, 0}, {"a"});
  const auto life = Start();
  life->sink.fail_commits = 1;
  life->sink.on_commit = [&] { life->answers.bad_topics["clicks"] = absl::NotFoundError("no such topic"); };
  life->worker.ownership().Assign({At(0, 0), At(1, 0), At(1, 1)});
  EXPECT_OK(life->state.fatal);
  EXPECT_EQ(life->tasks.at({0, 0})->phase(), Phase::kActive);
  EXPECT_EQ(life->tasks.at({1, 0})->phase(), Phase::kFailed);
  EXPECT_EQ(life->tasks.at({1, 1})->phase(), Phase::kFailed);
  EXPECT_TRUE(cluster_.committed.contains({0, 0}));
  EXPECT_FALSE(cluster_.committed.contains({1, 0}));
}

// A rebalance must not take longer than a session: the metadata of a commit is parsed for its own partition,
// not for each of the others.
TEST_F(ManyTopicsTest, TenThousandPartitionsAreAssigned) {
  constexpr int32_t kMany = 10'000;
  orders_.stage.engine = Engine::kExact;
  orders_.stage.memory_limit_bytes = int64_t{4} << 30;
  std::vector<TopicPartition> all;
  for (int32_t partition = 0; partition < kMany; ++partition) {
    all.push_back({0, partition});
    Send({0, partition}, {"a"});
  }
  cluster_.output_partitions = kMany;
  for (int pass = 0; pass < 2; ++pass) {
    Life life(cluster_, orders_, kMany);
    const clock_t begin = clock();
    life.worker.ownership().Assign(all);
    std::printf("[ %d partitions ] %.2f s of CPU with %d commits\n", kMany,
                static_cast<double>(clock() - begin) / CLOCKS_PER_SEC, pass * kMany);
    ASSERT_OK(life.state.fatal);
    EXPECT_EQ(life.source.positions.size(), static_cast<size_t>(kMany));
  }
}

}  // namespace
}  // namespace lethe
