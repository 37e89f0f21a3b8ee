#include "src/stage/partition_key.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lethe {

absl::StatusOr<HashSalt> NewHashSalt() {
  HashSalt salt;
  if (getentropy(&salt, sizeof(salt)) != 0) {
    return absl::ErrnoToStatus(errno, "no random key for the ids' hash from getentropy()");
  }
  return salt;
}

PartitionKey PartitionKeyOf(HashKey secret, HashSalt salt) {
  const auto output = [&](uint64_t number) {
    const std::array<uint64_t, 3> input = {salt.low, salt.high, number};
    const absl::string_view bytes(reinterpret_cast<const char*>(input.data()), sizeof(input));
    return HashId(bytes, secret);
  };
  const IdHash key = output(0);
  return {.salt = salt, .key = {.low = key.a, .high = key.b}, .check = output(1).a};
}

}  // namespace lethe
