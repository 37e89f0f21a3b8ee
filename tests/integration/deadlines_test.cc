// Questions to a cluster whose leader has died, hangs, or cannot be reached: each ends, and is answered once
// there is another leader.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "connectors/kafka/counters/totals_topic.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/snapshots/snapshot_log.h"
#include "connectors/kafka/topics/topic_reader.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/daemon.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

// Of one attempt. Each is far shorter; without a deadline they take as long as the broker is away.
constexpr absl::Duration kLongestAttempt = absl::Seconds(20);
constexpr absl::Duration kNewLeaderPatience = absl::Minutes(1);

enum class Fault { kDead, kFrozen };

class LostLeaderTest : public testing::TestWithParam<Fault> {
 protected:
  static void SetUpTestSuite() {
    std::vector<KafkaBrokerOptions> nodes(3);
    for (KafkaBrokerOptions& node : nodes) node.heap = "256m";
    auto started = KafkaBroker::StartCluster(std::move(nodes));
    ASSERT_OK(started);
    brokers_ = *std::move(started);
  }
  static void TearDownTestSuite() { brokers_.clear(); }

  static std::string Bootstrap() {
    return absl::StrJoin(brokers_, ",",
                         [](std::string* out, const auto& broker) { out->append(broker->bootstrap()); });
  }
  // A topic of one partition with so many records, and its leader.
  static std::pair<std::string, KafkaBroker*> TopicWithLeader(KafkaClient& client, size_t size) {
    static int count = 0;
    const std::string topic = absl::StrCat("lost-leader-", ++count);
    // A broker that was lost takes a while until it counts again.
    EXPECT_TRUE(
        WaitUntil([&] { return client.BrokerCount(absl::Seconds(10)).value_or(0) == 3; }, absl::Minutes(1)));
    const absl::Status created = client.CreateTopic(topic, 1, {{"cleanup.policy", "compact"}});
    EXPECT_OK(created);
    std::vector<Record> records(size);
    for (Record& record : records) record.key = record.value = "x";
    EXPECT_OK(client.Produce(topic, records));
    const int32_t leader = client.Leaders(topic).value().at(0);
    for (const auto& broker : brokers_) {
      if (broker->id() == leader) return {topic, broker.get()};
    }
    ADD_FAILURE() << "no broker leads " << topic;
    return {topic, brokers_[0].get()};
  }
  static void Lose(KafkaBroker& broker) {
    if (GetParam() == Fault::kDead) {
      EXPECT_OK(broker.Kill());
    } else {
      EXPECT_EQ(kill(broker.pid(), SIGSTOP), 0);
    }
  }
  static void BringBack(KafkaBroker& broker) {
    if (GetParam() == Fault::kDead) {
      EXPECT_OK(broker.Restart());
    } else {
      EXPECT_EQ(kill(broker.pid(), SIGCONT), 0);
    }
  }

  static std::vector<std::unique_ptr<KafkaBroker>> brokers_;
};
std::vector<std::unique_ptr<KafkaBroker>> LostLeaderTest::brokers_;

INSTANTIATE_TEST_SUITE_P(Leaders, LostLeaderTest, testing::Values(Fault::kFrozen, Fault::kDead),
                         [](const auto& each) {
                           return std::string(each.param == Fault::kDead ? "Dead" : "Frozen");
                         });

TEST_P(LostLeaderTest, Rule29NoQuestionOutlivesItsDeadline) {
  const auto client = KafkaClient::Connect(Bootstrap()).value();
  const auto led = TopicWithLeader(*client, 5);
  const std::string& topic = led.first;
  KafkaBroker* const leader = led.second;
  DaemonOptions options;
  // A client that knows no other broker asks one that hangs until a request has taken so long.
  options.process.properties = {{"socket.timeout.ms", "10000"}};
  options.process.brokers = Bootstrap();
  options.process.group = "deadlines";
  options.process.snapshots.topic = topic;
  const auto always = [] { return true; };

  // Clients that know the leader, as those of a daemon do that has run for a while.
  const auto asking = kafka::BrokerClient::Make(options, lethe::Isolation::kReadCommitted).value();
  ASSERT_OK(asking->AskBounds(topic, 0));
  kafka::TotalsTopic totals(options, topic);
  ASSERT_OK(totals.HighWatermark(0));
  ASSERT_OK(totals.Ends({0}));
  kafka::SnapshotProducer producer;
  const auto snapshots = kafka::OpenSnapshotLog(options, producer).value();
  const auto log = kafka::TopicReader::Open(
                       {.brokers = Bootstrap(), .topic = topic, .properties = options.process.properties})
                       .value();

  const std::map<std::string, std::function<absl::Status()>> questions = {
      {"bounds", [&] { return asking->AskBounds(topic, 0).status(); }},
      {"high watermark", [&] { return totals.HighWatermark(0).status(); }},
      {"snapshots",
       [&] {
         return snapshots->Scan(0, absl::UnixEpoch(), always,
                                [](absl::string_view, std::optional<absl::string_view>) { return true; });
       }},
      {"totals",
       [&] {
         const absl::Time give_up = SteadyNow() + kLongestAttempt / 2;
         return kafka::ReadTotals(
             options, topic, {0}, [](const InputRecord&) {}, [&] { return SteadyNow() < give_up; });
       }},
      {"settled bounds", [&] { return log->FindSettledBounds(always); }},
      {"begin of the log", [&] { return log->FindLogBegins(always); }},
  };
  Lose(*leader);
  const absl::Cleanup bring_back = [leader] { BringBack(*leader); };
  std::vector<std::thread> threads;
  for (const auto& [name, ask] : questions) {
    // These two share a client.
    if (name == "begin of the log") continue;
    threads.emplace_back([&name = name, &ask = ask] {
      const absl::Time give_up = SteadyNow() + kNewLeaderPatience;
      absl::Status answer;
      do {
        const absl::Time begin = SteadyNow();
        answer = ask();
        EXPECT_LT(SteadyNow() - begin, kLongestAttempt) << name << ": " << answer;
      } while (!answer.ok() && SteadyNow() < give_up);
      EXPECT_OK(answer) << name;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(questions.at("begin of the log")());
}

// An instance that gets partitions reads their totals first.
TEST_P(LostLeaderTest, Rule29AnInstanceGoesOnWithTotalsThatHaveAnotherLeader) {
  const auto client = KafkaClient::Connect(Bootstrap()).value();
  const auto led = TopicWithLeader(*client, 0);
  const std::string& totals = led.first;
  KafkaBroker* const leader = led.second;
  const std::string input = absl::StrCat(totals, "-input");
  ASSERT_OK(client->CreateTopic(input, 1));
  ASSERT_OK(client->CreateTopic(absl::StrCat(totals, "-output"), 1));
  Record event;
  event.key = "k";
  event.value = R"({"id":"a"})";
  ASSERT_OK(client->Produce(input, std::vector<Record>{event}));
  const auto start = [&](const std::string& instance) {
    const int port = FreePort();
    ProcessOptions options;
    options.args = {LETHE_PROGRAM, "run", "--brokers", Bootstrap(), "--input", input, "--output",
                    absl::StrCat(totals, "-output"), "--group", absl::StrCat(totals, "-group"), "--id",
                    "json:/id", "--memory", "64MiB", "--instance", instance, "--http",
                    absl::StrCat("127.0.0.1:", port),
                    // The leader may coordinate the group, too, or be asked where another one is: of a frozen
                    // broker that takes as long as a request may.
                    "--kafka", "session.timeout.ms=6000", "--kafka", "socket.timeout.ms=10000", "--counter",
                    absl::StrCat("name=c,mode=total,key=key,output=", totals)};
    auto process = Process::Start(options);
    EXPECT_OK(process);
    return std::make_unique<Daemon>(*std::move(process), port);
  };
  const auto first = start("first");
  ASSERT_TRUE(first->AwaitReady());
  ASSERT_TRUE(first->Await([&] { return first->Metric("lethe_records_total") == 1; }));
  const auto second = start("second");
  ASSERT_TRUE(second->AwaitReady());
  Lose(*leader);
  const absl::Cleanup bring_back = [leader] { BringBack(*leader); };
  // The other gets its partition, or keeps it.
  // Where the coordinator is lost it ends without leaving the group, and says so with its code.
  ASSERT_OK(first->process().Terminate(absl::Seconds(20))) << first->Log();
  EXPECT_TRUE(second->Await([&] {
    return absl::StrContains(second->Get("/metrics").body, absl::StrCat("topic=\"", input, "\""));
  })) << second->Log();
  EXPECT_TRUE(second->AwaitReady());
  EXPECT_TRUE(second->Stop());
}

// A broker that tells its clients an address where nobody listens, or where nobody answers, or that no name
// server knows.
class UnreachableLeaderTest : public testing::Test {
 protected:
  void Start(int advertised, const std::string& host = "127.0.0.1") {
    KafkaBrokerOptions options;
    options.proxied = {{"UNREACHABLE", advertised}};
    address_ = absl::StrCat(host, ":", advertised);
    options.adapt = [&](std::map<std::string, std::string>& properties) {
      std::string& listeners = properties["advertised.listeners"];
      listeners = absl::StrReplaceAll(
          listeners, {{absl::StrCat("UNREACHABLE://127.0.0.1:", advertised), "UNREACHABLE://" + address_}});
    };
    auto started = KafkaBroker::Start(std::move(options));
    ASSERT_OK(started);
    broker_ = *std::move(started);
    const auto client = KafkaClient::Connect(broker_->bootstrap()).value();
    for (const char* topic : {"orders", "unique"}) ASSERT_OK(client->CreateTopic(topic, 12));
    bootstrap_ = absl::StrCat("127.0.0.1:", broker_->port("UNREACHABLE"));
  }
  std::vector<std::vector<std::string>> Commands() const {
    const std::string serve = absl::StrCat(LETHE_PROGRAM, " reconcile --serve --brokers ",
                                           broker_->bootstrap(), " --topic orders --id key");
    return {{LETHE_PROGRAM, "survey", "--brokers", bootstrap_, "--input", "orders"},
            {LETHE_PROGRAM, "counters", "--brokers", bootstrap_, "--topic", "orders"},
            {LETHE_PROGRAM, "reconcile", "--brokers", bootstrap_, "--topic", "orders", "--id", "key",
             "--last", "1h", "--peer", serve}};
  }
  // Of those that need a configuration.
  std::vector<std::string> Configured(const std::string& command) const {
    const std::string file =
        absl::StrCat(testing::TempDir(), "/unreachable-", broker_->port("BROKER"), ".yaml");
    std::ofstream(file) << "brokers: " << bootstrap_ << "\ninput: orders\noutput: unique\nid: key\n";
    return {LETHE_PROGRAM, command, "--config", file};
  }

  // Each command ends, fails, and names the address.
  void ExpectNamed() const {
    std::vector<std::vector<std::string>> commands = Commands();
    commands.push_back(Configured("check"));
    commands.push_back(Configured("verify"));
    std::vector<std::unique_ptr<Process>> started;
    for (const std::vector<std::string>& command : commands) {
      ProcessOptions options;
      options.args = command;
      started.push_back(Process::Start(options).value());
    }
    const int port = FreePort();
    ProcessOptions options;
    options.args = Configured("run");
    options.args.insert(options.args.end(), {"--http", absl::StrCat("127.0.0.1:", port)});
    Daemon daemon(Process::Start(options).value(), port);
    EXPECT_TRUE(daemon.Await([&] { return absl::StrContains(daemon.Get("/readyz").body, address_); }))
        << daemon.Get("/readyz").body << daemon.Log();
    EXPECT_EQ(daemon.Get("/readyz").status, 503);
    for (size_t i = 0; i < started.size(); ++i) {
      EXPECT_NE(started[i]->Wait(absl::Minutes(1)).value_or(0), 0) << commands[i][1];
      const std::string said = started[i]->Stdout() + started[i]->Stderr();
      EXPECT_THAT(said, HasSubstr(address_)) << commands[i][1];
    }
  }

  std::unique_ptr<KafkaBroker> broker_;
  std::string address_;
  std::string bootstrap_;
};

TEST_F(UnreachableLeaderTest, EachCommandEndsAndNamesTheAddress) {
  Start(FreePort());
  ExpectNamed();
}

TEST_F(UnreachableLeaderTest, EachCommandEndsAndNamesAnAddressThatDoesNotResolve) {
  Start(9092, "kafka-0.no-such-host.invalid");
  ExpectNamed();
}

TEST_F(UnreachableLeaderTest, EachCommandCanBeStopped) {
  // Takes connections, and never answers.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const absl::Cleanup close_it = [silent] { close(silent); };
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 64), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  Start(ntohs(address.sin_port));
  for (const std::vector<std::string>& command : Commands()) {
    ProcessOptions options;
    options.args = command;
    const auto process = Process::Start(options).value();
    // It knows the address, and waits there for an answer.
    pollfd wait = {silent, POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 30'000), 1) << command[1] << ": " << process->Stderr();
    const int connection = accept(silent, nullptr, nullptr);
    const absl::Cleanup end_it = [connection] { close(connection); };
    const auto code = process->Terminate(absl::Seconds(5));
    ASSERT_OK(code);
    EXPECT_NE(*code, 0) << command[1];
    EXPECT_NE(*code, 128 + SIGKILL) << command[1] << " took longer than that: " << process->Stderr();
  }
}

}  // namespace
}  // namespace lethe::test
