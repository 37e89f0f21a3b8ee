// The size of filters that cannot adapt theirs.
#ifndef LETHE_SRC_PUBLISHED_FIXED_SHARE_H_
#define LETHE_SRC_PUBLISHED_FIXED_SHARE_H_

#include <algorithm>
#include <cstdint>

#include "lethe/memory_budget.h"

namespace lethe {

inline constexpr int64_t kSmallestShareBytes = int64_t{16} << 10;
inline constexpr int64_t kLargestShareBytes = int64_t{1} << 30;

// A 64th of the memory limit, so that as many filters (one per partition and shard) find room, but from
// 16 KiB to 1 GiB.
inline int64_t FixedShareBytes(const MemoryBudget& memory) {
  return std::clamp(memory.limit_bytes() / 64, kSmallestShareBytes, kLargestShareBytes);
}

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_FIXED_SHARE_H_
