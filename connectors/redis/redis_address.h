// The address of a Redis: redis://[USER@]HOST[:PORT][/DATABASE].
#ifndef LETHE_CONNECTORS_REDIS_REDIS_ADDRESS_H_
#define LETHE_CONNECTORS_REDIS_REDIS_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lethe::redis {

struct RedisAddress {
  std::string user;  // empty: that of Redis before its version 6, which has only a password
  std::string host;  // an IPv6 address without its brackets
  int port = 6379;
  int database = 0;

  // InvalidArgument says the expected form without the text, which may hold a password.
  static absl::StatusOr<RedisAddress> Parse(absl::string_view text);
};

}  // namespace lethe::redis

#endif  // LETHE_CONNECTORS_REDIS_REDIS_ADDRESS_H_
