// The sums of one counter in one partition.
#ifndef LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
#define LETHE_SRC_COUNTERS_COUNTER_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "lethe/secret_hash.h"

namespace lethe {

// Not thread-safe: one per partition and counter.
class CounterSums {
 public:
  using Sums = SecretHashMap<int64_t>;

  // With totals, the sum of a key is that of all transactions; else that of the open one.
  explicit CounterSums(bool keeps_totals = false) : keeps_totals_(keeps_totals) {}

  // Adds to the key's sum. False, and nothing is added, if the sum would leave int64.
  bool Add(absl::string_view key, int64_t delta);

  // The keys that the open transaction has changed, with their sums.
  const Sums& changed() const { return changed_; }
  // Their memory, roughly: keys may be as large as records.
  int64_t bytes() const { return bytes_; }

  void Commit();
  // After an abort; or, without totals, after its sums were written.
  void Clear();

  // Before the first transaction: the total of a key.
  void Restore(absl::string_view key, int64_t total) { totals_[key] = total; }
  void Forget(absl::string_view key) { totals_.erase(key); }
  const Sums& totals() const { return totals_; }

 private:
  // Of a slot of the emptiest table and an allocation.
  static constexpr int64_t kBytesBesideKey = 112;

  bool keeps_totals_;
  // Allocates for each new key of a commit: keys are few beside records.
  Sums changed_;
  int64_t bytes_ = 0;
  Sums totals_;  // as committed
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
