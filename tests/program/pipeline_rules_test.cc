// The rules of exactly-once (connectors/kafka/EXACTLY_ONCE.md) on the loop itself, with a cluster in memory:
// what a broker does is played, what the loop does with it is real.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/output/routed_record.h"
#include "src/pipeline/worker.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/life.h"
#include "tests/support/log_of.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/support/task_peer.h"

namespace lethe {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using test::FakeCluster;
using test::FakeEntry;
using test::FakeRecord;
using test::Life;

class PipelineRulesTest : public testing::Test {
 protected:
  PipelineRulesTest() {
    options_.input = "orders";
    options_.output = "unique";
    options_.process.group = "lethe";
    options_.process.commit_interval = absl::ZeroDuration();
    options_.record.id = *IdSpec::Parse("json:/id");
    cluster_.output_partitions = 2;
  }

  static FakeRecord Event(const std::string& id, int64_t time_ms = 1'700'000'000'000) {
    return {id, absl::StrCat(R"({"id":")", id, R"("})"), time_ms};
  }
  void Send(const std::vector<std::string>& ids, int32_t partition = 0) {
    for (const std::string& id : ids) cluster_.Append(partition, Event(id));
  }
  // The keys of what was committed to a target, in order: "a b c".
  std::string Out(Target::Kind kind = Target::Kind::kOutput) const {
    std::string keys;
    for (const FakeCluster::Written& each : cluster_.output) {
      if (each.target.kind == kind) absl::StrAppend(&keys, keys.empty() ? "" : " ", *each.record.key);
    }
    return keys;
  }
  // Another life that reads partition 0, from what is committed, to its end; returns its counts.
  RecordCounts Restart() {
    Life life(cluster_, options_);
    const Task& task = life.Assign(0);
    EXPECT_OK(life.Run()) << life.state.fatal;
    problem_ = task.problem();
    return task.counts();
  }

  FakeCluster cluster_;
  DaemonOptions options_;
  std::string problem_;
};

TEST_F(PipelineRulesTest, EachEventOnce) {
  Send({"a", "b", "a", "c", "b"});
  const RecordCounts counts = Restart();
  EXPECT_EQ(Out(), "a b c");
  EXPECT_EQ(counts.unique, 3);
  EXPECT_EQ(counts.duplicate, 2);
}

// A restart reads a horizon of the log again, and so knows the last copies.
TEST_F(PipelineRulesTest, ACopyRenewsItsIdThroughRestarts) {
  constexpr int64_t kSecond = 1000;
  options_.stage.horizon = absl::Seconds(1000);
  options_.stage.engine = Engine::kExact;
  const auto passes = [&](bool renew) {
    cluster_ = FakeCluster();
    cluster_.output_partitions = 2;
    options_.stage.renew = renew;
    int64_t at = 1'700'000'000'000;
    for (int i = 0; i < 5; ++i) {
      cluster_.Append(0, Event("busy", at));
      for (int other = 0; other < 600; ++other) {  // they move stream time
        cluster_.Append(0, Event(absl::StrCat(i, "-", other), at += kSecond));
      }
      if (renew) Restart();
    }
    Restart();
    return std::count_if(cluster_.output.begin(), cluster_.output.end(),
                         [](const FakeCluster::Written& each) { return each.record.key == "busy"; });
  };
  EXPECT_EQ(passes(true), 1);
  EXPECT_GE(passes(false), 2);
}

TEST_F(PipelineRulesTest, Rule1WhatWasNotCommittedIsNotRemembered) {
  Send({"a", "b", "a"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.fail_commits = 2;
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(life.sink.aborts, 2);
  EXPECT_EQ(task.counts().unique, 2) << "what was judged three times counts once";
  EXPECT_EQ(task.counts().duplicate, 1);
}

TEST_F(PipelineRulesTest, Rule1AWriteThatFailsMakesNoCopies) {
  Send({"a", "b", "c"});
  Life life(cluster_, options_);
  life.Assign(0);
  life.sink.fail_writes = 1;
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c");
}

// Four hours in a backlog, each event again after two, at a horizon of one.
TEST_F(PipelineRulesTest, Rule28ABacklogLosesNothingWhereverTransactionsEnd) {
  options_.stage.horizon = absl::Hours(1);
  options_.stage.engine = Engine::kExact;
  for (const absl::Duration interval : {absl::ZeroDuration(), absl::Milliseconds(500)}) {
    cluster_ = FakeCluster();
    cluster_.output_partitions = 2;
    options_.process.commit_interval = interval;
    for (int i = 0; i < 14'400; ++i) {
      cluster_.Append(0, Event(absl::StrCat(i % 7200), 1'700'000'000'000 + i * int64_t{1000}));
    }
    EXPECT_EQ(Restart().unique, 14'400) << "a transaction takes " << interval;
  }
}

TEST_F(PipelineRulesTest, Rule2AFilterThatWasKeptRecognizesItsLog) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  Task& task = life.Assign(0);
  life.on_look = [&, is_kept = false]() mutable {
    if (is_kept || task.committed() != 2) return;
    is_kept = true;  // it was away, and comes back
    Send({"a", "c"});
    TaskPeer::Check(task);
    life.source.positions[0] = task.mark().offset;
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c");
  EXPECT_EQ(task.counts().suppressed, 0) << "nothing was read again";
}

TEST_F(PipelineRulesTest, Rule2AFilterOfAnotherLogIsRebuilt) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  Task& task = life.Assign(0);
  life.on_look = [&] {
    if (task.committed() != 2 || task.phase() != Phase::kActive) return;
    cluster_.logs[0].entries[1].record = Event("other");
    TaskPeer::Check(task);
    life.source.positions[0] = task.mark().offset;
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.phase(), Phase::kFailed) << "and that log is not the one of the commit, either";
}

// An operator skips records. Those have not passed, so that their retries must pass; those before have.
TEST_F(PipelineRulesTest, Rule6AResetForwardForgetsWhatItSkips) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task* task = &life.Assign(0);
  life.on_look = [&, is_reset = false]() mutable {
    if (is_reset || task->committed() != 2) return;
    is_reset = true;  // while the filter is kept
    life.Revoke({0}, /*lost=*/false);
    Send({"skipped", "too"});
    cluster_.committed[0] = {{0, 0}, 4, ""};
    Send({"b", "skipped", "c"});
    task = &life.Assign(0);
    EXPECT_TRUE(task->short_history());
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b skipped c");
  EXPECT_TRUE(task->short_history());
  // Nor does a restart remember them.
  Send({"too", "c"});
  Restart();
  EXPECT_EQ(Out(), "a b skipped c too");
}

TEST_F(PipelineRulesTest, Rule6AResetToTheSameOffsetLosesNothing) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task* task = &life.Assign(0);
  life.on_look = [&, is_reset = false]() mutable {
    if (is_reset || task->committed() != 2) return;
    is_reset = true;
    life.Revoke({0}, /*lost=*/false);
    cluster_.committed[0] = {{0, 0}, 2, ""};
    Send({"b", "c"});
    task = &life.Assign(0);
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c");
  EXPECT_FALSE(task->short_history());
  Send({"a", "d"});
  Restart();
  EXPECT_EQ(Out(), "a b c d") << "the life goes on";
}

TEST_F(PipelineRulesTest, Rule6AResetBackIsABeginning) {
  Send({"a", "b", "c"});
  Life life(cluster_, options_);
  const Task* task = &life.Assign(0);
  life.on_look = [&, is_reset = false]() mutable {
    if (is_reset || task->committed() != 3) return;
    is_reset = true;
    life.Revoke({0}, /*lost=*/false);
    cluster_.committed[0] = {{0, 0}, 1, ""};
    task = &life.Assign(0);
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c b c");
  EXPECT_TRUE(task->short_history());
}

TEST_F(PipelineRulesTest, Rule6AFilterOfAnotherLogIsNotUsedAfterAReset) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task* task = &life.Assign(0);
  life.on_look = [&, is_reset = false]() mutable {
    if (is_reset || task->committed() != 2) return;
    is_reset = true;
    life.Revoke({0}, /*lost=*/false);
    cluster_.logs[0].entries[1].record = Event("other");
    Send({"skipped"});
    cluster_.committed[0] = {{0, 0}, 3, ""};
    Send({"a", "c"});
    task = &life.Assign(0);
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b a c");
  EXPECT_TRUE(life.tasks.at({0, 0})->short_history());
}

TEST_F(PipelineRulesTest, Rule3APartitionStopsOnAnotherLogThanThatOfItsCommit) {
  Send({"a", "b"});
  Restart();
  cluster_.logs[0].entries[1].record = Event("other");  // cut, and grown again
  Send({"c"});
  Restart();
  EXPECT_THAT(problem_, HasSubstr("not the record that lethe judged"));
  EXPECT_EQ(Out(), "a b");
}

TEST_F(PipelineRulesTest, Rule4ARecordThatIsRefusedFailsAlone) {
  Send({"a", "bad", "b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.refuses = [](const FakeRecord& record) { return record.key == "bad"; };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(task.counts().undeliverable, 1);
  EXPECT_EQ(task.counts().dropped, 1);
  EXPECT_EQ(task.counts().unique, 2);
}

// However often they are judged again.
TEST_F(PipelineRulesTest, Rule4EachLostRecordIsLoggedOnce) {
  Send({"a", "bad 1", "bad 2", "b", "bad 3", "bad 4", "bad 5", "c", "bad 6"});
  const std::string said = LogOf(spdlog::level::err, [&] {
    Life life(cluster_, options_);
    life.Assign(0);
    life.sink.refuses = [](const FakeRecord& record) { return absl::StartsWith(*record.key, "bad"); };
    ASSERT_OK(life.Run());
  });
  EXPECT_EQ(Out(), "a b c");
  std::set<int64_t> lost;
  for (const absl::string_view line : absl::StrSplit(said, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(": offsets ", 1));
    if (parts.second.empty()) continue;
    EXPECT_THAT(std::string(line), StartsWith(absl::StrCat(options_.input, "-0: ")));
    for (const absl::string_view range : absl::StrSplit(parts.second, ", ")) {
      const std::vector<std::string> ends = absl::StrSplit(range, '-');
      int64_t first = 0, last = 0;
      ASSERT_TRUE(absl::SimpleAtoi(ends.front(), &first) && absl::SimpleAtoi(ends.back(), &last)) << line;
      for (int64_t offset = first; offset <= last; ++offset)
        EXPECT_TRUE(lost.insert(offset).second) << offset;
    }
  }
  EXPECT_EQ(lost, (std::set<int64_t>{1, 2, 4, 5, 6, 8}));
}

TEST_F(PipelineRulesTest, Rule4WhatWasRefusedIsNoFirstNeitherNowNorAfterARestart) {
  cluster_.Append(0, Event("x", 1));
  cluster_.Append(0, Event("x", 2));
  Life life(cluster_, options_);
  life.Assign(0);
  life.sink.refuses = [](const FakeRecord& record) { return record.timestamp_ms < 3; };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "");
  cluster_.Append(0, Event("x", 3));
  const RecordCounts counts = Restart();
  EXPECT_EQ(Out(), "x");
  EXPECT_EQ(counts.suppressed, 2);
}

// Values that no codec makes small are judged by the limits as they are now, not as they were at the start.
TEST_F(PipelineRulesTest, Rule4ALimitThatWasRaisedCountsAfterTheNextRefusal) {
  std::mt19937_64 random(1);
  const auto event_of = [&](const std::string& id, size_t bytes) {
    FakeRecord record = Event(id);
    record.value->insert(1, R"("noise":"",)");
    while (record.value->size() < bytes) record.value->insert(10, absl::StrCat(absl::Hex(random())));
    return record;
  };
  cluster_.output_rules.max_batch_bytes = 1'000;
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  cluster_.output_rules.max_batch_bytes = 5'000;
  cluster_.Append(0, event_of("a", 3'000));
  cluster_.Append(0, event_of("huge", 20'000));
  cluster_.Append(0, event_of("b", 3'000));
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(task.counts().undeliverable, 1);
}

TEST_F(PipelineRulesTest, Rule4ByPolicyThePartitionStopsInFrontOfIt) {
  options_.policies.on_undeliverable = Action::kFail;
  Send({"a", "bad", "b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.refuses = [](const FakeRecord& record) { return record.key == "bad"; };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a");
  EXPECT_EQ(task.phase(), Phase::kFailed);
  EXPECT_EQ(cluster_.committed[0].offset, 1) << "in front of it";
}

TEST_F(PipelineRulesTest, Rule5ThePositionBehindControlRecordsIsCommitted) {
  Send({"a"});
  cluster_.AppendOther(0, FakeEntry::Kind::kControl);
  Restart();
  EXPECT_EQ(cluster_.committed[0].offset, 2);
  cluster_.DeleteBefore(0, 2);  // retention
  Send({"b"});
  Restart();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(Out(), "a b");
}

// The client says it once, and reads the partition no further.
TEST_F(PipelineRulesTest, OffsetsThatAreGoneAreHeardOfThoughATransactionFailsBeforeThem) {
  Send({"a", "b"}, 1);
  {
    Life life(cluster_, options_);
    life.Assign(1);
    ASSERT_OK(life.Run());
  }
  Send({"c"}, 1);
  Life life(cluster_, options_);
  life.Assign(0);
  const Task& restored = life.Assign(1);
  EXPECT_EQ(restored.phase(), Phase::kRestoring);
  cluster_.DeleteBefore(1, 1);
  Send({"d"}, 0);
  life.sink.fail_writes = 1;
  ASSERT_OK(life.Run());
  EXPECT_EQ(restored.phase(), Phase::kActive);
  EXPECT_EQ(life.sink.aborts, 1);
  EXPECT_EQ(cluster_.committed[1].offset, 3);
  EXPECT_EQ(cluster_.output.size(), 4u);
}

TEST_F(PipelineRulesTest, Rule5AnAbortSeeksOnlyThePartitionsOfItsTransaction) {
  Send({"a"}, 0);
  Life life(cluster_, options_);
  life.Assign(0);
  life.Assign(1);
  life.sink.fail_commits = 1;
  ASSERT_OK(life.Run());
  ASSERT_FALSE(life.source.seeks.empty());
  for (const auto& [partition, offset] : life.source.seeks) EXPECT_EQ(partition, 0);
}

TEST_F(PipelineRulesTest, Rule6TheCommitSaysHowItCameAbout) {
  Send({"a", "b"});
  Restart();
  const CommitMetadata metadata = CommitMetadata::Parse(cluster_.committed[0].metadata).value();
  EXPECT_EQ(metadata.origin.offset, 0);
  EXPECT_EQ(metadata.output, "unique");
  EXPECT_EQ(metadata.scope, "partition");
  EXPECT_EQ(metadata.last.offset, 1);
  const FakeRecord& last = cluster_.logs[0].entries[1].record;
  EXPECT_EQ(metadata.last.hash, (InputRecord{.key = *last.key, .value = *last.value}.Hash()));
}

TEST_F(PipelineRulesTest, Rule7ACommitWhoseAnswerIsLostIsNotRepeated) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.lose_answers = 1;
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(task.counts().unique, 2);
}

// The other one may have dropped what this one has taken for passed.
TEST_F(PipelineRulesTest, Rule7ACommitOfAnotherInstanceAtTheSameOffsetIsNotThisOnes) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.lose_commits = 1;
  life.sink.on_commit = [&] { cluster_.committed[task.id()] = {task.id(), 2, "of another"}; };
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.phase(), Phase::kFailed);
  EXPECT_EQ(task.counts().unique, 0);
  EXPECT_EQ(Out(), "");
}

TEST_F(PipelineRulesTest, Rule8AnAbortForgetsAllPartitionsOfTheTransaction) {
  Send({"a", "a"}, 0);
  Send({"b", "b"}, 1);
  Life life(cluster_, options_);
  const Task& first = life.Assign(0);
  const Task& second = life.Assign(1);
  life.sink.fail_commits = 1;
  ASSERT_OK(life.Run());
  EXPECT_EQ(life.sink.aborts, 1);
  const std::vector<std::pair<test::At, int64_t>> both = {{0, 0}, {1, 0}};
  EXPECT_EQ(life.source.seeks, both);
  EXPECT_EQ(Out(), "a b");
  for (const Task* task : {&first, &second}) {
    EXPECT_EQ(task->counts().unique, 1);
    EXPECT_EQ(task->counts().duplicate, 1);
    EXPECT_EQ(cluster_.committed[task->id()].offset, 2);
  }
}

TEST_F(PipelineRulesTest, Rule10AMemberThatIsFencedWritesNothing) {
  Send({"a"});
  Life life(cluster_, options_);
  Task& task = life.Assign(0);
  life.sink.is_fenced = true;
  life.on_look = [&] {
    if (life.sink.aborts < 1) return;
    cluster_.committed[0].offset = 5;  // another owner has come further
    if (task.phase() == Phase::kFailed) life.stop.Request();
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "");
  EXPECT_THAT(task.problem(), HasSubstr("another instance has it now"));
}

TEST_F(PipelineRulesTest, Rule10ADeletedInputIsNotCalledAnotherInstances) {
  Send({"a"});
  Life life(cluster_, options_);
  Task& task = life.Assign(0);
  life.sink.is_fenced = true;
  life.on_look = [&] {
    if (life.sink.aborts < 1) return;
    cluster_.committed[0].offset = -1;
    if (task.phase() == Phase::kFailed) life.stop.Request();
  };
  ASSERT_OK(life.Run());
  EXPECT_THAT(task.problem(), HasSubstr("were deleted"));
}

TEST_F(PipelineRulesTest, Rule11ARevokedPartitionIsCommittedFirst) {
  options_.process.commit_interval = absl::Hours(1);
  Send({"a", "b"});
  Send(std::vector<std::string>(1000, "b"));  // drained, it would be committed at once
  Life life(cluster_, options_);
  life.Assign(0);
  life.source.on_poll = [&] {
    if (life.worker.transactions().is_open()) life.source.Tell(SourceEvent::Kind::kRevoked, {0});
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  Restart();
  EXPECT_EQ(Out(), "a b") << "the next owner goes on behind it";
}

TEST_F(PipelineRulesTest, Rule11ALostPartitionIsAborted) {
  options_.process.commit_interval = absl::Hours(1);
  Send({"a", "b"});
  Send(std::vector<std::string>(1000, "b"));  // drained, it would be committed at once
  Life life(cluster_, options_);
  life.Assign(0);
  life.source.on_poll = [&] {
    if (life.worker.transactions().is_open()) life.source.Tell(SourceEvent::Kind::kLost, {0});
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "");
  options_.process.commit_interval = absl::ZeroDuration();
  Restart();
  EXPECT_EQ(Out(), "a b") << "the next owner judges it";
}

TEST_F(PipelineRulesTest, Rule11APartitionThatIsLostDuringACommitIsTheNextOwners) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  life.Assign(0);
  life.sink.on_commit = [&] {
    life.sink.is_fenced = true;
    if (life.source.told.empty()) life.source.Tell(SourceEvent::Kind::kLost, {0});
  };
  ASSERT_OK(life.Run());
  EXPECT_TRUE(life.tasks.empty());
  EXPECT_EQ(Out(), "");
  Restart();
  EXPECT_EQ(Out(), "a b");
}

TEST_F(PipelineRulesTest, Rule11WhatWasPolledOfARevokedPartitionIsTheNextOwners) {
  Send({"a"}, 0);
  Send({"b"}, 1);
  Life life(cluster_, options_);
  life.Assign(0);
  life.Assign(1);
  life.source.on_idle = [&] {
    if (!life.tasks.contains({0, 1})) return life.stop.Request();
    Send({"c"}, 1);  // in the batch that says that the partition goes
    life.source.Tell(SourceEvent::Kind::kRevoked, {1});
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(cluster_.committed[1].offset, 1);
  EXPECT_EQ(Out(), "a b");
}

TEST_F(PipelineRulesTest, Rule13AReplayWritesNothingAndRemembersEverything) {
  Send({"a", "b", "c"});
  Restart();
  Send({"b", "d", "a"});
  const RecordCounts counts = Restart();
  EXPECT_EQ(Out(), "a b c d");
  EXPECT_EQ(counts.suppressed, 3);
  EXPECT_EQ(counts.duplicate, 2);
}

// A producer that sends old events while lethe runs: Kafka deletes them in the output, and nobody would know.
TEST_F(PipelineRulesTest, RecordsOlderThanTheOutputKeepsAreCountedAndSaid) {
  const int64_t now = absl::ToUnixMillis(absl::Now());
  cluster_.output_rules.kept_for = absl::Hours(1);
  for (int i = 0; i < 1000; ++i) cluster_.Append(0, Event(absl::StrCat("n", i), now));
  for (int i = 0; i < 9; ++i) cluster_.Append(0, Event(absl::StrCat("late", i), now - 3 * 3'600'000));
  const auto read = [&](const char* what) {
    Life life(cluster_, options_);
    const Task& task = life.Assign(0);
    bool is_said = false;
    const std::string said = LogOf(spdlog::level::warn, [&] { EXPECT_OK(life.Run()) << what; });
    is_said = absl::StrContains(said, "orders-0: ") && absl::StrContains(said, "retention.ms of unique");
    EXPECT_EQ(is_said, task.expiry().most().has_value()) << what << ": " << said;
    return std::pair(task.counts().expired, is_said);
  };
  EXPECT_EQ(read("late records among others"), std::pair(int64_t{9}, false));
  for (int i = 0; i < 100; ++i) {
    cluster_.Append(0, Event(absl::StrCat("o", i), now - 3 * 86'400'000));
    cluster_.Append(0, Event(absl::StrCat("o", i), now - 3 * 86'400'000));
  }
  EXPECT_EQ(read("old ones alone"), std::pair(int64_t{100}, true)) << "copies are not written";
  EXPECT_EQ(cluster_.output.size(), 1109u) << "they are written all the same";
}

TEST_F(PipelineRulesTest, ARetentionThatWasRaisedIsNoticed) {
  const int64_t now = absl::ToUnixMillis(absl::Now());
  cluster_.output_rules.kept_for = absl::Hours(1);
  for (int i = 0; i < 100; ++i) cluster_.Append(0, Event(absl::StrCat("a", i), now - 3 * 3'600'000));
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  cluster_.output_rules.kept_for = absl::Hours(24);
  bool has_more = true;
  life.source.on_idle = [&] {
    if (life.worker.transactions().is_open() || !life.IsAtEnd()) return;
    if (!std::exchange(has_more, false)) return life.stop.Request();
    for (int i = 0; i < 100; ++i) cluster_.Append(0, Event(absl::StrCat("b", i), now - 3 * 3'600'000));
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.counts().unique, 200);
  EXPECT_EQ(task.counts().expired, 100) << "those before lethe has asked for the retention";
  EXPECT_FALSE(task.expiry().most());
}

TEST_F(PipelineRulesTest, Rule14ARecordOfTheFutureMovesNoStreamTimeAndKeepsItsVerdict) {
  const int64_t now = absl::ToUnixMillis(absl::Now());
  for (int i = 0; i < 400; ++i) cluster_.Append(0, Event(absl::StrCat("n", i), now));
  for (int i = 0; i < 200; ++i) cluster_.Append(0, Event(absl::StrCat("f", i), now + 315'360'000'000));
  cluster_.Append(0, Event("n0", now));
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.counts().future, 200);
  EXPECT_EQ(task.counts().unique, 600);
  EXPECT_EQ(task.counts().duplicate, 1);
  EXPECT_EQ(task.filter()->stream_time(), absl::FromUnixMillis(now));
}

TEST_F(PipelineRulesTest, Rule23AKeptFilterMeetsASkippedBatchAgainAndNothingBehindItIsSkipped) {
  options_.policies.on_unreadable = Action::kDrop;
  Send({"a"});
  cluster_.AppendOther(0, FakeEntry::Kind::kUnreadable);
  Life life(cluster_, options_);
  Task& task = life.Assign(0);
  life.on_look = [&, is_kept = false]() mutable {
    if (is_kept || task.committed() != 2) return;
    is_kept = true;  // it was away, and comes back
    Send({"a", "b"});
    TaskPeer::Check(task);
    life.source.positions[0] = task.mark().offset;
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(task.counts().unreadable, 1);
}

TEST_F(PipelineRulesTest, Rule14AReplayOfASparseTopicEndsAtTheTimeOfTheLiveRun) {
  // Stream time is eight hours behind the last record: far more than max_future.
  const int64_t begin = absl::ToUnixMillis(absl::Now() - absl::Hours(200));
  for (int i = 0; i < 350; ++i) cluster_.Append(0, Event(absl::StrCat(i), begin + i * 600'000));
  const auto stream_time = [this] {
    Life life(cluster_, options_);
    const Task& task = life.Assign(0);
    EXPECT_OK(life.Run());
    return task.filter()->stream_time();
  };
  EXPECT_EQ(stream_time(), absl::FromUnixMillis(begin + 299 * 600'000));
  EXPECT_EQ(stream_time(), absl::FromUnixMillis(begin + 299 * 600'000));
  // The ids that come now are as old as they are in a run without a restart.
  for (int i = 350; i < 360; ++i) cluster_.Append(0, Event(absl::StrCat(i), begin + i * 600'000));
  EXPECT_EQ(stream_time(), absl::FromUnixMillis(begin + 309 * 600'000));
}

TEST_F(PipelineRulesTest, Rule16ARecordThatIsJudgedAgainIsCountedOnce) {
  CounterOptions counter;
  counter.name = "sums";
  counter.output = "sums";
  counter.spec.key = *Field::Parse("key");
  options_.counters = {counter};
  Send({"a", "b", "a"});
  Life life(cluster_, options_);
  life.flows.at(0).topics.counter_max_bytes = {1'000'000};
  Task& task = life.Assign(0);
  task.sums().resize(1);
  life.sink.fail_commits = 1;
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  std::string deltas;
  for (const FakeCluster::Written& each : cluster_.output) {
    if (each.target.kind == Target::Kind::kCounter) {
      absl::StrAppend(&deltas, *each.record.key, "+", *each.record.value, " ");
      EXPECT_EQ(each.partition, OutputRecord::kByKey);
    }
  }
  EXPECT_TRUE(deltas == "a+1 b+1 " || deltas == "b+1 a+1 ") << deltas;
}

CounterOptions CounterOfTotals() {
  CounterOptions counter;
  counter.name = "sums";
  counter.output = "sums";
  counter.mode = CounterMode::kTotal;
  counter.spec.key = *Field::Parse("key");
  return counter;
}

TEST_F(PipelineRulesTest, Rule16TotalsGoOnWhereTheCommitIs) {
  const CounterOptions counter = CounterOfTotals();
  options_.counters = {counter};
  const auto run = [&](const std::string& id) {
    cluster_.Append(0, {"k", absl::StrCat(R"({"id":")", id, R"("})"), 1'700'000'000'000});
    Life life(cluster_, options_);
    life.flows.at(0).topics.counter_max_bytes = {1'000'000};
    const Task& task = life.Assign(0);
    if (task.phase() != Phase::kFailed) {
      EXPECT_OK(life.Run()) << life.state.fatal;
    }
    return std::pair(task.phase(), task.sums()[0].totals());
  };
  using Totals = CounterSums::Sums;
  EXPECT_EQ(run("a"), std::pair(Phase::kActive, Totals{{"k", 1}}));
  EXPECT_EQ(run("b"), std::pair(Phase::kActive, Totals{{"k", 2}}));
  // What is judged again would be counted twice.
  cluster_.committed[0] = {{0, 0}, 1, ""};
  EXPECT_EQ(run("c").first, Phase::kFailed);
}

// Where the group was set back, the remedy is behind the last of them.
TEST_F(PipelineRulesTest, Rule16TotalsBeyondTheGroupNameTheFurthest) {
  options_.counters = {CounterOfTotals()};
  std::string problem;
  for (int i = 0; i < 3; ++i) {
    cluster_.Append(0, {absl::StrCat("k", i), absl::StrCat(R"({"id":")", i, R"("})"), 1'700'000'000'000});
    Life life(cluster_, options_);
    life.flows.at(0).topics.counter_max_bytes = {1'000'000};
    life.Assign(0);
    EXPECT_OK(life.Run()) << life.state.fatal;
  }
  cluster_.committed[0] = {{0, 0}, 1, ""};
  Life life(cluster_, options_);
  life.flows.at(0).topics.counter_max_bytes = {1'000'000};
  const Task& task = life.Assign(0);
  ASSERT_EQ(task.phase(), Phase::kFailed);
  EXPECT_THAT(task.problem(), HasSubstr("--to-offset 3"));
  EXPECT_THAT(task.problem(), Not(HasSubstr("--to-offset 1")));
}

TEST_F(PipelineRulesTest, Rule16TotalsThatAreGoneAtARestartStopThePartition) {
  const CounterOptions counter = CounterOfTotals();
  options_.counters = {counter};
  int id = 0;
  const auto run = [&](const std::string& key) {
    cluster_.Append(0, {key, absl::StrCat(R"({"id":")", ++id, R"("})"), 1'700'000'000'000});
    Life life(cluster_, options_);
    life.flows.at(0).topics.counter_max_bytes = {1'000'000, 1'000'000};
    const Task& task = life.Assign(0);
    if (task.phase() != Phase::kFailed) {
      EXPECT_OK(life.Run()) << life.state.fatal;
    }
    return std::pair(task.phase(), task.sums().back().totals());
  };
  using Totals = CounterSums::Sums;
  EXPECT_EQ(run("k"), std::pair(Phase::kActive, Totals{{"k", 1}}));
  EXPECT_EQ(run("other"), std::pair(Phase::kActive, Totals{{"k", 1}, {"other", 1}}));

  // Some may have been deleted on purpose: the others go on.
  std::erase_if(cluster_.output, [](const FakeCluster::Written& each) {
    return each.target.kind == Target::Kind::kCounter && absl::EndsWith(*each.record.key, "/other");
  });
  EXPECT_EQ(run("k"), std::pair(Phase::kActive, Totals{{"k", 2}}));

  std::erase_if(cluster_.output,
                [](const FakeCluster::Written& each) { return each.target.kind == Target::Kind::kCounter; });
  EXPECT_EQ(run("k").first, Phase::kFailed);
  EXPECT_EQ(run("k").first, Phase::kFailed);

  // Another name, or another topic, is another counter, and a counter may be added at any time.
  options_.counters[0].name = "renamed";
  EXPECT_EQ(run("k"), std::pair(Phase::kActive, Totals{{"k", 3}}));
  CounterOptions added = counter;
  added.name = "added";
  added.output = "added";
  options_.counters.push_back(added);
  EXPECT_EQ(run("k"), std::pair(Phase::kActive, Totals{{"k", 1}}));
}

// The commit says how many lethe has written.
TEST_F(PipelineRulesTest, Rule16ATotalThatAnotherWriterHasAddedIsSeenAtARestart) {
  options_.counters = {CounterOfTotals()};
  const auto run = [&](const std::string& id) {
    cluster_.Append(0, {"k", absl::StrCat(R"({"id":")", id, R"("})"), 1'700'000'000'000});
    return WarningsOf([&] {
      Life life(cluster_, options_);
      life.flows.at(0).topics.counter_max_bytes = {1'000'000};
      life.Assign(0);
      EXPECT_OK(life.Run()) << life.state.fatal;
    });
  };
  EXPECT_THAT(run("a"), Not(HasSubstr("sums-0")));
  EXPECT_THAT(run("b"), Not(HasSubstr("sums-0")));
  const auto written = std::find_if(
      cluster_.output.begin(), cluster_.output.end(),
      [](const FakeCluster::Written& each) { return each.target.kind == Target::Kind::kCounter; });
  ASSERT_NE(written, cluster_.output.end());
  FakeCluster::Written forged = *written;
  forged.record.key = "sums/orders/0/forged";
  forged.record.value = R"({"mode":"total","total":999999,"offset":0})";
  cluster_.output.push_back(std::move(forged));
  const std::string warned = run("c");
  EXPECT_THAT(warned, HasSubstr("sums-0"));
}

TEST_F(PipelineRulesTest, Rule16ATopicOfTotalsThatWasDeletedGetsAllOfThemAgain) {
  const CounterOptions counter = CounterOfTotals();
  options_.counters = {counter};
  Send({"a"}, 0);
  Send({"b"}, 0);
  test::ManualClock clock;
  Life life(cluster_, options_, 2, nullptr, clock);
  life.flows.at(0).topics.counter_max_bytes = {1'000'000};
  const Task& task = life.Assign(0);
  int step = 0;
  life.source.on_idle = [&] {
    if (step == 0 && task.committed() == 2) {
      cluster_.output.clear();
      cluster_.output_partitions = absl::NotFoundError("topic sums does not exist");
      life.worker.held().Forget(task);
      Send({"c"}, 0);
      ++step;
    } else if (step == 1 && task.phase() == Phase::kHeld) {
      EXPECT_TRUE(cluster_.output.empty());
      cluster_.output_partitions = 2;
      life.sink.fail_commits = 1;  // and once more
      ++step;
    } else if (task.committed() == 3) {
      life.stop.Request();
    }
    clock.Pass(absl::Seconds(1));
  };
  ASSERT_OK(life.Run());
  std::set<std::string> totals;
  for (const FakeCluster::Written& each : cluster_.output) {
    if (each.target.kind == Target::Kind::kCounter) totals.insert(*each.record.key);
  }
  EXPECT_EQ(totals, (std::set<std::string>{"sums/orders/0/a", "sums/orders/0/b", "sums/orders/0/c"}));
}

TEST_F(PipelineRulesTest, Rule16ARecordWithOneKeyTooManyIsWrittenAndNotCounted) {
  CounterOptions counter;
  counter.name = "sums";
  counter.output = "sums";
  counter.mode = CounterMode::kTotal;
  counter.max_keys = 2;
  counter.spec.key = *Field::Parse("key");
  options_.counters = {counter};
  options_.divert = "diverted";
  options_.policies.on_uncountable = Action::kDivert;
  Send({"a", "b", "c"});
  Life life(cluster_, options_);
  life.flows.at(0).topics.counter_max_bytes = {1'000'000};
  Task& task = life.Assign(0);
  task.sums() = {CounterSums::WithTotals(counter.max_keys)};
  life.sink.fail_commits = 1;  // and judged again
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c");
  std::vector<std::string> diverted;
  for (const FakeCluster::Written& each : cluster_.output) {
    if (each.target.kind == Target::Kind::kDivert) diverted.push_back(*each.record.key);
  }
  EXPECT_EQ(diverted, std::vector<std::string>{"c"});
  EXPECT_EQ(task.sums()[0].totals(), (CounterSums::Sums{{"a", 1}, {"b", 1}}));
}

TEST_F(PipelineRulesTest, Rule19APartitionWithoutAnOutputIsHeldAndStopsNoOther) {
  cluster_.output_partitions = 1;
  Send({"a"}, 0);
  Send({"b"}, 1);
  Life life(cluster_, options_);
  life.Assign(0);
  const Task& held = life.Assign(1);
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a");
  EXPECT_EQ(held.phase(), Phase::kHeld);
  EXPECT_TRUE(life.source.paused.contains(1));
  EXPECT_EQ(cluster_.committed[1].offset, 0);

  cluster_.output_partitions = 2;
  Life next(cluster_, options_);
  next.Assign(1);
  ASSERT_OK(next.Run());
  EXPECT_EQ(Out(), "a b");
}

// The input has grown, and nothing has come there yet.
TEST_F(PipelineRulesTest, Rule19APartitionWithoutAnOutputIsHeldBeforeItsFirstRecord) {
  cluster_.output_partitions = 1;
  Send({"a"}, 0);
  Life life(cluster_, options_);
  const Task& other = life.Assign(0);
  const Task& held = life.Assign(1);
  ASSERT_OK(life.Run());
  EXPECT_EQ(other.phase(), Phase::kActive);
  EXPECT_EQ(held.phase(), Phase::kHeld);
  EXPECT_THAT(held.problem(), HasSubstr("--alter --topic unique --partitions 2"));
}

// A new topic would have none of the records that are routed and not judged.
TEST_F(PipelineRulesTest, Rule20ARouterDoesNotAskForANewRepartitionTopic) {
  options_.process.group = "lethe-repartition";
  options_.output = "lethe-orders-repartition";
  options_.half.routing = {.to = {"unique"}};
  cluster_.output_partitions = absl::NotFoundError("topic lethe-orders-repartition does not exist");
  Send({"a"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.phase(), Phase::kHeld);
  EXPECT_THAT(task.problem(), HasSubstr("Stop every instance"));
  EXPECT_THAT(task.problem(), HasSubstr("--group lethe-repartition --topic orders "));
  EXPECT_THAT(task.problem(), Not(HasSubstr("create it")));
}

TEST_F(PipelineRulesTest, Rule19WhatAHeldPartitionWaitsForIsSaidAnew) {
  cluster_.output_partitions = absl::NotFoundError("no such topic");
  Send({"b"}, 1);
  test::ManualClock clock;
  Life life(cluster_, options_, 2, nullptr, clock);
  const Task& task = life.Assign(1);
  life.source.on_idle = [&] {
    if (absl::StrContains(task.problem(), "create it")) {
      cluster_.output_partitions = 1;
    } else if (absl::StrContains(task.problem(), "--alter --topic unique --partitions 2")) {
      cluster_.output_partitions = 2;
    } else if (task.committed() == 1) {
      life.stop.Request();
    }
    clock.Pass(absl::Seconds(1));
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "b");
}

// An input that has grown needs the partition in the topic of totals, too.
TEST_F(PipelineRulesTest, Rule19TheTopicThatLacksThePartitionIsNamed) {
  options_.counters = {CounterOfTotals()};
  cluster_.output_partitions = 1;
  cluster_.smallest_output = options_.counters[0].output;
  Send({"b"}, 1);
  Life life(cluster_, options_);
  const Task& held = life.Assign(1);
  ASSERT_OK(life.Run());
  EXPECT_EQ(held.phase(), Phase::kHeld);
  EXPECT_THAT(held.problem(),
              HasSubstr(absl::StrCat("--alter --topic ", options_.counters[0].output, " --partitions 2")));
}

TEST_F(PipelineRulesTest, Rule20ARoutedRecordKeepsItsOrigin) {
  options_.half.routing.emplace();
  cluster_.Append(1, {"k", R"({"id":"a"})", 5, {{"own", "1"}}});
  Life life(cluster_, options_);
  life.Assign(1);
  ASSERT_OK(life.Run());
  ASSERT_EQ(cluster_.output.size(), 1u);
  const FakeCluster::Written routed = cluster_.output[0];
  RecordFields fields;
  fields.id_state = RecordFields::State::kPresent;
  fields.id = "sa";  // as the reader says a JSON string
  EXPECT_EQ(routed.partition, Route(fields, {}, 2));
  EXPECT_EQ(routed.record.headers.size(), 3u);

  // The second half takes the headers off, and the record goes back to its partition.
  FakeCluster repartitioned;
  repartitioned.output_partitions = 2;
  repartitioned.Append(0, routed.record);
  DaemonOptions judging = options_;
  judging.half.routing.reset();
  judging.half.routed_from = {"orders"};
  judging.input = "repartitioned";
  Life second(repartitioned, judging);
  second.Assign(0);
  ASSERT_OK(second.Run());
  ASSERT_EQ(repartitioned.output.size(), 1u);
  EXPECT_EQ(repartitioned.output[0].partition, 1);
  EXPECT_EQ(repartitioned.output[0].record.headers, (test::Headers{{"own", "1"}}));
  EXPECT_EQ(repartitioned.output[0].record.timestamp_ms, 5);
}

// The input may be the tagged output of another lethe.
TEST_F(PipelineRulesTest, ATagIsTheVerdictOfThisLetheAlone) {
  options_.policies.on_duplicate = Action::kTag;
  for (const char* id : {"a", "b", "a"}) {
    test::FakeRecord record = Event(id);
    record.headers = {{"lethe.verdict", "duplicate"}, {"other", "kept"}};
    cluster_.Append(0, record);
  }
  Restart();
  ASSERT_EQ(cluster_.output.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    test::Headers expected = {{"other", "kept"}};
    if (i == 2) expected.emplace_back("lethe.verdict", "duplicate");
    EXPECT_EQ(cluster_.output[i].record.headers, expected) << i;
  }
}

TEST_F(PipelineRulesTest, Rule21RecordsBelowTheExpectedOffsetAreSkipped) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.source.on_poll = [&, went_back = false]() mutable {
    if (went_back || task.committed() != 2) return;
    went_back = true;
    Send({"c"});
    life.source.positions[0] = 0;
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(life.source.positions[0], 3);
  EXPECT_EQ(Out(), "a b c");
  EXPECT_EQ(task.counts().unique, 3);
  EXPECT_EQ(task.counts().duplicate, 0) << "a record was judged twice";
}

TEST_F(PipelineRulesTest, Rule22AbortedTransactionsBecomeSmaller) {
  Send(std::vector<std::string>(1, "a"));
  Life life(cluster_, options_);
  life.Assign(0);
  const size_t room = life.worker.transactions().room_records();
  life.sink.fail_commits = 1;
  life.on_look = [&] {
    if (life.sink.aborts == 1 && life.sink.commits == 1) {
      EXPECT_LT(life.worker.transactions().room_records(), room);
    }
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a");
}

TEST_F(PipelineRulesTest, Rule23AnUnreadableBatchIsPassedOverByPolicy) {
  options_.policies.on_unreadable = Action::kDrop;
  Send({"a"});
  cluster_.AppendOther(0, FakeEntry::Kind::kUnreadable);
  cluster_.AppendOther(0, FakeEntry::Kind::kUnreadable);
  Send({"b"});
  const RecordCounts counts = Restart();
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(counts.unreadable, 2);
  EXPECT_EQ(counts.dropped, 2);
}

TEST_F(PipelineRulesTest, Rule23OrItsPartitionStopsThereAndNoOther) {
  Send({"a"}, 0);
  cluster_.AppendOther(0, FakeEntry::Kind::kUnreadable);
  Send({"b"}, 1);
  Life life(cluster_, options_);
  const Task& stopped = life.Assign(0);
  life.Assign(1);
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b");
  EXPECT_EQ(stopped.phase(), Phase::kFailed);
  EXPECT_EQ(cluster_.committed[0].offset, 1);
}

TEST_F(PipelineRulesTest, Rule23APartitionThatAPolicyStoppedGoesOnAfterARestart) {
  Send({"a", "b", "c"});
  cluster_.logs[0].entries[1] = {FakeEntry::Kind::kUnreadable};
  Life life(cluster_, options_);
  life.Assign(0);
  life.on_look = [&, is_renewed = false]() mutable {
    if (is_renewed || life.tasks.at({0, 0})->phase() != Phase::kFailed) return;
    is_renewed = true;  // the group assigns the partition once more
    life.Revoke({0}, /*lost=*/false);
    life.Assign(0);
  };
  ASSERT_OK(life.Run());
  EXPECT_EQ(life.tasks.at({0, 0})->phase(), Phase::kFailed) << "by the same policy as before";
  EXPECT_EQ(Out(), "a");
  options_.policies.on_unreadable = Action::kDrop;
  EXPECT_EQ(Restart().unreadable, 1);
  EXPECT_EQ(Out(), "a c");
  EXPECT_EQ(cluster_.committed[0].offset, 3);
}

TEST_F(PipelineRulesTest, Rule23ABatchThatAReplayCannotReadIsShortHistory) {
  Send({"a", "b", "c"});
  Restart();
  cluster_.logs[0].entries[1] = {FakeEntry::Kind::kUnreadable};
  Send({"b", "c", "d"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  ASSERT_OK(life.Run());
  EXPECT_EQ(Out(), "a b c b d") << "what is not known cannot be recognized";
  EXPECT_EQ(task.counts().suppressed, 3);
  EXPECT_EQ(task.counts().unreadable, 0) << "it was judged when it could be read";
  EXPECT_TRUE(task.short_history());
  EXPECT_NE(CommitMetadata::Parse(cluster_.committed[0].metadata)->covered_since, absl::InfinitePast());
}

TEST_F(PipelineRulesTest, Rule23ByPolicyTheReplayStopsThereUntilItCanBeRead) {
  options_.policies.on_short_history = OnShortHistory::kFail;
  Send({"a", "b"});
  Restart();
  const FakeEntry sound = std::exchange(cluster_.logs[0].entries[0], {FakeEntry::Kind::kUnreadable});
  Send({"a", "c"});
  Restart();
  EXPECT_THAT(problem_, HasSubstr("on_short_history"));
  EXPECT_EQ(cluster_.committed[0].offset, 2);
  cluster_.logs[0].entries[0] = sound;
  Restart();
  EXPECT_EQ(problem_, "");
  EXPECT_EQ(Out(), "a b c");
}

TEST_F(PipelineRulesTest, Rule3ARecordBeforeTheCommitThatCannotBeReadIsNoOtherLog) {
  Send({"a", "b"});
  Restart();
  cluster_.logs[0].entries[1] = {FakeEntry::Kind::kUnreadable};
  Send({"a", "c"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  ASSERT_OK(life.Run());
  EXPECT_EQ(task.problem(), "");
  EXPECT_EQ(Out(), "a b c");
  EXPECT_TRUE(task.short_history());
}

TEST_F(PipelineRulesTest, Rule23ARecordWithoutAnIdIsHandledByItsPolicy) {
  const FakeRecord without = {"k", R"({"no":"id"})", 1};
  cluster_.Append(0, without);
  Send({"a"});
  EXPECT_EQ(Restart().missing_id, 1);
  EXPECT_EQ(Out(), "k a") << "it passes by default";
  options_.policies.on_missing_id = Action::kDivert;
  options_.divert = "diverted";
  cluster_.Append(0, without);
  Restart();
  EXPECT_EQ(Out(), "k a");
  EXPECT_EQ(Out(Target::Kind::kDivert), "k");
  options_.policies.on_missing_id = Action::kFail;
  cluster_.Append(0, without);
  Send({"b"});
  Restart();
  EXPECT_EQ(Out(), "k a");
  EXPECT_THAT(problem_, HasSubstr("on_missing_id"));
}

// Its producer is another one by then, and that does not help: brokers before Kafka 4.0 let offsets that come
// late push out those of the open transaction, if they are of the same member in the same generation.
TEST_F(PipelineRulesTest, Rule27BehindOffsetsThatMayComeLateNothingBeginsBeforeItIsAnotherMember) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  life.Assign(0);
  life.sink.on_commit = [&] {
    if (life.source.reopenings > 0) return;
    Send({"c"});
    Send({"d"}, 1);
    life.sink.needs_new_member = true;
  };
  life.source.on_poll = [&] {
    if (life.source.reopenings == 1 && life.source.positions.empty()) {
      life.source.Tell(SourceEvent::Kind::kAssigned, {0, 1});
    }
  };
  ASSERT_OK(life.Run()) << life.state.fatal;
  EXPECT_EQ(life.source.reopenings, 1);
  EXPECT_EQ(life.sink.begun_too_early, 0);
  EXPECT_EQ(Out(), "a b c d");
}

// The offsets were those at which a partition begins.
TEST_F(PipelineRulesTest, Rule27BehindFirstOffsetsThatMayComeLateNothingBeginsEither) {
  Send({"a", "b"});
  Life life(cluster_, options_);
  life.sink.on_commit = [&] { life.sink.needs_new_member = life.source.reopenings == 0; };
  life.sink.fail_commits = 1;
  life.source.on_poll = [&] {
    if (life.source.positions.empty()) life.source.Tell(SourceEvent::Kind::kAssigned, {0});
  };
  ASSERT_OK(life.Run()) << life.state.fatal;
  EXPECT_EQ(life.source.reopenings, 1);
  EXPECT_EQ(life.sink.begun_too_early, 0);
  EXPECT_EQ(Out(), "a b");
}

}  // namespace
}  // namespace lethe
