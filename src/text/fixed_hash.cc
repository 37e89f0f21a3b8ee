#include "src/text/fixed_hash.h"

#include "xxhash.h"

namespace lethe {

IdHash FixedHash(absl::string_view text, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
  return {.a = hash.low64, .b = hash.high64};
}

}  // namespace lethe
