// How instances come back into their group: after a crash, after a stop, and with another assignment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

// No test waits so long: what is there sooner did not need the session to time out.
const Args kLongSession = {"--kafka=session.timeout.ms=60000"};
constexpr absl::Duration kLong = absl::Seconds(60);

// How many partitions it has.
size_t Owned(const Daemon& daemon) {
  const std::vector<std::string> series =
      absl::StrSplit(daemon.Get("/metrics").body, "\nlethe_partition_failed{");
  return series.size() - 1;
}

void Kill(Daemon& daemon) {
  ASSERT_OK(daemon.process().Signal(SIGKILL));
  ASSERT_OK(daemon.process().Wait(absl::Seconds(20)));
}

TEST(MembershipTest, AnInstanceThatCrashedTakesItsPlaceAgainAtOnce) {
  Flow flow(Options(2));
  auto daemon = flow.Start(kLongSession);
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 100; }));
  const absl::Time killed = SteadyNow();
  Kill(*daemon);
  daemon = flow.Start(kLongSession);
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_LT(SteadyNow() - killed, kLong);
  flow.SendIds("a", 51, 150);
  EXPECT_TRUE(daemon->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(daemon->Stop());
}

// It gets partitions, whose records lethe does not see.
TEST(MembershipTest, AMemberThatIsNotLethesIsNamed) {
  Flow flow(Options(2));
  const auto daemon = flow.Start();
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_EQ(daemon->Metric("lethe_foreign_members"), 0);
  char reason[256];
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  for (const auto& [name, value] : {std::pair<std::string, std::string>("group.id", flow.group()),
                                    {"bootstrap.servers", SharedBroker().bootstrap()},
                                    {"enable.auto.commit", "false"}}) {
    ASSERT_EQ(rd_kafka_conf_set(conf, name.c_str(), value.c_str(), reason, sizeof reason), RD_KAFKA_CONF_OK);
  }
  Handle foreign(rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason));
  ASSERT_NE(foreign, nullptr) << reason;
  rd_kafka_topic_partition_list_t* const topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, flow.input().c_str(), RD_KAFKA_PARTITION_UA);
  EXPECT_EQ(rd_kafka_subscribe(foreign.get(), topics), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_topic_partition_list_destroy(topics);
  EXPECT_TRUE(daemon->Await([&] {
    if (rd_kafka_message_t* const message = rd_kafka_consumer_poll(foreign.get(), 10)) {
      rd_kafka_message_destroy(message);
    }
    return daemon->Metric("lethe_foreign_members") == 1;
  }));
  const HttpAnswer ready = daemon->Get("/readyz");
  EXPECT_EQ(ready.status, 200) << ready.body;
  EXPECT_THAT(ready.body, HasSubstr("rdkafka on host"));
  rd_kafka_consumer_close(foreign.get());
  foreign.reset();
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_foreign_members") == 0; }));
  EXPECT_TRUE(daemon->Stop());
}

// The group gives a static member that comes back what it had, and assigns nothing.
TEST(MembershipTest, PartitionsAddedWhileAMemberIsAwayAreRead) {
  Flow flow(Options(1));
  auto daemon = flow.Start(kLongSession);
  flow.SendIds("a", 1, 10);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 10; })) << daemon->Log();
  Kill(*daemon);
  ASSERT_OK(SharedClient().AddPartitions(flow.output(), 2));
  ASSERT_OK(SharedClient().AddPartitions(flow.input(), 2));
  daemon = flow.Start(kLongSession);
  flow.SendIds("b", 1, 10, 1);
  EXPECT_TRUE(daemon->Await([&] { return flow.Committed()[1].offset == 10; })) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
}

// Unlike a crash: others need not wait for the session to time out, nor an operator who resets offsets.
TEST(MembershipTest, AnInstanceThatIsStoppedLeavesTheGroupAtOnce) {
  for (const std::string assignment : {"eager", "cooperative"}) {
    Flow flow(Options(4));
    const Args args = kLongSession + Args{"--assignment=" + assignment};
    const auto one = flow.Start(args + Args{"--instance=one"});
    ASSERT_TRUE(one->AwaitReady());
    const auto two = flow.Start(args + Args{"--instance=two"});
    ASSERT_TRUE(two->Await([&] { return Owned(*one) == 2 && Owned(*two) == 2; })) << two->Log();
    const absl::Time stopped = SteadyNow();
    ASSERT_TRUE(one->Stop());
    EXPECT_TRUE(two->Await([&] { return Owned(*two) == 4; })) << two->Log();
    EXPECT_TRUE(two->Stop());
    flow.ResetGroup({{0, ""}, {0, ""}, {0, ""}, {0, ""}});  // which takes a group that all have left
    EXPECT_LT(SteadyNow() - stopped, kLong);
  }
}

TEST(MembershipTest, TheWaitForACrashedMemberAndItsLengthAreSaid) {
  Flow flow(Options(1));
  const Args args = {"--static-membership=false", "--kafka=session.timeout.ms=8000"};
  auto daemon = flow.Start(args);
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return flow.Committed()[0].offset == 100; }));
  Kill(*daemon);
  daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] {
    const HttpAnswer ready = daemon->Get("/readyz");
    return ready.status == 503 && absl::StrContains(ready.body, "8s (session.timeout.ms)");
  })) << daemon->Get("/readyz").body;
  ASSERT_TRUE(daemon->AwaitReady());
  EXPECT_THAT(daemon->Log(), HasSubstr("8s (session.timeout.ms)"));
  EXPECT_TRUE(daemon->Stop());
}

// The way is in two steps: all stop, and all start with the other assignment.
TEST(MembershipTest, AnotherAssignmentThanThatOfTheGroupEndsWithTheReason) {
  Flow flow(Options(2));
  const auto one = flow.Start({"--instance=one"});
  ASSERT_TRUE(one->AwaitReady());
  const Args other = {"--instance=two", "--assignment=cooperative"};
  const auto two = flow.Start(other);
  ASSERT_TRUE(two->Await([&] { return absl::StrContains(two->Get("/readyz").body, "assignment"); }));
  EXPECT_EQ(two->process().Wait(absl::Seconds(30)).value_or(-1), 1) << two->Log();
  EXPECT_THAT(two->Log(), HasSubstr("First stop every instance"));
  // Nothing has happened to the other meanwhile.
  flow.SendIds("a", 1, 100);
  EXPECT_TRUE(one->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(one->Stop());
  const auto after = flow.Start(other);
  EXPECT_TRUE(after->AwaitReady());
  EXPECT_EQ(Owned(*after), 2u);
  EXPECT_TRUE(after->Stop());
}

// It counts until its session times out, and then it does not.
TEST(MembershipTest, ADeadMemberWithAnotherAssignmentIsWaitedFor) {
  Flow flow(Options(2));
  const auto one = flow.Start({"--instance=one", "--kafka=session.timeout.ms=4000"});
  ASSERT_TRUE(one->AwaitReady());
  Kill(*one);
  const auto two =
      flow.Start({"--instance=two", "--assignment=cooperative", "--kafka=session.timeout.ms=4000"});
  EXPECT_TRUE(two->AwaitReady());
  EXPECT_EQ(two->Get("/readyz").status, 200);
  EXPECT_TRUE(two->Stop());
}

// On two hosts, say: another way to name the broker keeps them from seeing each other on this one.
TEST(MembershipTest, OfTwoProcessesWithOneInstanceTheFirstStays) {
  for (const std::string membership : {"crash", "false"}) {
    Flow flow(Options(2));
    RetryingClients clients(TestSeed());
    const Args args = {"--instance=one", "--static-membership=" + membership,
                       "--kafka=session.timeout.ms=6000", "--kafka=heartbeat.interval.ms=500"};
    const auto first = flow.Start(args);
    ASSERT_TRUE(first->AwaitReady());
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return flow.Committed()[0].offset > 0; }));
    for (int starts = membership == "crash" ? 2 : 1; starts > 0; --starts) {  // again by its supervisor
      const std::string brokers =
          absl::StrReplaceAll(SharedBroker().bootstrap(), {{"127.0.0.1", "localhost"}});
      ASSERT_NE(brokers, SharedBroker().bootstrap());
      const auto second = flow.Start(args + Args{"--brokers=" + brokers});
      const auto has_ended = [&] { return second->process().Wait(absl::Milliseconds(200)).ok(); };
      ASSERT_TRUE(SendUntil(flow, clients, has_ended)) << second->Log();
      EXPECT_EQ(second->process().Wait(absl::Seconds(1)).value_or(-1), 1) << second->Log();
      EXPECT_THAT(second->Log(), HasSubstr("on host /127.0.0.1"));
    }
    // A producer may be fenced before its rival is a member, and then there is nobody to name.
    if (membership == "crash") {
      EXPECT_THAT(first->Log(), HasSubstr("on host /127.0.0.1"));
    }
    EXPECT_TRUE(first->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); })) << first->Log();
    EXPECT_TRUE(first->Stop());
  }
}

}  // namespace
}  // namespace lethe::test
