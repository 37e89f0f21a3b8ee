// Totals in a real Redis, exact whatever happens to it and to lethe.
#include "src/counters/counter_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "connectors/kafka/counters/totals_topic.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/totals/totals_feed.h"
#include "tests/integration/counting.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"
#include "tests/support/redis_server.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::unique_ptr<RedisServer> StartRedis(std::vector<std::string> args = {}) {
  auto server = RedisServer::Start(std::move(args));
  EXPECT_OK(server);
  return server.ok() ? *std::move(server) : nullptr;
}

Args CountOrdersInto(const std::string& totals, int redis_port) {
  Args args = CountOrders(totals);
  absl::StrAppend(&args.back(), ",store=redis://127.0.0.1:", redis_port, "/0");
  return args;
}

// What an application reads.
Totals InRedis(const RedisServer& server, const std::string& totals) {
  Totals read;
  for (const auto& [key, value] : server.Hash("lethe:" + totals)) {
    EXPECT_TRUE(absl::SimpleAtoi(value, &read[key])) << key << ": " << value;
  }
  return read;
}

int Count(absl::string_view text, absl::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Sends until the daemon has counted more than before.
testing::AssertionResult CountMore(Flow& flow, RetryingClients& clients, Daemon& daemon) {
  const double before = daemon.Metric("lethe_deltas_total");
  return SendUntil(flow, clients, [&] { return daemon.Metric("lethe_deltas_total") > before; });
}

// Of all that was sent so far.
testing::AssertionResult AwaitExact(Flow& flow, Daemon& daemon, const RedisServer& redis,
                                    const std::string& totals) {
  // The lag that the daemon shows knows no record of the last moments.
  testing::AssertionResult read = daemon.Await([&] { return static_cast<bool>(flow.ExactlyOnce()); });
  if (!read) return read;
  const Totals expected = CountedKeys(flow, "country", "amount");
  daemon.Await([&] { return InRedis(redis, totals) == expected; });
  return SameTotals(expected, InRedis(redis, totals));
}

TEST(CounterStoreTest, ExactThroughKillsOfBothAndARebalance) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(3));
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  const Args args = CountOrdersInto(totals, redis->port());
  for (int round = 0; round < 2; ++round) {
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(CountMore(flow, clients, *daemon));
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_totals_total") > 0; }));
    redis->Kill();
    ASSERT_TRUE(CountMore(flow, clients, *daemon));
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_connected") == 0; }));
    ASSERT_OK(redis->Restart());
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_connected") == 1; }));
    Args other = args;
    other.emplace_back("--instance=other");
    const auto second = flow.Start(other);
    ASSERT_TRUE(second->AwaitReady());
    ASSERT_TRUE(CountMore(flow, clients, *second));
    ASSERT_TRUE(second->Await([&] { return second->Metric("lethe_store_totals_total") > 0; }));
    // One that is killed keeps its partitions for as long as its session lasts, and the end is not waited
    // for.
    EXPECT_TRUE(second->Stop());
  }  // killed
  const Finished finished = flow.RunToEnd(args);
  ASSERT_TRUE(EndsWell(finished));
  EXPECT_TRUE(flow.ExactlyOnce()) << finished.err;
  EXPECT_TRUE(SameTotals(CountedKeys(flow, "country", "amount"), InRedis(*redis, totals)));
}

// Also where it ends before anybody has looked twice.
TEST(CounterStoreTest, TheEndIsNotReachedBeforeTheStoreHasIt) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  for (int round = 0; round < 3; ++round) {
    flow.Send(clients.Take(200));
    ASSERT_TRUE(EndsWell(flow.RunToEnd(CountOrdersInto(totals, redis->port()))));
    EXPECT_TRUE(SameTotals(CountedKeys(flow, "country", "amount"), InRedis(*redis, totals)));
  }
}

// Totals are then of the partitions of lethe's own topic.
TEST(CounterStoreTest, ExactWithScopeTopic) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  Args args = CountOrdersInto(totals, redis->port());
  args.emplace_back("--scope=topic");
  for (int round = 0; round < 2; ++round) {
    flow.Send(clients.Take(300));
    ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
    const Totals expected = CountedKeys(flow, "country", "amount");
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(SameTotals(expected, InRedis(*redis, totals)));
  }
}

// Nobody has to do anything but what the log says; the stream goes on meanwhile.
TEST(CounterStoreTest, AStoreThatIsOutOfMemoryIsWaitedFor) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const auto redis = StartRedis({"--maxmemory-policy", "noeviction"});
  const std::string totals = UniqueName("totals");
  const auto daemon = flow.Start(CountOrdersInto(totals, redis->port()));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_totals_total") > 0; }));
  ASSERT_OK(redis->Command({"CONFIG", "SET", "maxmemory", "1"}));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(daemon->AwaitLog("raise maxmemory"));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_errors_total") >= 3; }));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_lag_records") > 0; }));
  EXPECT_EQ(daemon->Metric("lethe_store_connected"), 0);
  EXPECT_GT(daemon->Metric("lethe_store_lag_seconds"), 0);
  const HttpAnswer ready = daemon->Get("/readyz");
  EXPECT_EQ(ready.status, 200) << ready.body;
  EXPECT_THAT(ready.body, HasSubstr("raise maxmemory"));
  ASSERT_OK(redis->Command({"CONFIG", "SET", "maxmemory", "0"}));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_lag_records") == 0; }));
  EXPECT_EQ(daemon->Metric("lethe_store_connected"), 1);
  EXPECT_EQ(daemon->Metric("lethe_store_lag_seconds"), 0);
  EXPECT_TRUE(AwaitExact(flow, *daemon, *redis, totals));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// Once for each change, however often it is tried.
TEST(CounterStoreTest, EachChangeIsReportedOnce) {
  RetryingClients clients(TestSeed());
  Flow flow(Options());
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  redis->Kill();
  const auto daemon = flow.Start(CountOrdersInto(totals, redis->port()));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_errors_total") >= 5; }));
  ASSERT_OK(redis->Restart());
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_totals_total") > 0; }));
  redis->Kill();
  const double errors = daemon->Metric("lethe_store_errors_total");
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_errors_total") >= errors + 5; }));
  const std::string log = daemon->Log();
  EXPECT_EQ(Count(log, "takes totals\n"), 1) << log;
  EXPECT_EQ(Count(log, "The totals are safe in"), 2) << log;
  // Somebody waits for the end, not for the store.
  EXPECT_TRUE(daemon->Stop());
  EXPECT_THAT(daemon->Log(), HasSubstr("lacks the last totals"));
}

TEST(CounterStoreTest, AWrongPasswordIsReportedUntilItIsCorrected) {
  RetryingClients clients(TestSeed());
  Flow flow(Options());
  const auto redis = StartRedis();
  ASSERT_OK(redis->Command({"ACL", "SETUSER", "lethe", "on", ">before", "~*", "+@all"}));
  const std::string totals = UniqueName("totals");
  std::string folder = (std::filesystem::temp_directory_path() / "lethe-store-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/password") << "hush-hush\n";
  const std::string file = folder + "/lethe.yaml";
  std::ofstream(file) << "counters:\n  - name: revenue\n    mode: total\n    key: json:/country\n"
                      << "    delta: json:/amount\n    output: " << totals
                      << "\n    store: redis://lethe@127.0.0.1:" << redis->port()
                      << "/2\n    store_password: ${file:" << folder << "/password}\n";
  const auto daemon = flow.Start({"--config=" + file});
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(daemon->AwaitLog("see to store_password"));
  EXPECT_TRUE(daemon->AwaitReady());
  ASSERT_OK(redis->Command({"ACL", "SETUSER", "lethe", ">hush-hush"}));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_connected") == 1; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("hush-hush")));
  const Finished printed = flow.RunCommand("run", {"--config=" + file, "--print-config"});
  EXPECT_THAT(printed.out, HasSubstr("store_password: \"(hidden)\""));
  EXPECT_THAT(printed.out, Not(HasSubstr("hush-hush")));
  EXPECT_TRUE(EndsWell(flow.RunToEnd({"--config=" + file})));
  // Out of database 2.
  ASSERT_OK(
      redis->Command({"EVAL", "redis.call('SELECT', 2); return redis.call('COPY', KEYS[1], KEYS[1], 'DB', 0)",
                      "1", "lethe:" + totals}));
  EXPECT_TRUE(SameTotals(CountedKeys(flow, "country", "amount"), InRedis(*redis, totals)));
  std::filesystem::remove_all(folder);
}

// A replica may lack the last writes of its primary, and the connection is all that is lost.
TEST(CounterStoreTest, AReplicaThatLacksWritesIsFilledAgain) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const auto primary = StartRedis();
  const auto replica = StartRedis({"--replicaof", "127.0.0.1", absl::StrCat(primary->port())});
  const auto wire = TcpProxy::Start().value();
  const int port = wire->Listen().value();
  wire->Forward(port, primary->port());
  const std::string totals = UniqueName("totals");
  const auto daemon = flow.Start(CountOrdersInto(totals, port));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(daemon->Await([&] { return !InRedis(*replica, totals).empty(); }));
  ASSERT_OK(replica->Command({"REPLICAOF", "NO", "ONE"}));
  // These the primary takes with it.
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  ASSERT_TRUE(AwaitExact(flow, *daemon, *primary, totals));
  ASSERT_NE(InRedis(*replica, totals), InRedis(*primary, totals));
  primary->Kill();
  wire->Forward(port, replica->port());
  wire->Cut();
  // Without another record.
  const Totals expected = CountedKeys(flow, "country", "amount");
  ASSERT_TRUE(daemon->Await([&] { return InRedis(*replica, totals) == expected; }));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  EXPECT_TRUE(AwaitExact(flow, *daemon, *replica, totals));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST(CounterStoreTest, AReplicaThatIsNoPrimaryIsNotWrittenTo) {
  Flow flow(Options());
  const auto primary = StartRedis();
  const auto replica = StartRedis({"--replicaof", "127.0.0.1", absl::StrCat(primary->port())});
  const auto daemon = flow.Start(CountOrdersInto(UniqueName("totals"), replica->port()));
  Record order = WithId("1");
  order.value = R"({"id":"1","country":"is","amount":5})";
  flow.Send({order});
  EXPECT_TRUE(daemon->AwaitLog("let `store` name the primary"));
  EXPECT_TRUE(daemon->Stop());
}

// Stores nothing: another instance has just stored all that the topic has, which has grown since lethe asked
// for its end.
class StoreOfAnother : public CounterStore {
 public:
  explicit StoreOfAnother(std::string topic) : topic_(std::move(topic)) {}

  const std::string& name() const override { return topic_; }
  std::string ResetCommand() const override { return "reset"; }
  void Interrupt() override {}
  absl::StatusOr<std::vector<int64_t>> Positions(const std::vector<int32_t>& partitions) override {
    EXPECT_EQ(partitions, std::vector<int32_t>{0});
    EXPECT_OK(SharedClient().Produce(topic_, {WithId("1")}));
    const std::lock_guard<std::mutex> lock(mutex_);
    ++calls_;
    called_.notify_all();
    return std::vector<int64_t>{calls_};
  }
  absl::StatusOr<std::vector<int64_t>> Apply(const std::vector<StoreBatch>& batches) override {
    std::vector<int64_t> positions;
    for (const StoreBatch& batch : batches) positions.push_back(batch.to);
    return positions;
  }
  bool AwaitCalls(int64_t calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    return called_.wait_for(lock, std::chrono::seconds(30), [&] { return calls_ >= calls; });
  }

 private:
  const std::string topic_;
  std::mutex mutex_;
  std::condition_variable called_;
  int64_t calls_ = 0;  // guarded by mutex_
};

TEST(CounterStoreTest, APositionThatIsNewerThanTheKnownEndIsNoAlarm) {
  DaemonOptions options;
  options.process.brokers = SharedBroker().bootstrap();
  options.input = UniqueName("input");
  options.process.group = UniqueName("group");
  CounterOptions counter;
  counter.name = "likes";
  counter.output = UniqueName("totals");
  ASSERT_OK(SharedClient().CreateTopic(counter.output, 1, {}));
  auto owned = std::make_unique<StoreOfAnother>(counter.output);
  StoreOfAnother& store = *owned;
  StopFlag stop;
  TotalsFeed feed(
      options, counter, std::move(owned), std::make_unique<kafka::TotalsTopic>(options, counter.output),
      [] { return std::vector<int32_t>{0}; }, stop);
  feed.Start();
  ASSERT_TRUE(store.AwaitCalls(4));
  EXPECT_EQ(feed.Report().failures, 0) << feed.Report().problem;
  feed.Finish(absl::ZeroDuration(), [] { return false; });
}

// Data that are lost are written again, also while nothing is counted.
TEST(CounterStoreTest, AnEmptiedStoreIsFilledAgain) {
  RetryingClients clients(TestSeed());
  Flow flow(Options(2));
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  const auto daemon = flow.Start(CountOrdersInto(totals, redis->port()));
  flow.Send(clients.Take(5000));
  ASSERT_TRUE(daemon->Await([&] {
    return daemon->Metric("lethe_records_total") >= 5000 && daemon->Metric("lethe_store_lag_records") == 0;
  }));
  const Totals expected = CountedKeys(flow, "country", "amount");
  ASSERT_TRUE(daemon->Await([&] { return InRedis(*redis, totals) == expected; }));
  for (const auto& deletion : {Args{"FLUSHALL"}, Args{"DEL", "lethe:" + totals}}) {
    ASSERT_OK(redis->Command(deletion));
    EXPECT_TRUE(daemon->Await([&] { return InRedis(*redis, totals) == expected; }));
  }
  EXPECT_TRUE(daemon->Stop());
}

// Totals of a topic that is gone would be mixed with those of the new one.
TEST(CounterStoreTest, AStoreThatIsAheadOfTheTopicIsRefusedWithTheRemedy) {
  RetryingClients clients(TestSeed());
  Flow flow(Options());
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  const std::string positions = absl::StrCat("lethe:", totals, ":positions");
  ASSERT_OK(redis->Command({"HSET", positions, flow.input() + "/0", "1000000"}));
  const auto daemon = flow.Start(CountOrdersInto(totals, redis->port()));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  EXPECT_TRUE(daemon->AwaitLog(absl::StrCat("the totals up to offset 1000000 of ", totals, "-0")));
  EXPECT_TRUE(InRedis(*redis, totals).empty());
  ASSERT_TRUE(daemon->AwaitLog(absl::StrCat("-n 0 --scan --pattern 'lethe:", totals, ":*' | xargs")));
  ASSERT_OK(redis->Command({"DEL", positions}));
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_store_connected") == 1; }));
  EXPECT_TRUE(AwaitExact(flow, *daemon, *redis, totals));
  EXPECT_TRUE(daemon->Stop());
}

// The topic of totals may hold those of other counters, and what is none.
TEST(CounterStoreTest, RecordsOfOthersAreSkipped) {
  RetryingClients clients(TestSeed());
  Flow flow(Options());
  const auto redis = StartRedis();
  const std::string totals = UniqueName("totals");
  const auto daemon = flow.Start(CountOrdersInto(totals, redis->port()));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  std::vector<Record> foreign(3);
  foreign[0].key = absl::StrCat("other/", flow.input(), "/0/is");
  foreign[0].value = R"({"mode":"total","total":7,"offset":5})";
  foreign[1].key = "revenue/elsewhere/0/is";
  foreign[1].value = foreign[0].value;
  foreign[2].key = "is";
  foreign[2].value = "5";
  ASSERT_OK(SharedClient().Produce(totals, foreign));
  ASSERT_TRUE(daemon->AwaitLog("not a total"));
  ASSERT_TRUE(CountMore(flow, clients, *daemon));
  EXPECT_TRUE(AwaitExact(flow, *daemon, *redis, totals));
  EXPECT_TRUE(daemon->Stop());
}

}  // namespace
}  // namespace lethe::test
