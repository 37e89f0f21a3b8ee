#include "absl/strings/string_view.h"
#include "lethe/event.h"
#include "xxhash.h"

namespace lethe {

IdHash HashId(absl::string_view id, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(id.data(), id.size(), seed);
  return {.a = hash.low64, .b = hash.high64};
}

}  // namespace lethe
