// What may be said of a property that librdkafka does not take: everything but its value. And how a consumer
// fetches on.
#include "connectors/kafka/client.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/embedded_broker.h"

namespace lethe::kafka {
namespace {

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
    EXPECT_TRUE(absl::StrContains(message, name)) << message;
    EXPECT_FALSE(absl::StrContains(message, "hunter2")) << message;
  }
  // These are refused when the client is made.
  for (const char* name : {"ssl.key.pem", "ssl.certificate.pem", "ssl.ca.pem"}) {
    const std::string message = Refusal(name, "hunter2");
    EXPECT_FALSE(message.empty()) << name;
    EXPECT_FALSE(absl::StrContains(message, "hunter2")) << message;
  }
  EXPECT_EQ(Refusal("sasl.pasword", "hunter2"), "librdkafka property sasl.pasword: there is none");
}

TEST(ClientConfigTest, WhatLibrdkafkaQuotesOfTokensIsNotShown) {
  for (const char* text : {"Failed to acquire SASL OAUTHBEARER token: Unrecognized sasl.oauthbearer.config "
                           "beginning at: hunter2",
                           "Invalid sasl.oauthbearer.config: '\"' cannot appear in principal: hunter2",
                           "SASL/OAUTHBEARER extension values must only consist of ...: hunter2 (\x01)"}) {
    EXPECT_FALSE(absl::StrContains(WithoutSecrets(text), "hunter2")) << WithoutSecrets(text);
    EXPECT_TRUE(absl::EndsWith(WithoutSecrets(text), ": the value is not accepted"));
  }
  EXPECT_EQ(WithoutSecrets("Connection refused"), "Connection refused");
}

constexpr int kMessages = 20'000;

ClientConfig For(const EmbeddedBroker& broker) {
  ClientConfig config;
  config.Set("bootstrap.servers", broker.bootstrap_servers());
  return config;
}

void Fill(const EmbeddedBroker& broker) {
  const absl::StatusOr<ClientPtr> producer = For(broker).Set("batch.num.messages", "100").MakeProducer();
  ASSERT_TRUE(producer.ok()) << producer.status();
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

// With a queue of a 40th of the log, or a little more: how often nothing came for a 50th of a second before
// all was read.
int Waits(const EmbeddedBroker& broker, bool fetches_on) {
  ClientConfig config = For(broker);
  config.Set("group.id", "reader").Set("auto.offset.reset", "earliest").Set("enable.auto.commit", "false");
  config.Set("queued.min.messages", absl::StrCat(kMessages / 40)).Set("fetch.message.max.bytes", "10000");
  if (fetches_on) FetchOn::Configure(config);
  const absl::StatusOr<ClientPtr> consumer = config.MakeConsumer();
  EXPECT_TRUE(consumer.ok()) << consumer.status();
  if (!consumer.ok()) return 0;
  rd_kafka_poll_set_consumer(consumer->get());
  const PartitionListPtr list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), "input", 0)->offset = 0;
  EXPECT_EQ(rd_kafka_assign(consumer->get(), list.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  std::optional<FetchOn> fetch_on;
  if (fetches_on) fetch_on.emplace(consumer->get());
  int waits = 0;
  const absl::Time deadline = absl::Now() + absl::Minutes(2);
  for (int read = 0; read < kMessages && absl::Now() < deadline;) {
    const MessagePtr message(rd_kafka_consumer_poll(consumer->get(), 20));
    if (fetch_on) fetch_on->Polled(absl::Now(), message != nullptr);
    if (message == nullptr) {
      waits += read > 0 ? 1 : 0;
      continue;
    }
    EXPECT_EQ(message->offset, read) << rd_kafka_message_errstr(message.get());
    ++read;
  }
  EXPECT_LT(absl::Now(), deadline);
  return waits;
}

// It waited for seconds for a log of 2 MB: each time that the queue had been full, for the rest of a
// second.
TEST(FetchOnTest, AReaderThatEmptiesItsQueueIsNotLeftWaiting) {
  const auto broker = EmbeddedBroker::Start();
  ASSERT_TRUE(broker.ok()) << broker.status();
  ASSERT_TRUE((*broker)->CreateTopic("input", 1).ok());
  Fill(**broker);
  const int without = Waits(**broker, /*fetches_on=*/false);
  const int with = Waits(**broker, /*fetches_on=*/true);
  EXPECT_GT(without, 50) << "this librdkafka looks again by itself: FetchOn has become useless";
  EXPECT_LT(with, without / 4);
}

}  // namespace
}  // namespace lethe::kafka
