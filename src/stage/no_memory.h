// At the public boundary an allocation failure is a status, and no exception.
#ifndef LETHE_SRC_STAGE_NO_MEMORY_H_
#define LETHE_SRC_STAGE_NO_MEMORY_H_

#include <new>

#include "absl/status/status.h"

namespace lethe {

// ResourceExhausted, with what to do. The first call allocates the message, later ones nothing; without
// memory the first call returns the code alone. Thread-safe.
absl::Status NoMemory() noexcept;

// What `call` returns, a Status or a StatusOr, or NoMemory() if it throws std::bad_alloc.
template <typename Call>
auto OrNoMemory(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_NO_MEMORY_H_
