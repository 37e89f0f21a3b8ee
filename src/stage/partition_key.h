// The key of the hash of one partition's ids.
#ifndef LETHE_SRC_STAGE_PARTITION_KEY_H_
#define LETHE_SRC_STAGE_PARTITION_KEY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lethe/event.h"

namespace lethe {

// What a snapshot holds of the key: random bytes, from which the key follows by a secret.
struct HashSalt {
  uint64_t low = 0;
  uint64_t high = 0;
};

// From the system.
absl::StatusOr<HashSalt> NewHashSalt();

// The key, and by what a snapshot's reader sees that it has the same secret, are two outputs of HashId()
// under the secret. So without the secret the salt and the check say nothing of the key; with the
// empty secret, which everybody knows, the salt is as good as the key.
struct PartitionKey {
  HashSalt salt;
  HashKey key;
  uint64_t check = 0;
};
PartitionKey PartitionKeyOf(HashKey secret, HashSalt salt);

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_PARTITION_KEY_H_
