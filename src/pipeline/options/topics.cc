#include "src/pipeline/options/topics.h"

#include <algorithm>

namespace lethe {

int64_t Topics::max_batch_bytes() const {
  int64_t bytes = output_max_bytes;
  if (divert_max_bytes > 0) bytes = std::min(bytes, divert_max_bytes);
  for (const int64_t limit : counter_max_bytes) bytes = std::min(bytes, limit);
  return bytes;
}

int64_t Topics::max_record_bytes() const {
  return std::max({input_max_bytes, output_max_bytes, divert_max_bytes});
}

}  // namespace lethe
