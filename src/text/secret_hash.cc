#include "lethe/secret_hash.h"

#include <unistd.h>

#include <cstdlib>

#include "lethe/event.h"

namespace lethe {
namespace {

// Linux has had the call since its version 3.17, and without a key nothing is safe.
HashKey NewKey() {
  HashKey key;
  if (getentropy(&key, sizeof(key)) != 0) std::abort();
  return key;
}

}  // namespace

size_t SecretHash::operator()(absl::string_view text) const noexcept {
  static const HashKey key = NewKey();
  return HashId(text, key).a;
}

}  // namespace lethe
