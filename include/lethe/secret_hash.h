// The hash of tables whose keys come from outside.
#ifndef LETHE_SECRET_HASH_H_
#define LETHE_SECRET_HASH_H_

#include <cstddef>
#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "lethe/export.h"

namespace lethe {

// Hashes text (SipHash-1-3) under a key of this process, which comes from the system. Without one, somebody
// can make keys that all collide, and a table becomes a list (Crosby and Wallach, "Denial of Service via
// Algorithmic Complexity Attacks", USENIX Security 2003): Abseil's own hash and XXH3 are made to be fast, and
// some keys collide in them whatever the seed is. Thread-safe.
struct LETHE_EXPORT SecretHash {
  using is_transparent = void;
  size_t operator()(absl::string_view text) const noexcept;
};

// Tables with such keys. They are found by an absl::string_view, too.
template <class Value>
using SecretHashMap = absl::flat_hash_map<std::string, Value, SecretHash, std::equal_to<>>;
using SecretHashSet = absl::flat_hash_set<std::string, SecretHash, std::equal_to<>>;

}  // namespace lethe

#endif  // LETHE_SECRET_HASH_H_
