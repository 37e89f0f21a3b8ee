#include "src/stage/no_memory.h"

namespace lethe {

absl::Status NoMemory() noexcept {
  try {
    static const auto* const status = new absl::Status(absl::ResourceExhaustedError(
        "the system has no memory left for this process: raise its limit (of the container, the service, or "
        "ulimit -v), or lower memory_limit_bytes, and try again; ids remembered before are kept"));
    return *status;
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");  // a code alone needs no memory
  }
}

}  // namespace lethe
