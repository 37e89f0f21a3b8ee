#include "src/counters/delta_sums.h"

namespace lethe {

bool DeltaSums::Add(absl::string_view key, int64_t delta) {
  int64_t& sum = sums_[key];
  int64_t changed = 0;
  if (__builtin_add_overflow(sum, delta, &changed)) return false;
  sum = changed;
  return true;
}

}  // namespace lethe
