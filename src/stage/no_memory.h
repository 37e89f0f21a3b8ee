// Memory that the system does not have, at the public boundary: a status, and no exception.
#ifndef LETHE_SRC_STAGE_NO_MEMORY_H_
#define LETHE_SRC_STAGE_NO_MEMORY_H_

#include <new>

#include "absl/status/status.h"

namespace lethe {

// ResourceExhausted, with what to do. Takes no memory once it was called while there was some; without that
// it may lack the words. Thread-safe.
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
