// A list of topics in one process, on a real broker: each its own result, and its own trouble.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/daemon.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tcp_proxy.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class TopicsTest : public testing::Test {
 protected:
  TopicsTest() {
    Config() << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n"
             << "  - {input: " << name_ << ".bills, output: " << name_ << ".bills-unique}\n"
             << "  - input: ^" << name_ << "\\.clicks\\.(.+)$\n"
             << "    output: " << name_ << ".clicks-unique.$1\n    id: key\n";
  }

  // Up to the list of topics, to which it can be appended.
  std::ofstream Config() const {
    std::ofstream file(config_);
    file << "brokers: " << SharedBroker().bootstrap() << "\ngroup: " << name_
         << "\ninstance: test\nid: json:/id\nhorizon: 30d\nfpp: 1e-9\nmemory: 64MiB\n"
         << "kafka:\n  session.timeout.ms: 6000\n  heartbeat.interval.ms: 500\ntopics:\n";
    return file;
  }
  std::string Topic(const std::string& name) const { return absl::StrCat(name_, ".", name); }
  void Create(const std::string& name) {
    ASSERT_OK(SharedClient().CreateTopic(Topic(name), 2, {{"retention.ms", "-1"}}));
  }
  // Ids first ... last, each twice, in both partitions.
  void Send(const std::string& name, int first, int last) {
    std::vector<Record> records;
    for (int i = first; i <= last; ++i) {
      for (int copy = 0; copy < 2; ++copy) records.push_back(WithId(absl::StrCat(name, i), i % 2));
    }
    ASSERT_OK(SharedClient().Produce(Topic(name), records));
  }
  std::unique_ptr<Daemon> Start() const {
    const int port = FreePort();
    ProcessOptions process;
    process.args = {LETHE_PROGRAM, "run", "--config", config_, absl::StrCat("--http=127.0.0.1:", port)};
    return std::make_unique<Daemon>(Process::Start(process).value(), port);
  }
  static double Judged(const Daemon& daemon, const std::string& topic) {
    return daemon.Metric("lethe_records_total", {absl::StrCat("topic=\"", topic, "\"")});
  }
  testing::AssertionResult Right(const std::string& input, const std::string& output) {
    return Deduplicated(SharedClient().ReadSettled(Topic(input)).value(),
                        SharedClient().ReadSettled(Topic(output)).value(), JsonId);
  }

  const std::string name_ = UniqueName("list");
  const std::string config_ = absl::StrCat(testing::TempDir(), "/", name_, ".yaml");
};

TEST_F(TopicsTest, EachHasItsOwnResultThroughAKillAndANewTopic) {
  for (const char* topic : {"orders", "orders-unique", "bills", "bills-unique"}) Create(topic);
  Send("orders", 1, 500);
  Send("bills", 1, 500);
  auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 1000; })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 1000; })) << daemon->Log();
  // One that its pattern finds while it runs.
  Create("clicks-unique.web");
  Create("clicks.web");
  Send("clicks.web", 1, 500);
  const absl::Time begin = SteadyNow();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("clicks.web")) == 1000; })) << daemon->Log();
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(10));
  Send("orders", 400, 900);
  Send("bills", 400, 900);
  ASSERT_OK(daemon->process().Signal(SIGKILL));
  daemon = Start();
  Send("clicks.web", 400, 900);
  for (const char* topic : {"orders", "bills", "clicks.web"}) {
    ASSERT_TRUE(daemon->Await([&] {
      const std::vector<int64_t> ends =
          SharedClient().EndOffsets(Topic(topic), Isolation::kReadCommitted).value();
      const std::vector<CommittedOffset> committed = SharedClient().Committed(name_, Topic(topic)).value();
      return committed.size() == 2 && committed[0].offset == ends[0] && committed[1].offset == ends[1];
    })) << topic
        << daemon->Log();
  }
  EXPECT_EQ(daemon->Get("/status?topic=" + Topic("orders")).status, 200);
  EXPECT_EQ(daemon->Get("/status?topic=nope").status, 404);
  EXPECT_EQ(daemon->Get("/counters?topic=nope").status, 404);
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(Right("orders", "orders-unique"));
  EXPECT_TRUE(Right("bills", "bills-unique"));
  EXPECT_TRUE(Right("clicks.web", "clicks-unique.web"));
}

TEST_F(TopicsTest, AMissingOutputHoldsItsOwnTopicAlone) {
  for (const char* topic : {"orders", "orders-unique", "bills"}) Create(topic);
  Send("orders", 1, 100);
  Send("bills", 1, 100);
  const auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 200; })) << daemon->Log();
  HttpAnswer ready;
  ASSERT_TRUE(daemon->Await([&] {
    ready = daemon->Get("/readyz");
    return absl::StrContains(ready.body, Topic("bills-unique"));
  })) << ready.body
      << daemon->Log();
  EXPECT_EQ(ready.status, 200) << ready.body;
  Create("bills-unique");
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 200; })) << daemon->Log();
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(Right("orders", "orders-unique"));
  EXPECT_TRUE(Right("bills", "bills-unique"));
}

TEST_F(TopicsTest, AnOutputThatIsDeletedHoldsItsOwnTopicAlone) {
  for (const char* topic : {"orders", "orders-unique", "bills", "bills-unique"}) Create(topic);
  Send("orders", 1, 100);
  Send("bills", 1, 100);
  const auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 200; })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 200; })) << daemon->Log();
  ASSERT_OK(SharedClient().DeleteTopic(Topic("bills-unique")));
  Send("bills", 101, 200);
  // A failing topic takes some seconds of the others, once.
  ASSERT_TRUE(daemon->Await([&] {
    return absl::StrContains(daemon->Get("/readyz").body, absl::StrCat(Topic("bills"), "-"));
  })) << daemon->Log();
  Send("orders", 101, 200);
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 400; })) << daemon->Log();
  EXPECT_EQ(Judged(*daemon, Topic("bills")), 200);
  EXPECT_EQ(daemon->Get("/readyz").status, 200);
  Create("bills-unique");
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 400; })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(Right("orders", "orders-unique"));
}

TEST_F(TopicsTest, AnInputThatIsDeletedAndCreatedAgainLeavesTheOthersReading) {
  for (const char* topic : {"orders", "orders-unique", "bills", "bills-unique"}) Create(topic);
  Send("orders", 1, 100);
  Send("bills", 1, 100);
  const auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 200; })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 200; })) << daemon->Log();
  ASSERT_OK(SharedClient().DeleteTopic(Topic("bills")));
  Send("orders", 101, 200);
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 400; })) << daemon->Log();
  HttpAnswer ready;
  ASSERT_TRUE(daemon->Await([&] {
    ready = daemon->Get("/readyz");
    return ready.status == 200 && absl::StrContains(ready.body, absl::StrCat(Topic("bills"), " was deleted"));
  })) << ready.body
      << daemon->Log();
  Create("bills");
  Send("bills", 201, 300);
  ASSERT_TRUE(daemon->Await([&] {
    return SharedClient().ReadSettled(Topic("bills-unique")).value().size() == 200;
  })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  EXPECT_THAT(daemon->Log(), Not(HasSubstr("do not tell where logs end")));
  EXPECT_TRUE(Right("orders", "orders-unique"));
}

// The group gives a member that comes back what it had, and does not look at its new subscription (KIP-345).
TEST_F(TopicsTest, AnEntryThatARestartBringsIsNamedUntilItIsRead) {
  for (const char* topic : {"orders", "orders-unique", "bills", "bills-unique"}) Create(topic);
  Config() << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n";
  Send("orders", 1, 100);
  Send("bills", 1, 100);
  auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 200; })) << daemon->Log();
  ASSERT_OK(daemon->process().Signal(SIGKILL));
  Config() << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n"
           << "  - {input: " << name_ << ".bills, output: " << name_ << ".bills-unique}\n";
  daemon = Start();
  HttpAnswer ready;
  EXPECT_TRUE(daemon->Await([&] {
    ready = daemon->Get("/readyz");
    return ready.status == 200 && absl::StrContains(ready.body, Topic("bills") + " has partitions without");
  })) << ready.body;
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("bills")) == 200; })) << daemon->Log();
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(Right("bills", "bills-unique"));
}

// Two inputs that carry the same events, of which each also repeats its own, and a topic whose copies are in
// other partitions, beside one whose copies are not.
class MergedTopicsTest : public TopicsTest {
 protected:
  MergedTopicsTest() {
    Config() << "  - input: [" << name_ << ".west, " << name_ << ".east]\n"
             << "    output: " << name_
             << ".all\n    input_header: from\n    snapshots: {to: \"topic:" << name_
             << ".snapshots\", every: 1s}\n"
             << "    counters: [{name: ways, key: key, mode: total, output: " << name_ << ".totals}]\n"
             << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n"
             << "  - {input: ^" << name_ << "\\.clicks\\.(.+)$, output: " << name_
             << ".clicks-unique.$1, scope: topic}\n";
  }
  // In partitions at random, each twice.
  void Scatter(const std::string& name, int partitions, int first, int last) {
    std::vector<Record> records;
    for (int copy = 0; copy < 2; ++copy) {
      for (int i = first; i <= last; ++i) {
        records.push_back(WithId(absl::StrCat("e", i), (i + copy) % partitions));
        records.back().key = absl::StrCat("key-", i % 7);
        records.back().headers = {{"own", absl::StrCat(name, i)}};
      }
    }
    ASSERT_OK(SharedClient().Produce(Topic(name), records));
  }
  bool IsRoutedAndJudged(const std::string& repartition, const std::vector<std::string>& inputs) {
    std::vector<std::pair<std::string, std::string>> read = {{name_, repartition}};
    for (const std::string& input : inputs) read.emplace_back(name_ + "-repartition", Topic(input));
    for (auto next = read.rbegin(); next != read.rend(); ++next) {  // the inputs first
      const auto ends = SharedClient().EndOffsets(next->second, Isolation::kReadCommitted);
      const auto committed = SharedClient().Committed(next->first, next->second);
      if (!ends.ok() || !committed.ok()) return false;
      for (size_t i = 0; i < ends->size(); ++i) {
        if ((*ends)[i] > 0 && (*committed)[i].offset != (*ends)[i]) return false;
      }
    }
    return true;
  }
};

TEST_F(MergedTopicsTest, EventsThatComeByTwoWaysPassOnceThroughAKill) {
  ASSERT_OK(SharedClient().CreateTopic(Topic("west"), 3, {{"retention.ms", "-1"}}));
  ASSERT_OK(SharedClient().CreateTopic(Topic("all"), 3, {{"retention.ms", "-1"}}));
  for (const char* topic : {"east", "orders", "orders-unique", "clicks.web", "clicks-unique.web"})
    Create(topic);
  Scatter("west", 3, 1, 500);
  Scatter("east", 2, 250, 750);
  Scatter("clicks.web", 2, 1, 300);
  Send("orders", 1, 500);
  ProcessOptions check;
  check.args = {LETHE_PROGRAM, "check", "--config", config_, "--http=off"};
  const Finished checked = RunToEnd(check, absl::Minutes(1)).value();
  EXPECT_EQ(checked.exit_code, 0) << checked.out;
  for (const char* topic : {"west", "east", "orders", "clicks.web"}) {
    EXPECT_THAT(checked.out, HasSubstr(Topic(topic) + " passes"));
  }
  const std::string merged = absl::StrCat(name_, "-", Topic("all"), "-repartition");
  const std::string clicks = absl::StrCat(name_, "-", Topic("clicks.web"), "-repartition");
  auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 1000; })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, merged) > 0; })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] {
    Scatter("west", 3, 1, 3);
    return daemon->Metric("lethe_snapshots_total") >= 6;
  })) << daemon->Log();
  ASSERT_OK(daemon->process().Signal(SIGKILL));
  Scatter("east", 2, 700, 1000);
  Scatter("west", 3, 600, 900);
  daemon = Start();
  // A new topic of the pattern, while it runs.
  Create("clicks-unique.app");
  Create("clicks.app");
  Scatter("clicks.app", 2, 1, 100);
  const std::string app = absl::StrCat(name_, "-", Topic("clicks.app"), "-repartition");
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(merged, {"west", "east"}); })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(clicks, {"clicks.web"}); })) << daemon->Log();
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(app, {"clicks.app"}); })) << daemon->Log();
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_THAT(daemon->Log(), HasSubstr("is loaded, with"));
  // Seven keys of 1,000 events.
  std::string counters;
  EXPECT_TRUE(daemon->Await([&] {
    counters = daemon->Get(absl::StrCat("/counters?top=1&topic=", Topic("east"))).body;
    return absl::StrContains(counters, "\"top\":[{\"key\":\"key-");
  })) << counters;
  EXPECT_THAT(counters, HasSubstr("\"total\":\"143\""));
  EXPECT_THAT(daemon->Get(absl::StrCat("/counters?topic=", Topic("orders"))).body, Not(HasSubstr("ways")));
  EXPECT_TRUE(daemon->Stop());

  std::multimap<std::string, Record> sent;
  for (const char* input : {"west", "east"}) {
    std::vector<Record> records = SharedClient().ReadSettled(Topic(input)).value();
    for (Record& record : records) {
      record.headers.emplace_back("from", Topic(input));
      sent.emplace(JsonId(record), record);
    }
  }
  std::set<std::string> seen;
  int from_east = 0;
  const std::vector<Record> passed = SharedClient().ReadSettled(Topic("all")).value();
  for (const Record& record : passed) {
    const std::string id = JsonId(record);
    EXPECT_TRUE(seen.insert(id).second) << id << " passed twice";
    const auto [begin, end] = sent.equal_range(id);
    EXPECT_TRUE(std::any_of(begin, end,
                            [&](const auto& copy) {
                              return copy.second.key == record.key && copy.second.value == record.value &&
                                     copy.second.headers == record.headers &&
                                     copy.second.timestamp_ms == record.timestamp_ms &&
                                     copy.second.partition == record.partition;
                            }))
        << id << " is like none of its copies";
    from_east += record.headers.back().second == Topic("east") ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_GE(from_east, 100) << "ids from 901 on come from there only";
  EXPECT_EQ(SharedClient().ReadSettled(Topic("clicks-unique.web")).value().size(), 300u);
  EXPECT_EQ(SharedClient().ReadSettled(Topic("clicks-unique.app")).value().size(), 100u);
  EXPECT_TRUE(Right("orders", "orders-unique"));
}

// Redundant producers: one way may be missing, now and at every start.
TEST_F(MergedTopicsTest, AMissingInputHoldsNoOther) {
  ASSERT_OK(SharedClient().CreateTopic(Topic("all"), 3, {{"retention.ms", "-1"}}));
  for (const char* topic : {"west", "orders", "orders-unique"}) Create(topic);
  Scatter("west", 2, 1, 200);
  const std::string merged = absl::StrCat(name_, "-", Topic("all"), "-repartition");
  auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(merged, {"west"}); })) << daemon->Log();
  std::string ready;
  EXPECT_TRUE(daemon->Await([&] {
    const HttpAnswer answer = daemon->Get("/readyz");
    ready = answer.body;
    return answer.status == 200 && absl::StrContains(ready, Topic("east") + " is not read: ") &&
           absl::StrContains(ready, "does not exist");
  })) << ready;
  Create("east");
  Scatter("east", 2, 100, 300);
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(merged, {"west", "east"}); })) << daemon->Log();
  EXPECT_TRUE(daemon->Await([&] { return !absl::StrContains(daemon->Get("/readyz").body, "is not read"); }));
  EXPECT_TRUE(daemon->Stop());
  // Now the first one is away.
  ASSERT_OK(SharedClient().DeleteTopic(Topic("west")));
  Scatter("east", 2, 200, 400);
  daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(merged, {"east"}); })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  std::set<std::string> ids;
  const std::vector<Record> passed = SharedClient().ReadSettled(Topic("all")).value();
  for (const Record& record : passed) {
    EXPECT_TRUE(ids.insert(JsonId(record)).second) << JsonId(record) << " passed twice";
  }
  EXPECT_EQ(ids.size(), 400u);
}

// The routers of one topic do not take the others with them, though they are a group of their own.
TEST_F(MergedTopicsTest, AChangedIdOfARoutedTopicHoldsItAlone) {
  for (const char* topic :
       {"west", "east", "all", "orders", "orders-unique", "clicks.web", "clicks-unique.web"})
    Create(topic);
  const std::string clicks = absl::StrCat(name_, "-", Topic("clicks.web"), "-repartition");
  Scatter("clicks.web", 2, 1, 100);
  auto daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return IsRoutedAndJudged(clicks, {"clicks.web"}); })) << daemon->Log();
  ASSERT_TRUE(daemon->Stop());
  Config() << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n"
           << "  - {input: " << name_ << ".clicks.web, output: " << name_
           << ".clicks-unique.web, scope: topic, id: key}\n";
  Send("orders", 1, 100);
  daemon = Start();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("orders")) == 200; })) << daemon->Log();
  HttpAnswer ready;
  EXPECT_TRUE(daemon->Await([&] {
    ready = daemon->Get("/readyz");
    return ready.status == 200 && absl::StrContains(ready.body, " --delete --topic " + clicks + ", then") &&
           absl::StrContains(ready.body, "--group " + name_ + "-repartition --topic " + Topic("clicks.web"));
  })) << ready.body;
  EXPECT_TRUE(daemon->Stop());
}

// The broker that has one topic's output is behind a wire of 5,000 bytes a second. Its topic gets so little
// of each transaction that the others go on: at the least size of a whole transaction each would take 13 s.
TEST(SlowTopicTest, DelaysTheOthersByLittle) {
  constexpr int64_t kBytesPerSecond = 5'000;
  constexpr char kWire[] = "WIRE";
  std::vector<KafkaBrokerOptions> nodes(2);
  std::vector<std::unique_ptr<TcpProxy>> proxies;
  std::vector<int> ports;
  for (KafkaBrokerOptions& node : nodes) {
    proxies.push_back(TcpProxy::Start().value());
    ports.push_back(proxies.back()->Listen().value());
    node.heap = "256m";
    node.proxied.emplace_back(kWire, ports.back());
  }
  auto brokers = KafkaBroker::StartCluster(std::move(nodes));
  ASSERT_OK(brokers);
  for (size_t i = 0; i < 2; ++i) proxies[i]->Forward(ports[i], (*brokers)[i]->port(kWire));
  const auto client = KafkaClient::Connect((*brokers)[0]->bootstrap()).value();
  // The controller chooses; the name of the first topic that it put on that broker.
  const auto topic_on = [&](const std::string& name, int32_t broker) {
    for (int i = 0; i < 30; ++i) {
      const std::string topic = absl::StrCat(name, "-", i);
      EXPECT_OK(client->CreateTopic(topic, 1));
      std::vector<int32_t> leaders;
      EXPECT_TRUE(WaitUntil(
          [&] {
            leaders = client->Leaders(topic).value_or(std::vector<int32_t>());
            return leaders.size() == 1 && leaders[0] > 0;
          },
          absl::Seconds(30)));
      if (leaders[0] == broker) return topic;
    }
    ADD_FAILURE() << "no topic is on broker " << broker;
    return std::string();
  };
  const int32_t fast = (*brokers)[0]->id();
  const std::string bills = topic_on("bills", fast);
  const std::string orders = topic_on("orders", fast);
  const std::string slow = topic_on("bills-unique", (*brokers)[1]->id());
  std::mt19937_64 random(TestSeed());
  std::vector<Record> records;
  for (int i = 0; i < 2000; ++i) {
    records.push_back(WithId(absl::StrCat("bill-", i)));
    std::string noise;  // which no codec makes smaller
    for (int n = 0; n < 20; ++n) absl::StrAppend(&noise, absl::Hex(random(), absl::kZeroPad16));
    records.back().headers = {{"noise", noise}};
  }
  ASSERT_OK(client->Produce(bills, records));

  const std::string config = absl::StrCat(testing::TempDir(), "/slow-topic.yaml");
  std::ofstream(config) << "brokers: 127.0.0.1:" << ports[0]
                        << "\ngroup: slow\ninstance: test\nid: json:/id\n"
                        << "memory: 64MiB\ntopics:\n"
                        << "  - {input: " << bills << ", output: " << slow << "}\n"
                        << "  - {input: " << orders << ", output: " << topic_on("orders-unique", fast)
                        << "}\n";
  proxies[1]->SetBytesPerSecond(kBytesPerSecond);
  const int port = FreePort();
  ProcessOptions process;
  process.args = {LETHE_PROGRAM, "run", "--config", config, absl::StrCat("--http=127.0.0.1:", port)};
  Daemon daemon(Process::Start(process).value(), port);
  const auto judged = [&](const std::string& topic) {
    return daemon.Metric("lethe_records_total", {absl::StrCat("topic=\"", topic, "\"")});
  };
  ASSERT_TRUE(daemon.Await([&] { return judged(bills) > 0; })) << daemon.Log();  // it knows what that takes
  std::vector<absl::Duration> took;
  for (int round = 1; round <= 5; ++round) {
    ASSERT_OK(client->Produce(orders, {WithId(absl::StrCat("order-", round))}));
    const absl::Time begin = SteadyNow();
    ASSERT_TRUE(daemon.Await([&] { return judged(orders) == round; })) << daemon.Log();
    took.push_back(SteadyNow() - begin);
  }
  std::sort(took.begin(), took.end());
  EXPECT_LT(took[took.size() / 2], absl::Seconds(6)) << took.back();
  EXPECT_LT(judged(bills), 2000) << "it was not slow";
  proxies[1]->SetBytesPerSecond(0);
  ASSERT_TRUE(daemon.Await([&] { return judged(bills) == 2000; })) << daemon.Log();
  EXPECT_TRUE(daemon.Stop());
  EXPECT_TRUE(Deduplicated(client->ReadSettled(bills).value(), client->ReadSettled(slow).value(), JsonId));
}

}  // namespace
}  // namespace lethe::test
