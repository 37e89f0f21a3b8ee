// A list of topics in one process, on a real broker: each its own result, and its own trouble.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/daemon.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/oracle.h"
#include "tests/support/pipeline.h"
#include "tests/support/process.h"
#include "tests/support/shared_broker.h"

namespace lethe::test {
namespace {

class TopicsTest : public testing::Test {
 protected:
  TopicsTest() {
    std::ofstream(config_) << "brokers: " << SharedBroker().bootstrap() << "\ngroup: " << name_
                           << "\ninstance: test\nid: json:/id\nhorizon: 30d\nfpp: 1e-9\nmemory: 64MiB\n"
                           << "kafka:\n  session.timeout.ms: 6000\n  heartbeat.interval.ms: 500\n"
                           << "topics:\n"
                           << "  - {input: " << name_ << ".orders, output: " << name_ << ".orders-unique}\n"
                           << "  - {input: " << name_ << ".bills, output: " << name_ << ".bills-unique}\n"
                           << "  - input: ^" << name_ << "\\.clicks\\.(.+)$\n"
                           << "    output: " << name_ << ".clicks-unique.$1\n    id: key\n";
  }

  std::string Topic(const std::string& name) const { return absl::StrCat(name_, ".", name); }
  void Create(const std::string& name) {
    ASSERT_TRUE(SharedClient().CreateTopic(Topic(name), 2, {{"retention.ms", "-1"}}).ok());
  }
  // Ids first ... last, each twice, in both partitions.
  void Send(const std::string& name, int first, int last) {
    std::vector<Record> records;
    for (int i = first; i <= last; ++i) {
      for (int copy = 0; copy < 2; ++copy) records.push_back(WithId(absl::StrCat(name, i), i % 2));
    }
    ASSERT_TRUE(SharedClient().Produce(Topic(name), records).ok());
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
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(daemon->Await([&] { return Judged(*daemon, Topic("clicks.web")) == 1000; })) << daemon->Log();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  Send("orders", 400, 900);
  Send("bills", 400, 900);
  ASSERT_TRUE(daemon->process().Signal(SIGKILL).ok());
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
  ASSERT_TRUE(SharedClient().DeleteTopic(Topic("bills-unique")).ok());
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

}  // namespace
}  // namespace lethe::test
