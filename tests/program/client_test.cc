// What may be said of a property that librdkafka does not take: everything but its value. And how a consumer
// fetches on.
#include "connectors/kafka/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "connectors/kafka/broker/embedded_broker.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/reply_server.h"
#include "tests/support/status_matchers.h"

namespace lethe::kafka {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string Refusal(const std::string& name, const std::string& value) {
  ClientConfig config;
  config.Set("security.protocol", "ssl").Set(name, value);
  return std::string(config.MakeConsumer().status().message());
}

TEST(ClientConfigTest, ARefusalNamesThePropertyAndNeverTheValue) {
  EXPECT_EQ(Refusal("session.timeout.ms", "4242424"),
            "librdkafka property session.timeout.ms: the value is not accepted; allowed is 1..3600000");
  for (const char* name : {"session.timeout.ms", "enable.sparse.connections", "security.protocol", "debug",
                           "sasl.oauthbearer.method"}) {
    const std::string message = Refusal(name, "hunter2");
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
  // These are refused when the client is made.
  for (const char* name : {"ssl.key.pem", "ssl.certificate.pem", "ssl.ca.pem"}) {
    const std::string message = Refusal(name, "hunter2");
    EXPECT_FALSE(message.empty()) << name;
    EXPECT_THAT(message, Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(Refusal("sasl.pasword", "hunter2"),
            "librdkafka has no property sasl.pasword; did you mean sasl.password?");
}

// Debian 12's library has no OIDC; another that has it takes the value.
TEST(ClientConfigTest, WhatThisLibraryWasBuiltWithoutIsSaid) {
  EXPECT_THAT(Refusal("sasl.oauthbearer.method", "oidc"), Not(HasSubstr("the value is not accepted")));
}

TEST(ClientConfigTest, AnAddressIsNoSecret) {
  EXPECT_FALSE(IsSecret("sasl.oauthbearer.token.endpoint.url"));
  for (const char* name :
       {"sasl.password", "sasl.oauthbearer.client.secret", "ssl.key.pem", "sasl.jaas.config"}) {
    EXPECT_TRUE(IsSecret(name)) << name;
  }
}

TEST(ClientConfigTest, WhatLibrdkafkaQuotesOfTokensIsNotShown) {
  for (const char* text : {"Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config "
                           "beginning at: hunter2",
                           "Invalid sasl.oauthbearer.config: '\"' cannot appear in principal: hunter2",
                           "SASL/OAUTHBEARER extension values must only consist of ...: hunter2 (\x01)"}) {
    EXPECT_THAT(WithoutSecrets(text), Not(HasSubstr("hunter2")));
    EXPECT_THAT(WithoutSecrets(text), EndsWith(": the value is not accepted"));
  }
  EXPECT_EQ(WithoutSecrets("Connection refused"), "Connection refused");
}

// librdkafka falls back to Kerberos, and says then what that lacks.
TEST(ClientConfigTest, SaslWithoutAMechanismIsNamed) {
  const auto refusal = [](const std::vector<Property>& properties) {
    ClientConfig config;
    config.Set("security.protocol", "SASL_SSL").Set(properties);
    return std::string(config.MakeConsumer().status().message());
  };
  const std::string message = refusal({{"sasl.username", "lethe"}});
  EXPECT_THAT(message, HasSubstr("sasl.mechanism is not set"));
  EXPECT_THAT(refusal({{"sasl.mechanism", "GSSAPI"}}), Not(HasSubstr("sasl.mechanism is not set")));
}

// As a listener does that wants TLS or SASL, and gets neither.
TEST(ClientErrorsTest, AListenerThatClosesConnectionsIsExplained) {
  const test::ReplyServer server([](int) {});
  ClientConfig config;
  config.Set("bootstrap.servers", absl::StrCat("127.0.0.1:", server.port()))
      .Set("log.connection.close", "false");
  ClientErrors errors;
  errors.Watch(config);
  const absl::StatusOr<ClientPtr> client = config.MakeConsumer();
  ASSERT_OK(client);
  while (errors.Last(client->get()).ok()) absl::SleepFor(absl::Milliseconds(10));
  const absl::Status failed = absl::UnavailableError("asking");
  const absl::Status explained = errors.Explain(client->get(), failed);
  EXPECT_THAT(explained.message(), HasSubstr("security.protocol"));
  EXPECT_EQ(errors.Explain(client->get(), absl::NotFoundError("asking")), absl::NotFoundError("asking"));
}

// As a broker that has just started says forty times a second that a coordinator is loading.
TEST(ClientLogTest, LinesOfOneKindThatComeAtOnceBecomeOne) {
  const auto sink = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  {
    std::vector<std::string> closed;
    for (int port = 1; port <= 70; ++port) closed.push_back(absl::StrCat("127.0.0.1:", port));
    ClientConfig config;
    config.Set("bootstrap.servers", absl::StrJoin(closed, ",")).Set("enable.sparse.connections", "false");
    bool all_failed = false;
    rd_kafka_conf_set_opaque(config.raw(), &all_failed);
    rd_kafka_conf_set_error_cb(config.raw(), [](rd_kafka_t*, int code, const char*, void* flag) {
      if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) *static_cast<bool*>(flag) = true;
    });
    const auto client = config.MakeConsumer();
    ASSERT_OK(client);
    while (!all_failed) rd_kafka_poll(client->get(), 100);
  }
  spdlog::set_default_logger(before);
  int said = 0;
  for (const std::string& line : sink->last_formatted()) said += absl::StrContains(line, "librdkafka FAIL: ");
  EXPECT_EQ(said, 1);
}

constexpr int kMessages = 20'000;

ClientConfig For(const EmbeddedBroker& broker) {
  ClientConfig config;
  config.Set("bootstrap.servers", broker.bootstrap_servers());
  return config;
}

void Fill(const EmbeddedBroker& broker) {
  const absl::StatusOr<ClientPtr> producer = For(broker).Set("batch.num.messages", "100").MakeProducer();
  ASSERT_OK(producer);
  const TopicPtr topic(rd_kafka_topic_new(producer->get(), "input", nullptr));
  const std::string value(100, 'x');
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(rd_kafka_producev(producer->get(), RD_KAFKA_V_RKT(topic.get()), RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  ASSERT_EQ(rd_kafka_flush(producer->get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

// How long it is, five times in all, from when a full queue has been emptied until the next message comes.
absl::Duration Waits(const EmbeddedBroker& broker, bool fetches_on) {
  constexpr size_t kFull = kMessages / 40;
  ClientConfig config = For(broker);
  config.Set("group.id", "reader").Set("auto.offset.reset", "earliest").Set("enable.auto.commit", "false");
  config.Set("queued.min.messages", absl::StrCat(kFull)).Set("fetch.message.max.bytes", "10000");
  if (fetches_on) config.Set(FetchOn::Defaults()).Set("message.max.bytes", "1000");
  const absl::StatusOr<ClientPtr> consumer = config.MakeConsumer();
  EXPECT_OK(consumer);
  if (!consumer.ok()) return absl::ZeroDuration();
  rd_kafka_poll_set_consumer(consumer->get());
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), "input", 0)->offset = 0;
  EXPECT_EQ(rd_kafka_assign(consumer->get(), list.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  const std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>> queue(
      rd_kafka_queue_get_consumer(consumer->get()));
  std::optional<FetchOn> fetch_on;
  if (fetches_on) fetch_on.emplace(consumer->get());
  const auto poll = [&](int timeout_ms) {
    return fetch_on ? fetch_on->Poll(timeout_ms) != nullptr
                    : MessagePtr(rd_kafka_consumer_poll(consumer->get(), timeout_ms)) != nullptr;
  };
  absl::Duration waits;
  const absl::Time deadline = SteadyNow() + absl::Minutes(2);
  for (int i = 0; i < 5; ++i) {
    while (rd_kafka_queue_length(queue.get()) < kFull && SteadyNow() < deadline) std::this_thread::yield();
    while (rd_kafka_queue_length(queue.get()) > 0) poll(0);
    const absl::Time emptied = SteadyNow();
    while (!poll(1000) && absl::Now() < deadline) {
    }
    waits += SteadyNow() - emptied;
  }
  EXPECT_LT(SteadyNow(), deadline);
  return waits;
}

// It waited for the rest of a second each time, 5 s in all, which are less than 0.1 s now.
TEST(FetchOnTest, AReaderThatEmptiesItsQueueIsNotLeftWaiting) {
  const auto broker = EmbeddedBroker::Start();
  ASSERT_OK(broker);
  ASSERT_OK((*broker)->CreateTopic("input", 1));
  Fill(**broker);
  const absl::Duration without = Waits(**broker, /*fetches_on=*/false);
  const absl::Duration with = Waits(**broker, /*fetches_on=*/true);
  EXPECT_GT(without, absl::Seconds(1)) << "this librdkafka looks again by itself: FetchOn has become useless";
  EXPECT_LT(with, without / 2);
}

// It is done by giving the credentials once more, which are those that the next connection is made with.
TEST(FetchOnTest, TheCredentialsStayWhatTheyAre) {
  const std::string user = "user";
  const std::string password(2000, 'p');
  ClientConfig config;
  config.Set("bootstrap.servers", "127.0.0.1:1").Set("group.id", "g");
  config.Set("security.protocol", "sasl_plaintext").Set("sasl.mechanism", "SCRAM-SHA-256");
  config.Set("sasl.username", user).Set("sasl.password", password);
  const absl::StatusOr<ClientPtr> consumer = config.MakeConsumer();
  ASSERT_OK(consumer);
  FetchOn fetch_on(consumer->get());
  const MessagePtr none = fetch_on.Poll(0);
  const auto property = [&](const char* name) {
    std::string value(4096, '\0');
    size_t size = value.size();
    EXPECT_EQ(rd_kafka_conf_get(rd_kafka_conf(consumer->get()), name, value.data(), &size), RD_KAFKA_CONF_OK);
    return value.substr(0, size - 1);
  };
  EXPECT_EQ(property("sasl.username"), user);
  EXPECT_EQ(property("sasl.password"), password);
}

constexpr FetchRoom::Limits kMost = {65'536, 25'000};
// As long as few small records came in a row.
constexpr FetchRoom::Limits kUntrusted = {16'384, 25'000};

void AddMany(FetchRoom& room, int records, size_t bytes) {
  for (int i = 0; i < records; ++i) room.Add(bytes);
}

TEST(FetchRoomTest, BeginsSmallAndOpensForSmallRecords) {
  FetchRoom room(kMost);
  EXPECT_LE(room.limits().fetch_bytes, kMost.fetch_bytes / 16);
  EXPECT_LE(room.limits().queued_records, kMost.queued_records / 16);
  AddMany(room, 10'000, 200);
  EXPECT_EQ(room.limits(), kUntrusted);
  AddMany(room, 300'000, 200);
  EXPECT_EQ(room.limits(), kMost);
}

TEST(FetchRoomTest, OneLargeRecordIsEnoughToFetchOneBatchAtATime) {
  FetchRoom room(kMost);
  AddMany(room, 300'000, 200);
  EXPECT_TRUE(room.Add(5'000'000));
  EXPECT_LE(room.limits().fetch_bytes, 1000);
  EXPECT_LE(room.limits().queued_records * 5'000'000, 64 << 20);
}

// One in a thousand is enough to come again, and one in 250,000 to be careful.
TEST(FetchRoomTest, LargeRecordsAreRememberedForAWhile) {
  FetchRoom room(kMost);
  AddMany(room, 300'000, 200);
  room.Add(5'000'000);
  AddMany(room, 1000, 200);
  EXPECT_LE(room.limits().fetch_bytes, 1000);
  AddMany(room, 20'000, 200);
  EXPECT_EQ(room.limits(), kUntrusted);
}

// The process may have been ended by what comes next.
TEST(FetchRoomTest, TheEndOfAReplayIsReadCarefully) {
  FetchRoom room(kMost);
  AddMany(room, 300'000, 200);
  EXPECT_TRUE(room.Distrust());
  EXPECT_EQ(room.limits(), kUntrusted);
  EXPECT_FALSE(room.Distrust());
}

TEST(FetchRoomTest, TheLargestSizeLeavesOneBatchAndOneRecord) {
  FetchRoom room(kMost);
  room.Add(size_t{1} << 40);
  EXPECT_EQ(room.limits(), (FetchRoom::Limits{1, 1}));
}

TEST(FetchRoomTest, TheLimitsOfTheUserAreNeverExceeded) {
  FetchRoom room({300, 10});
  AddMany(room, 20'000, 1);
  EXPECT_EQ(room.limits(), (FetchRoom::Limits{300, 10}));
}

}  // namespace
}  // namespace lethe::kafka
