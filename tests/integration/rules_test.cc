// The rules that keep lethe from losing an event or passing one twice, each played as the schedule that
// breaks it otherwise.
#include "tests/integration/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// (A filter of [0, 1000), the group reset to 400: 400 to 999 would look like duplicates.)
TEST(RulesTest, Rule2And6AnOperatorsResetIsANewBeginning) {
  Flow flow(Options());
  flow.SendIds("a", 1, 1000);
  flow.SendIds("a", 500, 600);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  ASSERT_TRUE(flow.ExactlyOnce());
  flow.ResetGroup({{400, ""}});
  const Finished again = flow.RunToEnd();
  ASSERT_TRUE(EndsWell(again));
  // The next owner learns from the commit that copies of what came before may pass.
  EXPECT_GT(MetadataField(flow.Committed()[0], "cs"), 0) << again.err;
  std::vector<std::string> expected;
  for (int i = 1; i <= 1000; ++i) expected.push_back(absl::StrCat("a", i));
  for (int i = 401; i <= 1000; ++i) expected.push_back(absl::StrCat("a", i));
  EXPECT_EQ(flow.OutputIds(), expected);
  EXPECT_EQ(MetadataField(flow.Committed()[0], "o"), 400);
  // The new life is restored from its own beginning.
  flow.SendIds("a", 1, 1000);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  for (int i = 1; i <= 400; ++i) expected.push_back(absl::StrCat("a", i));
  EXPECT_EQ(flow.OutputIds(), expected);
}

TEST(RulesTest, Rule3ATopicRecreatedBetweenRunsIsReadFromItsStart) {
  Flow flow(Options());
  flow.SendIds("a", 1, 300);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  ASSERT_OK(SharedClient().DeleteTopic(flow.input()));
  ASSERT_OK(SharedClient().CreateTopic(flow.input(), 1));
  flow.SendIds("b", 1, 200);
  flow.SendIds("a", 1, 300);
  // Kafka deletes the group's offsets with the topic, so this is a group without any, which might write what
  // is in the output already.
  EXPECT_TRUE(IsRefused(flow.RunToEnd(), "accept_nonempty_output"));
  EXPECT_EQ(flow.OutputIds().size(), 300u);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--accept-nonempty-output=true"})));
  EXPECT_EQ(flow.OutputIds().size(), 800u);
  EXPECT_EQ(flow.Committed()[0].offset, 500);
}

TEST(RulesTest, Rule5TheStartIsCommittedBeforeTheFirstVerdict) {
  Flow flow(Options(2));
  flow.SendIds("old", 1, 100, 0);
  {
    const auto daemon = flow.Start({"--start=latest"});
    ASSERT_TRUE(daemon->AwaitReady());
    const std::vector<CommittedOffset> committed = flow.Committed();
    EXPECT_EQ(committed[0].offset, 100);
    EXPECT_EQ(MetadataField(committed[0], "o"), 100);
    EXPECT_EQ(committed[1].offset, 0);
  }  // killed
  flow.SendIds("new", 1, 100, 0);
  flow.SendIds("old", 1, 100, 0);  // never judged, so no duplicates
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--start=latest"})));
  std::vector<std::string> expected;
  for (const char* prefix : {"new", "old"}) {
    for (int i = 1; i <= 100; ++i) expected.push_back(absl::StrCat(prefix, i));
  }
  EXPECT_EQ(flow.OutputIds(), expected);
}

// The end of a log that is only control records and an aborted batch is committed too: retention removes it.
TEST(RulesTest, Rule5WhatEndsWithAnAbortedBatchIsCommittedToItsEnd) {
  Flow flow({LETHE_PROGRAM, 2, {}, {{"max.message.bytes", "2000"}}});
  flow.SendIds("a", 1, 10);
  auto aborted = TransactionalProducer::Start(SharedBroker().bootstrap(), flow.input() + "-aborts");
  ASSERT_OK(aborted);
  const auto abort_a_batch = [&] {
    ASSERT_OK((*aborted)->Begin());
    for (int i = 0; i < 5; ++i) {
      ASSERT_OK((*aborted)->Produce(flow.input(), {{WithId(absl::StrCat("aborted", i))}}));
    }
    ASSERT_OK((*aborted)->Abort());
  };
  abort_a_batch();
  auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 16; })) << daemon->Log();
  // The log begins behind it, and another partition's transaction aborts.
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 16));
  const Record large = WithId(Incompressible(5000), 1);
  flow.Send({{large}});
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[1].offset == 1; })) << daemon->Log();
  EXPECT_GT(daemon->Metric("lethe_transactions_aborted_total"), 0);
  EXPECT_EQ(daemon->Metric("lethe_partition_failed"), 0);
  flow.SendIds("b", 1, 1);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 17; })) << daemon->Log();
  // The start, the first records, the end behind them, the two later records; nothing while it was idle.
  EXPECT_LE(daemon->Metric("lethe_transactions_committed_total"), 6);
  EXPECT_TRUE(daemon->Stop());
  abort_a_batch();
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.Committed()[0].offset, 23);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 23));
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.OutputIds().size(), 11u);
}

// As after an unclean election: the records that were judged are gone, and others have their offsets.
TEST(RulesTest, Rule3ALogThatWasCutAndHasGrownAgainIsNotGoneOnWith) {
  Flow flow(Options());
  flow.SendIds("a", 1, 300);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const CommittedOffset before = flow.Committed()[0];
  ASSERT_OK(SharedClient().DeleteTopic(flow.input()));
  ASSERT_OK(SharedClient().CreateTopic(flow.input(), 1, {{"retention.ms", "-1"}}));
  flow.SendIds("a", 1, 200);
  flow.SendIds("b", 1, 200);
  flow.ResetGroup({before});
  EXPECT_TRUE(IsRefused(flow.RunToEnd(), "offset 299: this is not the record that lethe judged"));
  EXPECT_EQ(flow.Committed()[0].metadata, before.metadata);
  flow.ResetGroup({{200, ""}});  // the remedy
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.OutputIds().size(), 500u);
}

TEST(RulesTest, Rule6AGroupOfAnotherOutputOrScopeIsRefused) {
  Flow flow(Options());
  Flow other(Options());
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  for (const auto& [change, remedy] :
       {std::pair("--output=" + other.output(), "Use another group, or set output to"),
        std::pair(std::string("--scope=topic"),
                  "Use the former scope and inputs, or another group and a new output")}) {
    EXPECT_TRUE(IsRefused(flow.RunToEnd({change}), remedy));
    EXPECT_EQ(flow.RunCommand("check", {change}).exit_code, 2) << change;
  }
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(RulesTest, Rule6CommitMetadataThatDoesNotFitIsRefusedWithTheRemedy) {
  Flow flow(Options());
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const CommittedOffset before = flow.Committed()[0];
  EXPECT_TRUE(IsRefused(flow.RunToEnd({"--id=key"}), "--reset-offsets"));
  EXPECT_EQ(flow.Committed()[0].metadata, before.metadata);
  flow.ResetGroup({{10, "lethe/3 o=0"}});
  EXPECT_TRUE(IsRefused(flow.RunToEnd(), "the version that wrote it, or reset"));
  flow.ResetGroup({{9, "lethe/1 o=7"}});
  EXPECT_TRUE(IsRefused(flow.RunToEnd(), "damaged"));
  EXPECT_EQ(flow.Committed()[0].offset, 9);
  EXPECT_EQ(flow.OutputIds().size(), 10u);
}

TEST(RulesTest, Rule9ASecondProcessOfTheSameInstanceIsRefused) {
  Flow flow(Options());
  const std::string broker = SharedBroker().bootstrap();
  const std::string alias = absl::StrCat("localhost", broker.substr(broker.rfind(':')));
  const auto daemon = flow.Start({absl::StrCat("--brokers=", broker, ",", alias)});
  ASSERT_TRUE(daemon->AwaitReady());
  for (const char* separator : {",", " , "}) {
    EXPECT_TRUE(IsRefused(flow.RunToEnd({absl::StrCat("--brokers=", alias, separator, broker)}),
                          "give each its own --instance"));
  }
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(EndsWell(flow.RunToEnd()));
}

// Any user of the host can take the name of the lock.
TEST(RulesTest, Rule9AnotherUserCannotKeepAnInstanceFromStarting) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  Flow flow(Options());
  flow.SendIds("a", 1, 10);
  ProcessOptions options;
  options.args = {"setpriv",
                  "--reuid=65534",
                  "--clear-groups",
                  "/usr/bin/python3",
                  "-c",
                  "import signal, socket, sys\n"
                  "lock = socket.socket(socket.AF_UNIX)\n"
                  "lock.bind('\\0' + sys.argv[1])\n"
                  "lock.listen()\n"
                  "print('held', flush=True)\n"
                  "signal.pause()\n",
                  absl::StrCat("lethe/", SharedBroker().bootstrap(), "/", flow.group(), "/test")};
  const auto holder = Process::Start(options);
  ASSERT_OK(holder);
  ASSERT_TRUE(WaitUntil([&] { return (*holder)->Stdout() == "held\n"; }, absl::Minutes(1)))
      << (*holder)->Stderr();
  const Finished finished = flow.RunToEnd();
  EXPECT_TRUE(EndsWell(finished));
  EXPECT_THAT(finished.err, HasSubstr("another user of this host"));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// Two instances, one of two lanes: one leaves and comes back while the stream flows.
TEST(RulesTest, Rules11And12InstancesJoinAndLeave) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(5));
  auto one = flow.Start({"--instance=one", "--lanes=2"});
  ASSERT_TRUE(SendUntil(flow, clients, [&] { return one->Metric("lethe_records_total") > 0; }));
  const auto two = flow.Start({"--instance=two"});
  for (int round = 0; round < 2; ++round) {
    const double before = two->Metric("lethe_records_total");
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return two->Metric("lethe_records_total") > before; }));
    EXPECT_TRUE(one->Stop());
    const double alone = two->Metric("lethe_records_total");
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return two->Metric("lethe_records_total") > alone; }));
    one = flow.Start({"--instance=one", "--lanes=2"});
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return one->Metric("lethe_records_total") > 0; }));
  }
  EXPECT_TRUE(two->Stop());
  EXPECT_TRUE(one->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--lanes=3"})));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// How much of a log was read again, and up to where, each time that a partition became ready.
std::vector<std::pair<int64_t, int64_t>> Restores(const Daemon& daemon, int partition) {
  std::vector<std::pair<int64_t, int64_t>> restores;
  const std::string ready = absl::StrCat("-", partition, ": ready at offset ");
  for (const absl::string_view line : absl::StrSplit(daemon.Log(), '\n')) {
    const size_t at = line.find(ready);
    if (at == absl::string_view::npos) continue;
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(line.substr(at + ready.size()), absl::MaxSplits(" after replaying ", 1));
    int64_t committed = 0, again = 0;
    EXPECT_TRUE(absl::SimpleAtoi(words.first, &committed)) << line;
    EXPECT_TRUE(absl::SimpleAtoi(words.second.substr(0, words.second.find(' ')), &again)) << line;
    restores.emplace_back(again, committed);
  }
  return restores;
}

// By its name the second instance comes behind the first, so that the last partition goes to it, and comes
// back when it leaves.
TEST(RulesTest, Rule12APartitionThatComesBackIsReadFromWhereItsFilterEnds) {
  Flow flow(Options(2));
  flow.SendIds("a", 1, 1000, 1);
  const std::string patient = "--kafka=session.timeout.ms=30000";  // nobody is thrown out for being slow
  const auto first = flow.Start({"--instance=a", patient});
  ASSERT_TRUE(first->Await([&] { return flow.Committed()[1].offset == 1000; }));
  {
    const auto second = flow.Start({"--instance=z", patient});
    ASSERT_TRUE(second->Await([&] { return !Restores(*second, 1).empty(); }));
    EXPECT_EQ(Restores(*second, 1), (std::vector<std::pair<int64_t, int64_t>>{{1000, 1000}}));
    flow.SendIds("b", 1, 100, 1);
    flow.SendIds("a", 501, 600, 1);
    ASSERT_TRUE(second->Await([&] { return flow.Committed()[1].offset == 1200; }));
    EXPECT_TRUE(second->Stop());
  }
  ASSERT_TRUE(first->Await([&] { return !Restores(*first, 1).empty(); }));
  EXPECT_EQ(Restores(*first, 1), (std::vector<std::pair<int64_t, int64_t>>{{200, 1200}})) << first->Log();
  // It knows what the other one has passed.
  flow.SendIds("b", 1, 100, 1);
  flow.SendIds("c", 1, 10, 1);
  ASSERT_TRUE(first->Await([&] { return flow.Committed()[1].offset == 1310; }));
  EXPECT_TRUE(first->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// By its name the second instance gets the last partition, of which the log begins behind an aborted batch.
TEST(RulesTest, Rule5WhatEndsWithAnAbortedBatchGoesFromInstanceToInstance) {
  Flow flow(Options(2));
  flow.SendIds("a", 1, 10, 1);
  auto aborted = TransactionalProducer::Start(SharedBroker().bootstrap(), flow.input() + "-aborts");
  ASSERT_OK(aborted);
  ASSERT_OK((*aborted)->Begin());
  ASSERT_OK((*aborted)->Produce(flow.input(), {{WithId("aborted", 1)}}));
  ASSERT_OK((*aborted)->Abort());
  const std::string patient = "--kafka=session.timeout.ms=30000";
  const auto first = flow.Start({"--instance=a", patient});
  ASSERT_TRUE(first->Await([&] { return flow.Committed()[1].offset == 12; })) << first->Log();
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 1, 12));
  {
    const auto second = flow.Start({"--instance=z", patient});
    ASSERT_TRUE(second->Await([&] { return absl::StrContains(second->Log(), "its 1 partition"); }))
        << second->Log();
    flow.SendIds("b", 1, 10, 1);
    ASSERT_TRUE(second->Await([&] { return flow.Committed()[1].offset == 22; })) << second->Log();
    EXPECT_EQ(second->Metric("lethe_partition_failed"), 0);
    EXPECT_TRUE(second->Stop());
  }
  flow.SendIds("c", 1, 10, 1);
  flow.SendIds("c", 1, 10, 0);
  ASSERT_TRUE(first->Await([&] {
    return flow.Committed()[1].offset == 32 && flow.Committed()[0].offset == 10;
  })) << first->Log();
  EXPECT_EQ(first->Metric("lethe_partition_failed"), 0);
  EXPECT_TRUE(first->Stop());
  EXPECT_EQ(flow.OutputIds().size(), 40u);
}

// An instance that stands still is out of the group, and has its filter of [0, 1000) when it comes back.
TEST(RulesTest, Rule2AFilterThatIsAheadOfTheGroupIsNotUsed) {
  for (const bool with_story : {false, true}) {
    SCOPED_TRACE(with_story ? "as a tool that copies groups does it" : "as an operator does it");
    Flow flow(Options());
    flow.SendIds("a", 1, 400);
    const auto daemon = flow.Start();
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 400; }));
    const std::string story = flow.Committed()[0].metadata;
    flow.SendIds("a", 401, 1000);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 1000; }));
    ASSERT_OK(daemon->process().Signal(SIGSTOP));
    const auto other = flow.Start({"--instance=other"});
    ASSERT_TRUE(other->AwaitReady());  // it has the partition, so the first one is out
    ASSERT_TRUE(other->Stop());
    flow.ResetGroup({{400, with_story ? story : ""}});
    ASSERT_OK(daemon->process().Signal(SIGCONT));
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 1000; }));
    std::vector<std::string> expected;
    for (int i = 1; i <= 1000; ++i) expected.push_back(absl::StrCat("a", i));
    for (int i = 401; i <= 1000; ++i) expected.push_back(absl::StrCat("a", i));
    EXPECT_EQ(flow.OutputIds(), expected);
    // What came before the reset is of another life, unless its story says otherwise.
    flow.SendIds("a", 1, 1000);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 2000; }));
    for (int i = 1; i <= 400 && !with_story; ++i) expected.push_back(absl::StrCat("a", i));
    EXPECT_EQ(flow.OutputIds(), expected);
    EXPECT_TRUE(daemon->Stop());
  }
}

// What is in the output's log of an open transaction, by partition: offsets [begin, end).
struct OpenTransaction {
  std::vector<int64_t> begin;
  std::vector<int64_t> end;

  bool is_there() const { return begin != end; }
  int64_t Count(const std::vector<Record>& records) const {
    return std::count_if(records.begin(), records.end(), [&](const Record& record) {
      const auto p = static_cast<size_t>(record.partition);
      return begin[p] <= record.offset && record.offset < end[p];
    });
  }
};

// While one producer writes.
OpenTransaction OpenIn(const Flow& flow) {
  OpenTransaction open;
  open.begin = SharedClient().EndOffsets(flow.output(), Isolation::kReadCommitted).value();
  open.end = SharedClient().EndOffsets(flow.output(), Isolation::kReadUncommitted).value();
  return open;
}

// Lets the process stand still in the middle of a transaction, some of which is in the log.
testing::AssertionResult StopInTransaction(Flow& flow, RetryingClients& clients, Daemon& daemon,
                                           OpenTransaction& open) {
  const absl::Time deadline = SteadyNow() + absl::Minutes(1);
  while (SteadyNow() < deadline) {
    // Soon after a commit, so that the next one is far.
    const double commits = daemon.Metric("lethe_transactions_committed_total");
    testing::AssertionResult sent = SendUntil(
        flow, clients, [&] { return daemon.Metric("lethe_transactions_committed_total") > commits; });
    if (sent) sent = SendUntil(flow, clients, [&] { return OpenIn(flow).is_there(); });
    if (!sent) return sent;
    if (!daemon.process().Signal(SIGSTOP).ok()) return testing::AssertionFailure() << "it has ended";
    // A commit that was on its way is in the log a moment later.
    const auto has_ended = [&] {
      open = OpenIn(flow);
      return !open.is_there();
    };
    if (!WaitUntil(has_ended, absl::Milliseconds(700))) return testing::AssertionSuccess();
    if (!daemon.process().Signal(SIGCONT).ok()) return testing::AssertionFailure() << "it has ended";
  }
  return testing::AssertionFailure() << "it is always between two transactions";
}

enum class WhenItWakes { kItsTransactionIsOpen, kItIsFenced };

// An instance stands still for so long that the group goes on without it, with a transaction open.
void StandStill(WhenItWakes when, Args args) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(4));
  args.emplace_back("--commit-interval=2s");
  args.push_back(when == WhenItWakes::kItIsFenced ? "--kafka=transaction.timeout.ms=4000"
                                                  : "--kafka=transaction.timeout.ms=120000");
  const auto with = [&](const std::string& instance) {
    Args all = args;
    all.push_back("--instance=" + instance);
    return all;
  };
  const auto stalled = flow.Start(with("stalled"));
  OpenTransaction open;
  ASSERT_TRUE(StopInTransaction(flow, clients, *stalled, open));
  const std::vector<CommittedOffset> before = flow.Committed();
  const auto other = flow.Start(with("other"));
  // The log's first open record: the broker ends a transaction whose producer is silent for too long.
  const auto stable = [&] {
    return SharedClient().EndOffsets(flow.output(), Isolation::kReadCommitted).value();
  };
  ASSERT_TRUE(SendUntil(flow, clients, [&] {
    const std::vector<CommittedOffset> committed = flow.Committed();
    const std::vector<int64_t> stable_ends = stable();
    for (size_t p = 0; p < committed.size(); ++p) {
      // All partitions, also those of which the stalled one has an open transaction.
      if (committed[p].offset <= before[p].offset) return false;
      if (when == WhenItWakes::kItIsFenced && stable_ends[p] < open.end[p]) return false;
    }
    return other->Get("/readyz").status == 200;
  })) << other->Log();
  if (when == WhenItWakes::kItsTransactionIsOpen) {
    const std::vector<int64_t> stable_ends = stable();
    for (size_t p = 0; p < stable_ends.size(); ++p) {
      if (open.begin[p] == open.end[p]) continue;
      EXPECT_EQ(stable_ends[p], open.begin[p]) << "it was ended by the broker";
    }
  }
  ASSERT_OK(stalled->process().Signal(SIGCONT));
  ASSERT_TRUE(stalled->Await([&] { return stalled->Metric("lethe_transactions_aborted_total") >= 1; }));
  if (when == WhenItWakes::kItIsFenced) {
    EXPECT_GE(stalled->Metric("lethe_fences_total"), 1) << stalled->Log();
  }
  const double commits = stalled->Metric("lethe_transactions_committed_total");
  ASSERT_TRUE(SendUntil(flow, clients, [&] {
    return stalled->Metric("lethe_transactions_committed_total") > commits;
  })) << stalled->Log();
  EXPECT_TRUE(other->Stop());
  EXPECT_TRUE(stalled->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
  // What it had written is in the log, and out to nobody who reads what is committed.
  EXPECT_GT(open.Count(SharedClient().ReadAll(flow.output(), Isolation::kReadUncommitted).value()), 0);
  EXPECT_EQ(open.Count(flow.Output()), 0);
}

TEST(RulesTest, Rule10AZombieCanWriteButNotCommit) { StandStill(WhenItWakes::kItsTransactionIsOpen, {}); }

// With assignments that leave alone what stays, the generation is asked for again while partitions are kept.
TEST(RulesTest, Rule10ACooperativeZombieCanWriteButNotCommit) {
  StandStill(WhenItWakes::kItsTransactionIsOpen, {"--assignment=cooperative"});
}

// The broker has ended its transaction, and lets nothing in under its old epoch.
TEST(RulesTest, Rules7And9AFencedProducerIsRecreated) { StandStill(WhenItWakes::kItIsFenced, {}); }

TEST(RulesTest, Rules7And9AFencedCooperativeProducerIsRecreated) {
  StandStill(WhenItWakes::kItIsFenced, {"--assignment=cooperative"});
}

// Stream time is made of the records' own: some days of it, with a horizon of an hour.
TEST(RulesTest, Rule13ARestartKnowsAllThatPassed) {
  Flow flow(Options());
  const int64_t day = 24 * 3'600'000;
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 3 * day;
  const int64_t step = 20'000;
  std::vector<Record> records;
  for (int i = 0; i < 5000; ++i) records.push_back(WithId(absl::StrCat("a", i), 0, begin + i * step));
  flow.Send(records);
  {
    const auto daemon = flow.Start({"--horizon=1h"});
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 5000; }));
  }  // killed
  const CommittedOffset committed = flow.Committed()[0];
  EXPECT_EQ(committed.offset, 5000);
  EXPECT_GT(MetadataField(committed, "r"), 4000);  // what is older than the horizon is not read again
  std::vector<Record> retries;
  for (const int old : {4999, 4900, 4850, 10}) {
    retries.push_back(WithId(absl::StrCat("a", old), 0, begin + 5000 * step));
  }
  flow.Send(retries);
  const auto daemon = flow.Start({"--horizon=1h"});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 4; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 3);
  EXPECT_GT(daemon->Metric("lethe_suppressed_records_total"), 180);
  EXPECT_TRUE(daemon->Stop());
  const std::vector<std::string> ids = flow.OutputIds();
  EXPECT_EQ(ids.size(), 5001u);
  EXPECT_EQ(ids.back(), "a10");  // a day old
}

// Each id twelve times within the horizon, in the memory that `plan` advises for the ids: what is replayed
// after a kill takes no more room than the run did.
TEST(RulesTest, Rule13CopiesOfAReplayTakeNoRoom) {
  constexpr int kIds = 18'000;
  constexpr int kRecords = 12 * kIds;
  Flow flow(Options());
  const int64_t hour_ms = 3'600'000;
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - hour_ms;
  std::vector<Record> records;
  for (int64_t i = 0; i < kRecords; ++i) {
    // An id's records are spread over the hour.
    const int64_t id = i < kIds / 2 ? i : i * 7919 % kIds;
    records.push_back(WithId(absl::StrCat("a", id), 0, begin + i * hour_ms / kRecords));
  }
  flow.Send(records);
  const Args args = {"--horizon=1h", "--memory=400KiB"};  // plan --rate 5 --horizon 1h --fpp 1e-9
  {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == kRecords; }));
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= kRecords; }));
    ASSERT_EQ(daemon->Metric("lethe_filter_memory_limit_hits_total"), 0);
  }  // killed
  std::vector<Record> copies;
  for (int64_t id = 0; id < 600; ++id) {
    copies.push_back(WithId(absl::StrCat("a", id * kIds / 600), 0, begin + hour_ms));
  }
  flow.Send(copies);
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 600; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 600);
  EXPECT_EQ(daemon->Metric("lethe_filter_memory_limit_hits_total"), 0);
  EXPECT_TRUE(daemon->Stop());
}

// (Started at `latest`, x before it was never output: a restore that read it would drop its retry.)
TEST(RulesTest, Rule13ARestoreNeverReadsBelowTheOrigin) {
  Flow flow(Options());
  flow.SendIds("x", 1, 200);
  {
    const auto daemon = flow.Start({"--start=latest"});
    ASSERT_TRUE(daemon->AwaitReady());
    flow.SendIds("y", 1, 200);
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 200; }));
  }
  flow.SendIds("y", 1, 200);
  flow.SendIds("x", 1, 200);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const std::vector<std::string> ids = flow.OutputIds();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 400u);
  EXPECT_EQ(ids.size(), 400u);
}

// R leaves the clock 101 records, which are eight days here. What counts is whether the hour is there, and
// `check` says beforehand what `run` will find.
TEST(RulesTest, Rule24RunAndCheckJudgeAHistoryByTheTimeThatIsMissing) {
  const KafkaClient::Configs for_ever = {{"retention.ms", "-1"}};
  Flow flow({LETHE_PROGRAM, 1, for_ever, for_ever});
  const int64_t now = absl::ToUnixMillis(absl::Now());
  std::vector<Record> records;
  for (int i = 0; i < 150; ++i) {
    records.push_back(WithId(absl::StrCat(i), 0, now - (150 - i) * int64_t{2 * 3'600'000}));
  }
  flow.Send(records);
  const Args args = {"--horizon=1h", "--on-short-history=fail"};
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  const int64_t restart = MetadataField(flow.Committed()[0], "r");
  const auto checked = [&] { return flow.RunCommand("check", args).out; };
  EXPECT_THAT(checked(), HasSubstr(absl::StrCat(" reads ", 150 - restart, " offsets of 1 partition")));
  {
    const auto daemon = flow.Start(args);
    EXPECT_TRUE(daemon->Await([&] {
      return daemon->Metric("lethe_suppressed_records_total") == static_cast<double>(150 - restart);
    }));
  }
  // First what is older than the hour is gone, then the idle partition has expired.
  for (const int64_t before : {120, 150}) {
    ASSERT_LT(restart, before);
    ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, before));
    EXPECT_THAT(checked(), Not(HasSubstr("short history")));
    EXPECT_TRUE(EndsWell(flow.RunToEnd(args)));
  }
  flow.SendIds("now", 1, 1);
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 151));
  EXPECT_THAT(checked(), HasSubstr("short history"));
  EXPECT_TRUE(IsRefused(flow.RunToEnd(args), "set on_short_history to continue"));
}

TEST(RulesTest, Rule13ALogThatStartsTooLateIsReported) {
  Flow flow(Options());
  flow.SendIds("a", 1, 1000);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 900));
  flow.SendIds("a", 901, 1100);
  auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 200; }));
  EXPECT_EQ(daemon->Metric("lethe_short_history"), 1);
  EXPECT_THAT(daemon->Log(), HasSubstr("short history"));
  EXPECT_THAT(daemon->Log(), HasSubstr("retention.ms"));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds().size(), 1100u);  // what is left of the log was known

  // Above the committed offset: records were deleted unread.
  flow.SendIds("a", 1101, 1200);
  ASSERT_OK(SharedClient().DeleteRecords(flow.input(), 0, 1250));
  EXPECT_TRUE(IsRefused(flow.RunToEnd(), "records 1200 to 1249 were deleted before lethe read them"));
  daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_partition_failed") == 1; }));
  EXPECT_EQ(daemon->Get("/readyz").status, 503);
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr("on_unread_deleted"));
  EXPECT_TRUE(daemon->Stop());
  flow.ResetGroup({{1250, ""}});  // another remedy
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.OutputIds().size(), 1150u);
}

TEST(RulesTest, Rule18EndsWhereTheInputEndedAtTheStart) {
  Flow flow(Options(2));
  flow.SendIds("a", 1, 100, 0);
  // An open transaction: it is not to be waited for, and not to be passed.
  const auto producer =
      TransactionalProducer::Start(SharedBroker().bootstrap(), UniqueName("producer")).value();
  ASSERT_OK(producer->Begin());
  const Record open = WithId("open", 1);
  ASSERT_OK(producer->Produce(flow.input(), {&open, 1}));
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.OutputIds().size(), 100u);
  ASSERT_OK(producer->Abort());
  flow.SendIds("b", 1, 100, 1);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_EQ(flow.OutputIds().size(), 200u);
}

// While the group hands partitions over an instance has none, which is not to be at their end.
TEST(RulesTest, Rule18ARebalanceIsNotTheEnd) {
  Flow flow(Options(4));
  RetryingClients clients(TestSeed());
  for (int batch = 0; batch < 20; ++batch) flow.Send(clients.Take(100));
  // So it is in the middle of its input for seconds.
  const SlowReading slow_reading(20'000);
  Args args = slow_reading.args();
  args.insert(args.end(), {"--instance=slow", "--exit-at-end"});
  const auto slow = flow.Start(args);
  ASSERT_TRUE(slow->AwaitReady());
  const auto passing = flow.Start({"--instance=passing"});
  ASSERT_TRUE(passing->AwaitReady());
  EXPECT_TRUE(passing->Stop());
  const absl::StatusOr<int> code = slow->process().Wait(absl::Seconds(60));
  EXPECT_THAT(code, IsOkAndHolds(0)) << slow->Log();
  EXPECT_TRUE(flow.ExactlyOnce()) << slow->Log();
}

// For a horizon after it copies may be in other partitions, also after a restart.
TEST(RulesTest, Rule19KeysMayHaveMovedForAHorizonAfterAnExpansion) {
  Flow flow(Options(2));
  const int64_t step = 10'000;
  const int64_t begin = absl::ToUnixMillis(absl::Now()) - 24 * 3'600'000;
  int at = 0;
  const auto send = [&](int count, int partitions) {
    std::vector<Record> records;
    for (int i = 0; i < count; ++i, ++at) {
      for (int p = 0; p < partitions; ++p) {
        records.push_back(WithId(absl::StrCat("p", p, "-", at), p, begin + at * step));
      }
    }
    flow.Send(records);
  };
  const auto moved = [&](Daemon& daemon, int32_t partition) {
    return daemon.Metric("lethe_keys_moved", {absl::StrCat("partition=\"", partition, "\"")});
  };
  const auto all_done = [&](Daemon& daemon) {
    return daemon.Await([&] {
      const auto ends = SharedClient().EndOffsets(flow.input(), Isolation::kReadCommitted).value();
      const std::vector<CommittedOffset> committed = flow.Committed();
      for (size_t p = 0; p < ends.size(); ++p) {
        if (committed[p].offset != ends[p]) return false;
      }
      return true;
    });
  };
  const Args args = {"--horizon=1h"};
  send(200, 2);
  {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(all_done(*daemon));
    EXPECT_EQ(daemon->Metric("lethe_keys_moved"), 0);
    ASSERT_OK(SharedClient().AddPartitions(flow.output(), 3));
    ASSERT_OK(SharedClient().AddPartitions(flow.input(), 3));
    ASSERT_TRUE(daemon->AwaitLog(flow.input() + "-2 was added to the topic"));
    ASSERT_TRUE(daemon->AwaitLog("partitions were added, it has 3 now"));
    EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_keys_moved") == 3; }));
    EXPECT_THAT(daemon->Get("/status").body, HasSubstr(R"("keys_moved":true)"));
    send(200, 3);
    ASSERT_TRUE(all_done(*daemon));
    EXPECT_TRUE(daemon->Stop());
  }
  const auto daemon = flow.Start(args);
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_keys_moved") == 3; }));
  EXPECT_TRUE(daemon->AwaitLog("keys may have moved"));
  // An hour and more, in the partition where it passes.
  std::vector<Record> later;
  for (int i = 0; i < 600; ++i) {
    later.push_back(WithId(absl::StrCat("later", i), 1, begin + (at + i) * step));
  }
  flow.Send(later);
  ASSERT_TRUE(all_done(*daemon));
  EXPECT_TRUE(daemon->Await([&] { return moved(*daemon, 1) == 0; }));
  EXPECT_EQ(moved(*daemon, 0), 1);
  EXPECT_EQ(moved(*daemon, 2), 1);
  EXPECT_TRUE(daemon->Stop());
  // It is not taken for new.
  const auto again = flow.Start(args);
  ASSERT_TRUE(again->AwaitReady());
  EXPECT_TRUE(again->Await([&] { return moved(*again, 0) == 1 && moved(*again, 2) == 1; }));
  EXPECT_EQ(moved(*again, 1), 0);
  EXPECT_TRUE(again->Stop());
}

TEST(RulesTest, SigtermUnderLoad) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(4));
  for (int round = 0; round < 3; ++round) {
    const auto daemon = flow.Start();
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > 0; }));
    flow.Send(clients.Take(5000));
    EXPECT_TRUE(daemon->Stop());
    // What is out and what is committed agree, however much of the input is left.

    std::vector<Record> input;
    const std::vector<CommittedOffset> committed = flow.Committed();
    for (Record& record : flow.Input()) {
      if (record.offset < committed[static_cast<size_t>(record.partition)].offset) {
        input.push_back(std::move(record));
      }
    }
    EXPECT_TRUE(Deduplicated(input, flow.Output(), JsonId));
  }
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// As `timeout` and some supervisors ask. Two different signals, since equal ones may be delivered as one.
TEST(RulesTest, ASecondSignalAtOnceIsTheSameRequestToStop) {
  Flow flow(Options(1));
  const auto daemon = flow.Start({"--commit-interval=10s"});
  ASSERT_TRUE(daemon->AwaitReady());
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() >= 100; }));
  ASSERT_OK(daemon->process().Signal(SIGTERM));
  ASSERT_OK(daemon->process().Signal(SIGINT));
  EXPECT_EQ(daemon->process().Wait(absl::Seconds(20)).value_or(-1), 0) << daemon->Log();
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(RulesTest, AtLeastOnceLosesNothing) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(4));
  const Args args = {"--delivery=at_least_once"};
  for (int round = 0; round < 3; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > 0; }));
    flow.Send(clients.Take(3000));
  }  // killed
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  std::set<std::string> out;
  for (std::string& id : flow.OutputIds()) out.insert(std::move(id));
  for (const Record& record : flow.Input()) EXPECT_TRUE(out.contains(JsonId(record))) << JsonId(record);
}

}  // namespace
}  // namespace lethe::test
