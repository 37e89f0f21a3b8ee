#include "src/pipeline/task/input_record.h"

#include "lethe/event.h"

namespace lethe {

uint64_t InputRecord::Hash() const {
  const uint64_t key_hash = key ? HashId(*key, 1).a : 0;
  return value ? HashId(*value, key_hash).a : ~key_hash;
}

}  // namespace lethe
