#include "src/counters/counter_sums.h"

#include <utility>

namespace lethe {

bool CounterSums::Add(absl::string_view key, int64_t delta) {
  int64_t before = 0;
  const auto changed = changed_.find(key);
  if (changed != changed_.end()) {
    before = changed->second;
  } else if (const auto total = totals_.find(key); total != totals_.end()) {
    before = total->second;
  }
  int64_t after = 0;
  if (__builtin_add_overflow(before, delta, &after)) return false;
  if (changed != changed_.end()) {
    changed->second = after;
  } else {
    changed_.emplace(key, after);
    bytes_ += static_cast<int64_t>(key.size()) + kBytesBesideKey;
  }
  return true;
}

void CounterSums::Commit() {
  if (keeps_totals_) {
    for (const auto& [key, total] : changed_) totals_[key] = total;
  }
  Clear();
}

void CounterSums::Clear() {
  changed_.clear();
  bytes_ = 0;
}

}  // namespace lethe
