// How the memory limit of a stage is divided.
#ifndef LETHE_SRC_ENGINES_MEMORY_PARTS_H_
#define LETHE_SRC_ENGINES_MEMORY_PARTS_H_

#include <cstdint>

#include "lethe/options.h"
#include "src/engines/new_filter.h"

namespace lethe {

// How much each may take; together they are the limit. Otherwise the first would leave nothing for the other,
// and each copes with its limit in a way of its own.
struct MemoryParts {
  int64_t filters = 0;
  int64_t audit = 0;
};

inline MemoryParts PartsOf(const StageOptions& options) {
  const int64_t limit = options.memory_limit_bytes;
  MemoryParts parts;
  if (options.audit_share > 0) parts.audit = limit / 8;
  parts.filters = limit - parts.audit;
  return parts;
}

// The smallest limit with room for the first filter of each shard of so many partitions, and what belongs to
// it.
int64_t SmallestLimitBytes(const StageOptions& options, const EngineLimits& limits, int64_t partitions);

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_MEMORY_PARTS_H_
