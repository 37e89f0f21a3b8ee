#include "connectors/redis/redis_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace lethe::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RedisAddressTest, SaysWhereARedisIs) {
  const struct {
    const char* text;
    RedisAddress expected;
  } cases[] = {
      {"redis://127.0.0.1:6380/3", {"", "127.0.0.1", 6380, 3}},
      {"redis://cache", {"", "cache", 6379, 0}},
      {"redis://cache/", {"", "cache", 6379, 0}},
      {"redis://lethe@cache:1", {"lethe", "cache", 1, 0}},
      {"redis://[::1]:7000/12", {"", "::1", 7000, 12}},
      {"redis://[::1]", {"", "::1", 6379, 0}},
      {"redis://u@[fe80::1]/1", {"u", "fe80::1", 6379, 1}},
  };
  for (const auto& [text, expected] : cases) {
    const absl::StatusOr<RedisAddress> address = RedisAddress::Parse(text);
    ASSERT_OK(address) << text;
    EXPECT_EQ(address->user, expected.user) << text;
    EXPECT_EQ(address->host, expected.host) << text;
    EXPECT_EQ(address->port, expected.port) << text;
    EXPECT_EQ(address->database, expected.database) << text;
  }
}

TEST(RedisAddressTest, RefusesMalformedOnes) {
  for (const char* text : {"", "redis:", "redis://", "redis:///0", "redis://:6379", "redis://@h",
                           "redis://h:", "redis://h:0", "redis://h:65536", "redis://h:+1", "redis://h:1x",
                           "redis://h/-1", "redis://h/x", "redis://h/99999999999", "redis://[::1",
                           "redis://[]", "redis://[::1]x", "http://h", "127.0.0.1:6379"}) {
    EXPECT_FALSE(RedisAddress::Parse(text).ok()) << text;
  }
}

TEST(RedisAddressTest, NeverRepeatsAPassword) {
  const absl::Status refused = RedisAddress::Parse("redis://u:hush@h/0").status();
  EXPECT_THAT(refused.message(), HasSubstr("store_password"));
  EXPECT_THAT(refused.message(), Not(HasSubstr("hush")));
  EXPECT_THAT(RedisAddress::Parse("rediss://h").status().message(), HasSubstr("TLS"));
}

}  // namespace
}  // namespace lethe::redis
