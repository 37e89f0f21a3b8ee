#include "src/counters/delta_sums.h"

namespace lethe {

bool DeltaSums::Add(absl::string_view key, int64_t delta) {
  const auto [sum, is_new] = sums_.try_emplace(key, 0);
  if (is_new) bytes_ += static_cast<int64_t>(key.size()) + kBytesBesideKey;
  int64_t changed = 0;
  if (__builtin_add_overflow(sum->second, delta, &changed)) return false;
  sum->second = changed;
  return true;
}

}  // namespace lethe
