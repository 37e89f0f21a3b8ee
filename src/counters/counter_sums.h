// What one counter comes to in one partition.
#ifndef LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
#define LETHE_SRC_COUNTERS_COUNTER_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace lethe {

// Not thread-safe: one per partition and counter.
class CounterSums {
 public:
  using Sums = absl::flat_hash_map<std::string, int64_t>;

  // With totals, the sum of a key is that of all transactions; else that of the open one.
  explicit CounterSums(bool keeps_totals = false) : keeps_totals_(keeps_totals) {}

  // Adds to the key's sum. False, and nothing is added, if the sum would leave int64.
  bool Add(absl::string_view key, int64_t delta);

  // The keys that the open transaction has changed, with their sums.
  const Sums& changed() const { return changed_; }
  // What these take in memory, roughly: keys may be as large as records are, and each another.
  int64_t bytes() const { return bytes_; }

  // The transaction is committed.
  void Commit();
  // It is aborted; or, without totals, its sums are written, and others begin.
  void Clear();

  // Before the first transaction: what a key has come to by now.
  void Restore(absl::string_view key, int64_t total) { totals_[key] = total; }
  void Forget(absl::string_view key) { totals_.erase(key); }
  const Sums& totals() const { return totals_; }

 private:
  // A slot of the table, as empty as it may be, and what an allocation costs.
  static constexpr int64_t kBytesBesideKey = 112;

  bool keeps_totals_;
  // Allocates for each key that is new in a commit: keys are few beside records.
  Sums changed_;
  int64_t bytes_ = 0;
  Sums totals_;  // as committed
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
