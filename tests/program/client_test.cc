// What may be said of a property that librdkafka does not take: everything but its value.
#include "connectors/kafka/client.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

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

}  // namespace
}  // namespace lethe::kafka
