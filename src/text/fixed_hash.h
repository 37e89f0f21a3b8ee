// A hash without a key.
#ifndef LETHE_SRC_TEXT_FIXED_HASH_H_
#define LETHE_SRC_TEXT_FIXED_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "lethe/event.h"

namespace lethe {

// The same for all processes and versions (XXH3, 128 bits): for names, fingerprints, and places that several
// instances must agree on. Anybody can find texts that collide, so no promise may rest on it.
IdHash FixedHash(absl::string_view text, uint64_t seed = 0);

}  // namespace lethe

#endif  // LETHE_SRC_TEXT_FIXED_HASH_H_
