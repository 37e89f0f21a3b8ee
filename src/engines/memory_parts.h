// How the memory limit of a stage is divided.
#ifndef LETHE_SRC_ENGINES_MEMORY_PARTS_H_
#define LETHE_SRC_ENGINES_MEMORY_PARTS_H_

#include <cstdint>

#include "lethe/options.h"

namespace lethe {

// What each may take. Together they are the limit: a part has its own, since whoever came first would else
// leave nothing for the others, and each must do with what it has in a way of its own.
struct MemoryParts {
  int64_t filters = 0;
  int64_t audit = 0;
  int64_t second_opinion = 0;
};

inline MemoryParts PartsOf(const StageOptions& options) {
  const int64_t limit = options.memory_limit_bytes;
  MemoryParts parts;
  if (options.audit_share > 0) parts.audit = limit / 8;
  if (options.second_opinion != SecondOpinion::kNone) parts.second_opinion = limit / 4;
  parts.filters = limit - parts.audit - parts.second_opinion;
  return parts;
}

}  // namespace lethe

#endif  // LETHE_SRC_ENGINES_MEMORY_PARTS_H_
