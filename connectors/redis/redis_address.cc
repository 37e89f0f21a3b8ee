#include "connectors/redis/redis_address.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace lethe::redis {
namespace {

bool StoreNumber(absl::string_view text, int least, int most, int& number) {
  // SimpleAtoi takes signs and spaces, too.
  return text.find_first_not_of("0123456789") == absl::string_view::npos && absl::SimpleAtoi(text, &number) &&
         number >= least && number <= most;
}

}  // namespace

absl::StatusOr<RedisAddress> RedisAddress::Parse(absl::string_view text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "expected redis://HOST, redis://HOST:PORT or redis://USER@HOST:PORT/DATABASE, such as "
      "redis://127.0.0.1:6379/0");
  if (absl::StartsWith(text, "rediss:")) {
    return absl::InvalidArgumentError(
        "lethe speaks no TLS to Redis: use redis:// in a trusted network, or to a local stunnel");
  }
  if (!absl::ConsumePrefix(&text, "redis://")) return wrong;
  RedisAddress address;
  if (const size_t at = text.rfind('@'); at != absl::string_view::npos) {
    address.user = std::string(text.substr(0, at));
    text.remove_prefix(at + 1);
    if (absl::StrContains(address.user, ':')) {
      return absl::InvalidArgumentError(
          "expected no password in the address, where it would be printed: put it into store_password");
    }
    if (address.user.empty()) return wrong;
  }
  if (const size_t slash = text.find('/'); slash != absl::string_view::npos) {
    const absl::string_view database = text.substr(slash + 1);
    if (!database.empty() && !StoreNumber(database, 0, std::numeric_limits<int>::max(), address.database)) {
      return wrong;
    }
    text = text.substr(0, slash);
  }
  size_t host_end = text.rfind(':');
  if (absl::ConsumePrefix(&text, "[")) {
    host_end = text.find(']');
    if (host_end == absl::string_view::npos) return wrong;
    address.host = std::string(text.substr(0, host_end));
    text.remove_prefix(host_end + 1);
  } else {
    address.host = std::string(text.substr(0, host_end));
    text.remove_prefix(address.host.size());
    if (address.host.find_first_of(":[]") != std::string::npos) return wrong;
  }
  if (!text.empty() &&
      (!absl::ConsumePrefix(&text, ":") || text.empty() || !StoreNumber(text, 1, 65535, address.port))) {
    return wrong;
  }
  if (address.host.empty()) return wrong;
  return address;
}

}  // namespace lethe::redis
