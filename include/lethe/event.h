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

// 128 bits of a seeded hash (XXH3) of an id. Two ids with the same IdHash are taken for the same id;
// the chance of that for a pair is 2^-128. The halves are independent: filters take lines from `a`
// and positions, shards and samples from `b` (never shards from the high bits of `a`, which would
// thin out the lines that a shard can reach).
struct IdHash {
  uint64_t a = 0;
  uint64_t b = 0;

  friend bool operator==(IdHash x, IdHash y) { return x.a == y.a && x.b == y.b; }
};

// An id's hash as a partition makes it (Partition::Hash), and by which it knows that the hash is its own:
// seeds differ between stages, and a restored partition keeps the seed that it was saved with.
struct HashedId : IdHash {
  HashedId() = default;
  HashedId(IdHash hash, uint32_t check) : IdHash(hash), seed_check(check) {}

  uint32_t seed_check = 0;  // never 0 in a partition's hash
};

// The hash of an id under a seed. The seed is a secret: without it nobody can choose ids that collide.
LETHE_EXPORT IdHash HashId(absl::string_view id, uint64_t seed);

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
