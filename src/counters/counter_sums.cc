#include "src/counters/counter_sums.h"

#include <utility>

namespace lethe {

CounterSums::Added CounterSums::Add(absl::string_view key, int64_t delta) {
  int64_t before = 0;
  bool is_new = false;
  const auto changed = changed_.find(key);
  if (changed != changed_.end()) {
    before = changed->second;
  } else if (const auto total = totals_.find(key); total != totals_.end()) {
    before = total->second;
  } else if (totals_.size() + new_keys_ >= max_keys_) {
    return Added::kTooManyKeys;
  } else {
    is_new = true;
  }
  int64_t after = 0;
  if (__builtin_add_overflow(before, delta, &after)) return Added::kOverflow;
  if (changed != changed_.end()) {
    changed->second = after;
  } else {
    changed_.emplace(key, after);
    new_keys_ += is_new ? 1 : 0;
    bytes_ += static_cast<int64_t>(key.size()) + kBytesBesideKey;
  }
  return Added::kYes;
}

void CounterSums::WriteAllTotals() {
  if (!keeps_totals_ || std::exchange(writes_all_, true)) return;
  ChangeAll();
}

void CounterSums::ChangeAll() {
  for (const auto& [key, total] : totals_) changed_.emplace(key, total);
}

void CounterSums::Commit() {
  writes_all_ = false;
  if (keeps_totals_) {
    for (const auto& [key, total] : changed_) totals_[key] = total;
  }
  Clear();
}

void CounterSums::Clear() {
  changed_.clear();
  new_keys_ = 0;
  bytes_ = 0;
  if (writes_all_) ChangeAll();
}

}  // namespace lethe
