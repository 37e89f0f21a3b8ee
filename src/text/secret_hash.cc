#include "lethe/secret_hash.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "xxhash.h"

namespace lethe {
namespace {

using Secret = std::array<uint8_t, 192>;
static_assert(sizeof(Secret) >= XXH3_SECRET_SIZE_MIN);

// Linux has had the call since its version 3.17, and without a secret nothing is safe.
Secret NewSecret() {
  Secret secret;
  if (getentropy(secret.data(), secret.size()) != 0) std::abort();
  return secret;
}

}  // namespace

size_t SecretHash::operator()(absl::string_view text) const noexcept {
  static const Secret secret = NewSecret();
  return XXH3_64bits_withSecret(text.data(), text.size(), secret.data(), secret.size());
}

}  // namespace lethe
