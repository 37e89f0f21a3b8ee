// The rules again, where something breaks under a lethe that runs: its producer is fenced, its wire is cut,
// its topics change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using Header = std::pair<std::string, std::optional<std::string>>;

// Ends the open transaction of a flow's lethe: the broker aborts it, and takes nothing more of its
// producer's.
void Fence(const Flow& flow) {
  const auto fenced =
      TransactionalProducer::Start(SharedBroker().bootstrap(), absl::StrCat(flow.group(), "/test/0"));
  ASSERT_OK(fenced);
}

// (Inserted at once, a write fails, the batch is read again: everything looks like a duplicate and is lost.)
TEST(RulesTest, Rule1WhatWasAbortedIsJudgedAgainByAFilterThatDoesNotKnowIt) {
  Flow flow(Options());
  const auto daemon = flow.Start({"--commit-interval=2s"});
  flow.SendIds("a", 1, 500);
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() >= 500; }));  // and none of it is committed
  Fence(flow);
  flow.SendIds("b", 1, 1);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 601; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"unique\""}), 501);
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 100);
  EXPECT_GE(daemon->Metric("lethe_transactions_aborted_total"), 1);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// Every abort sets the consumer back, with messages fetched ahead. (A fence that comes between two
// transactions aborts none.)
TEST(RulesTest, Rule21NothingIsSkippedOrRepeatedWhereReadingGoesBack) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(4));
  const auto daemon = flow.Start();
  for (int fences = 1; daemon->Metric("lethe_transactions_aborted_total") < 5; ++fences) {
    ASSERT_LE(fences, 25) << daemon->Log();
    const double before = daemon->Metric("lethe_records_total");
    ASSERT_TRUE(
        SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > before + 500; }));
    Fence(flow);
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_fences_total") >= fences; }))
        << daemon->Log();
  }
  EXPECT_TRUE(daemon->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// With fewer records than have been read: the rest is told apart by that.
TEST(RulesTest, Rule3ATopicRecreatedUnderItIsReadFromItsStart) {
  Flow flow(Options());
  flow.SendIds("a", 1, 300);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 300; }));
  ASSERT_OK(SharedClient().DeleteTopic(flow.input()));
  ASSERT_OK(SharedClient().CreateTopic(flow.input(), 1, {{"retention.ms", "-1"}}));
  flow.SendIds("b", 1, 200);
  // Which of the two it is depends on what it hears first: that the topic was away, or that the offset is not
  // there.
  const auto reads_it_again = [&] { return flow.OutputIds().size() == 500; };
  const auto refuses = [&] { return daemon->Metric("lethe_partition_failed") == 1; };
  ASSERT_TRUE(daemon->Await([&] { return reads_it_again() || refuses(); }));
  EXPECT_TRUE(daemon->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--accept-nonempty-output=true"})));
  EXPECT_EQ(flow.OutputIds().size(), 500u);
}

// Its commits went with the old one, and `latest` is for a group that has not begun.
TEST(RulesTest, Rule3ATopicThatWasAwayIsReadFromItsStartWhereverAGroupStarts) {
  Flow flow(Options());
  const auto daemon = flow.Start({"--start=latest"});
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 0; }));
  flow.SendIds("a", 1, 300);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 300; }));
  ASSERT_OK(SharedClient().DeleteTopic(flow.input()));
  ASSERT_TRUE(daemon->AwaitLog("was deleted"));
  ASSERT_OK(SharedClient().CreateTopic(flow.input(), 1, {{"retention.ms", "-1"}}));
  flow.SendIds("b", 1, 200);
  EXPECT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 200; })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds().size(), 500u);
}

// With the input gone there is nothing to do but to say so; what is out stays.
TEST(RulesTest, Rule3AnInputDeletedUnderItIsReported) {
  Flow flow(Options());
  Flow other(Options());
  flow.SendIds("a", 1, 300);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 300; }));
  const auto elsewhere = other.Start();
  other.SendIds("c", 1, 100);
  ASSERT_OK(SharedClient().DeleteTopic(flow.input()));
  EXPECT_TRUE(daemon->Await([&] { return daemon->Get("/readyz").status == 503; }));
  EXPECT_TRUE(daemon->AwaitLog(absl::StrCat("input topic ", flow.input(), " was deleted")));
  EXPECT_TRUE(daemon->Await([&] { return absl::StrContains(daemon->Get("/readyz").body, "recreate it"); }));
  EXPECT_THAT(daemon->Get("/readyz").body, Not(HasSubstr("after a crash")));
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("after a crash")));
  EXPECT_EQ(flow.OutputIds().size(), 300u);
  EXPECT_TRUE(daemon->Stop());
  other.SendIds("c", 50, 200);
  EXPECT_TRUE(elsewhere->Await([&] { return elsewhere->Metric("lethe_records_total") >= 251; }));
  EXPECT_TRUE(elsewhere->Stop());
  EXPECT_TRUE(other.ExactlyOnce());
}

// What is in the input and not out yet is not lost: it waits for the topic.
TEST(RulesTest, Rule5AnOutputTopicThatIsDeletedUnderItCommitsNothing) {
  Flow flow(Options());
  flow.SendIds("a", 1, 300);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 300; }));
  ASSERT_OK(SharedClient().DeleteTopic(flow.output()));
  flow.SendIds("b", 1, 300);
  EXPECT_TRUE(daemon->AwaitLog("it resumes when you create it"));
  EXPECT_TRUE(daemon->Await([&] { return absl::StrContains(daemon->Get("/readyz").body, flow.output()); }));
  EXPECT_EQ(flow.Committed()[0].offset, 300);
  ASSERT_OK(SharedClient().CreateTopic(flow.output(), 1, {{"retention.ms", "-1"}}));
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 600; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_EQ(flow.OutputIds().size(), 300u);
}

// (A partition that is restoring, at 500 with C = 1000, must not be committed at 500 by the transaction of
// another.)
TEST(RulesTest, Rule5ATransactionCommitsWhatItCarriedOutAndNothingElse) {
  Flow flow(Options(2));
  for (int i = 0; i < 40; ++i) flow.SendIds("old", 20 * i + 1, 20 * i + 20, 1);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const SlowReading slow_reading(5000);  // of 25,000: the restore takes seconds
  Args args = slow_reading.args();
  args.insert(args.end(), {"--kafka=fetch.max.bytes=1000", "--kafka=message.max.bytes=1000"});
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(
      daemon->Await([&] { return absl::StrContains(daemon->Get("/readyz").body, "-1 is restoring"); }));
  flow.SendIds("new", 1, 10, 0);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 10; }));
  EXPECT_THAT(daemon->Get("/readyz").body, HasSubstr("-1 is restoring")) << "it was too quick for this test";
  EXPECT_EQ(flow.Committed()[1].offset, 800);
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// A client that is patient with brokers that do not answer: whatever is lost, it stays in the group.
Args Over(const SharedWireToBroker& wire, const Args& more = {}) {
  Args args = {"--brokers=" + wire.bootstrap, "--kafka=session.timeout.ms=60000",
               "--kafka=socket.timeout.ms=2000"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Waits until a lane waits for something. Meanwhile the wire fails, and works again afterwards.
testing::AssertionResult AwaitFailing(const SharedWireToBroker& wire, Daemon& daemon,
                                      absl::string_view what) {
  testing::AssertionResult waits = daemon.AwaitLog(absl::StrCat("lane 0: waiting: ", what));
  if (!waits) {
    wire.proxy.SetStalled(false);
    wire.proxy.SetLosingReplies(false);
  }
  return waits;
}

// The broker is not to be heard for longer than one call, and one request, may take, in whatever part of a
// commit.
TEST(RulesTest, Rule7ACommitWithoutAnAnswerIsTriedAgainAndNotAborted) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const SharedWireToBroker wire = SharedWire();
  const auto daemon = flow.Start(Over(wire, {"--commit-interval=2s"}));
  ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > 0; }));
  bool waits = false;
  // Again, if the transaction that was open ended before the wire stood still.
  for (int attempt = 0; attempt < 5 && !waits; ++attempt) {
    ASSERT_TRUE(SendUntil(flow, clients, [&] {
      return SharedClient().EndOffsets(flow.output(), Isolation::kReadCommitted).value() !=
             SharedClient().EndOffsets(flow.output(), Isolation::kReadUncommitted).value();
    }));
    wire.proxy.SetStalled(true);
    waits = WaitUntil(
        [&] {
          const std::string log = daemon->Log();
          return absl::StrContains(log, "lane 0: waiting: adding the offsets to the transaction: ") ||
                 absl::StrContains(log, "lane 0: waiting: committing a transaction: ");
        },
        absl::Seconds(15));
    wire.proxy.SetStalled(false);
  }
  ASSERT_TRUE(waits) << daemon->Log();
  const double before = daemon->Metric("lethe_records_total");
  ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > before; }));
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// The broker has committed, and says so to nobody. (Aborted then, and judged again, all of it would be out
// twice.)
TEST(RulesTest, Rule7ACommitWhoseAnswerIsLostIsNotRepeated) {
  Flow flow(Options());
  const SharedWireToBroker wire = SharedWire();
  const auto daemon = flow.Start(Over(wire));
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  wire.proxy.LoseRepliesFrom(TcpProxy::kEndTransaction);
  flow.SendIds("b", 1, 100);
  flow.SendIds("b", 1, 50);
  ASSERT_TRUE(AwaitFailing(wire, *daemon, "committing a transaction: "));
  // Some of it is out, and lethe has not heard of that.
  EXPECT_GT(wire.proxy.lost_bytes(), 0);
  EXPECT_TRUE(WaitUntil(
      [&] { return SharedClient().ReadAll(flow.output(), Isolation::kReadCommitted)->size() > 100; },
      absl::Minutes(1)));
  EXPECT_GT(flow.Committed()[0].offset, 100);
  EXPECT_EQ(daemon->Metric("lethe_records_total"), 100);
  wire.proxy.SetLosingReplies(false);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 250; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 50);
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// What has been fetched meanwhile is of the next transaction, and is judged when this one is committed.
TEST(RulesTest, Rule8WhileATransactionCommitsNothingIsWritten) {
  constexpr int kRecords = 20'000;
  Flow flow(Options());
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const int64_t before = flow.OutputSize();
  // Much more than is judged in a millisecond, or at once; one answer of the broker's has most of it.
  flow.SendIds("b", 1, kRecords);
  const SharedWireToBroker wire = SharedWire();
  wire.proxy.LoseRepliesFrom(TcpProxy::kEndTransaction);
  const auto daemon = flow.Start(Over(wire, {"--commit-interval=1ms"}));
  ASSERT_TRUE(AwaitFailing(wire, *daemon, "committing a transaction: "));
  // For a second it has waited now. There are the records of this transaction and its end, and nothing else.
  ASSERT_TRUE(WaitUntil([&] { return flow.Committed()[0].offset > 10; }, absl::Minutes(1)));
  const int64_t committed = flow.Committed()[0].offset;
  EXPECT_LT(committed, 10 + kRecords);
  EXPECT_TRUE(WaitUntil([&] { return flow.OutputSize() > before + committed - 10; }, absl::Minutes(1)));
  EXPECT_EQ(flow.OutputSize(), before + committed - 10 + 1);
  wire.proxy.SetLosingReplies(false);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 10 + kRecords; }));
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// It is fenced while it waits for the first answer of its commit.
TEST(RulesTest, Rule8ACommitThatFailsForgetsAllThatItsTransactionPassed) {
  Flow flow(Options());
  const SharedWireToBroker wire = SharedWire();
  const auto daemon = flow.Start(Over(wire));
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  wire.proxy.LoseRepliesFrom(TcpProxy::kAddOffsetsToTransaction);
  flow.SendIds("b", 1, 100);
  flow.SendIds("b", 1, 50);
  ASSERT_TRUE(AwaitFailing(wire, *daemon, "adding the offsets to the transaction: "));
  Fence(flow);
  EXPECT_EQ(flow.Committed()[0].offset, 100);
  wire.proxy.SetLosingReplies(false);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 250; }));
  EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"unique\""}), 200);
  EXPECT_GE(daemon->Metric("lethe_transactions_aborted_total"), 1);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// 60 of 101 records at the start and in the middle; what came before them, and after them, is compared with
// its copies, in the live run and in one that has read all of it again.
class BadClocks : public testing::TestWithParam<std::pair<const char*, int64_t>> {};
TEST_P(BadClocks, Rule14AMajorityOfWildTimestampsChangesNothing) {
  const int64_t now = absl::ToUnixMillis(absl::Now());
  const int64_t wild = GetParam().second;
  const bool is_ahead = wild > now;
  for (const char* scope : {"--scope=partition", "--scope=topic"}) {
    SCOPED_TRACE(scope);
    Flow flow(Options());
    int next_wild = 0;
    const auto send_wild = [&] {
      std::vector<Record> records;
      for (int i = 0; i < 60; ++i) records.push_back(WithId(absl::StrCat("wild", next_wild++), 0, wild));
      flow.Send(records);
    };
    const auto send = [&](int first, int last, int64_t at) {
      std::vector<Record> records;
      for (int i = first; i < last; ++i) records.push_back(WithId(absl::StrCat("a", i), 0, at + i));
      flow.Send(records);
    };
    send_wild();
    send(0, 300, now - 5000);
    send_wild();
    send(300, 400, now - 5000);
    send(0, 400, now - 4000);  // copies
    const Args args = {"--horizon=1h", scope};
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 920; })) << daemon->Log();
    EXPECT_EQ(daemon->Metric("lethe_records_total", {"verdict=\"duplicate\""}), 400);
    const std::vector<std::string> of_input = {absl::StrCat("topic=\"", flow.input(), "\"")};
    // A router's commit is told after the records that it routed were judged.
    EXPECT_TRUE(daemon->Await([&] {
      return daemon->Metric("lethe_future_timestamps_total", of_input) == (is_ahead ? 120 : 0);
    })) << daemon->Metric("lethe_future_timestamps_total", of_input);
    EXPECT_TRUE(daemon->Await([&] {
      const double skew = daemon->Metric("lethe_stream_time_skew_seconds");
      return skew < 0 && skew > -600;
    })) << daemon->Metric("lethe_stream_time_skew_seconds");
    // Bounded: 580 ids are in a filter that grows by need; if wild times moved the window, it would not.
    EXPECT_LT(daemon->Metric("lethe_filter_memory_bytes"), 1 << 20);
    EXPECT_TRUE(daemon->Stop());
    send(0, 400, now - 3000);
    send_wild();
    ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
    std::vector<std::string> ids = flow.OutputIds();
    EXPECT_EQ(ids.size(), 580u);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  }
}
INSTANTIATE_TEST_SUITE_P(
    RulesTest, BadClocks,
    testing::Values(std::pair("TenYearsAhead", absl::ToUnixMillis(absl::Now()) + 10 * 365 * 86'400'000LL),
                    std::pair("Microseconds", absl::ToUnixMicros(absl::Now())), std::pair("Zero", 0LL),
                    std::pair("TenYearsAgo", absl::ToUnixMillis(absl::Now()) - 10 * 365 * 86'400'000LL)),
    [](const auto& kind) { return kind.param.first; });

// As a version that did not bound stream time has left it: everything since the restart offset was judged in
// the year 2100.
TEST(RulesTest, Rule14APoisonedGroupRecovers) {
  Flow flow(Options());
  flow.SendIds("a", 1, 300);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--horizon=1h"})));
  const CommittedOffset before = flow.Committed()[0];
  const std::string told = absl::StrCat(" ct=", MetadataField(before, "ct"), " ");
  ASSERT_THAT(before.metadata, HasSubstr(told));
  flow.ResetGroup({{before.offset, absl::StrReplaceAll(before.metadata, {{told, " ct=4102444800000 "}})}});
  flow.SendIds("a", 1, 300);
  flow.SendIds("b", 1, 200);
  ASSERT_TRUE(EndsWell(flow.RunToEnd({"--horizon=1h"})));
  EXPECT_EQ(flow.OutputIds().size(), 500u);
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_LE(MetadataField(flow.Committed()[0], "ct"), absl::ToUnixMillis(absl::Now()));
}

// (Partitions 3 and 5 both count "en": whoever reads the partition of "en" needs the deltas of both.)
TEST(RulesTest, Rule16DeltasOfAKeyAreInOnePartitionAndExactThroughKills) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(3));
  const std::string counters = UniqueName("counters");
  ASSERT_OK(SharedClient().CreateTopic(counters, 3, {{"retention.ms", "-1"}}));
  const Args args = {"--counter=name=counter,key=json:/country,delta=json:/amount,output=" + counters};
  for (int round = 0; round < 3; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon->Metric("lethe_records_total") > 0; }));
    flow.Send(clients.Take(2000));
  }  // killed
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
  Totals expected;
  Totals actual;
  std::map<std::string, std::set<int32_t>> places;
  const auto key = [](absl::string_view partition, const std::string& country) {
    return absl::StrCat(partition, "/", country);
  };
  simdjson::dom::parser parser;
  for (const Record& record : flow.Output()) {
    const simdjson::dom::element order = parser.parse(*record.value).value();
    expected[key(absl::StrCat(record.partition), std::string(order["country"].get_string().value()))] +=
        order["amount"].get_int64().value();
  }
  // A key that all partitions share.
  for (const char* shared : {"0/is", "1/is", "2/is"}) EXPECT_TRUE(expected.contains(shared)) << shared;
  const auto deltas = SharedClient().ReadSettled(counters);
  ASSERT_OK(deltas);
  for (const Record& record : *deltas) {
    int64_t delta = 0;
    ASSERT_TRUE(absl::SimpleAtoi(record.value.value_or(""), &delta));
    ASSERT_EQ(record.headers.size(), 3u);
    EXPECT_EQ(record.headers[0], (Header{"lethe.counter", "counter"}));
    EXPECT_EQ(record.headers[1], (Header{"lethe.topic", flow.input()}));
    EXPECT_EQ(record.headers[2].first, "lethe.partition");
    actual[key(*record.headers[2].second, record.key.value_or(""))] += delta;
    places[record.key.value_or("")].insert(record.partition);
  }
  for (const auto& [country, partitions] : places) EXPECT_EQ(partitions.size(), 1u) << country;
  EXPECT_TRUE(SameTotals(expected, actual));
}

// One instance hears of the new partition at once and hands it to the other, which may not have heard of it.
TEST(RulesTest, Rule19ANewPartitionIsReadFromItsStart) {
  Flow flow(Options());
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 2));
  const auto first =
      flow.Start({"--instance=1", "--start=latest", "--kafka=topic.metadata.refresh.interval.ms=500"});
  ASSERT_TRUE(first->AwaitReady());
  const auto second = flow.Start({"--instance=2", "--start=latest"});
  ASSERT_TRUE(second->AwaitReady());
  flow.SendIds("a", 1, 100, 0);
  ASSERT_TRUE(first->Await(
      [&] { return first->Metric("lethe_records_total") + second->Metric("lethe_records_total") >= 100; }));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 2));
  flow.SendIds("b", 1, 100, 1);
  EXPECT_TRUE(second->Await([&] { return flow.OutputIds().size() == 200; })) << first->Log();
  EXPECT_TRUE(first->Stop());
  EXPECT_TRUE(second->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(RulesTest, Rule19APartitionThatHasNowhereToGoIsHeldAndNoOther) {
  Flow flow(Options());
  flow.SendIds("a", 1, 100);
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") >= 100; }));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 2));
  flow.SendIds("b", 1, 100, 1);
  ASSERT_TRUE(daemon->AwaitLog("-1 is held at offset 0: "));
  flow.SendIds("a", 51, 200);
  EXPECT_TRUE(daemon->Await([&] { return flow.OutputIds().size() == 200; }));
  EXPECT_TRUE(daemon->Await([&] {
    const HttpAnswer ready = daemon->Get("/readyz");
    return ready.status == 503 && absl::StrContains(ready.body, "it resumes when you add partitions there") &&
           daemon->Metric("lethe_partition_failed") == 1;
  })) << daemon->Get("/readyz").body;
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 2));
  EXPECT_TRUE(daemon->Await([&] { return flow.OutputIds().size() == 300; }));
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

}  // namespace
}  // namespace lethe::test
