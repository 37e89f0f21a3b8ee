// The types that a caller and the stage exchange: an id's hash, an event, a verdict.
#ifndef LETHE_EVENT_H_
#define LETHE_EVENT_H_

#if __cplusplus < 201703L
#error "lethe's headers need C++17 or later: -std=c++17, or target_link_libraries(... lethe::lethe) in CMake"
#endif

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lethe/export.h"

namespace lethe {

// The stage's answer for one event.
enum class Verdict : uint8_t {
  kUnique = 0,     // no event with this id was passed within the horizon
  kDuplicate = 1,  // an event with this id was passed, or (at the stated rate) a false positive
};

// 128 bits of a keyed hash of an id (HashId). Two ids with the same IdHash are taken for the same id;
// the chance of that for a pair is 2^-128. The halves are independent: filters take lines from `a`
// and positions, shards and samples from `b` (never shards from the high bits of `a`, which would
// thin out the lines that a shard can reach).
struct IdHash {
  uint64_t a = 0;
  uint64_t b = 0;

  friend bool operator==(IdHash x, IdHash y) { return x.a == y.a && x.b == y.b; }
};

// An id's hash as a partition makes it (Partition::Hash), and by which it knows that the hash is its own:
// each partition has a key of its own, and a restored one keeps the key that it was saved with.
struct HashedId : IdHash {
  HashedId() = default;
  HashedId(IdHash hash, uint32_t check) : IdHash(hash), key_check(check) {}

  uint32_t key_check = 0;  // never 0 in a partition's hash
};

// A key of 128 bits.
struct HashKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

// The hash of an id of any length under a key: SipHash-1-3 with 128 bits, a pseudo-random function. Who does
// not know the key cannot choose ids that collide, or that lie in the same place of a filter, though he sees
// of any number of ids whether they pass.
LETHE_EXPORT IdHash HashId(absl::string_view id, HashKey key);

// For overloads that take std::string_view where Abseil has a string view of its own.
template <typename Text>
using IfStandardText =
    std::enable_if_t<std::is_same_v<Text, std::string_view> && !std::is_same_v<Text, absl::string_view>>;

// One event as the stage sees it. `time` is the record's timestamp; InfinitePast() means that it has
// none, so that the record does not move stream time.
//
// `payload` is what the event says besides its id; default-constructed if there is none to compare. It is
// read for the few ids that are audited, to find ids that unlike events share, and only during the call.
struct Event {
  HashedId id;  // of the partition that judges it
  absl::Time time = absl::InfinitePast();
  absl::string_view payload = {};
};

}  // namespace lethe

#endif  // LETHE_EVENT_H_
