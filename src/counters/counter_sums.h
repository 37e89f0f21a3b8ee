// The sums of one counter in one partition.
#ifndef LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
#define LETHE_SRC_COUNTERS_COUNTER_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "lethe/secret_hash.h"

namespace lethe {

// Not thread-safe: one per partition and counter.
class CounterSums {
 public:
  using Sums = SecretHashMap<int64_t>;

  enum class Added {
    kYes,
    // Nothing is added:
    kOverflow,     // the sum would leave int64
    kTooManyKeys,  // it would be one key too many
  };

  // Without totals: the sum of a key is that of the open transaction.
  CounterSums() = default;
  // With totals, of all transactions, and at most `max_keys` of them. The first keys in the log's order are
  // those that count, and a committed total stays; so a replay decides as the live run did.
  static CounterSums WithTotals(size_t max_keys) {
    CounterSums sums;
    sums.keeps_totals_ = true;
    sums.max_keys_ = max_keys;
    return sums;
  }

  // Adds to the key's sum.
  Added Add(absl::string_view key, int64_t delta);

  // The keys that the open transaction has changed, with their sums.
  const Sums& changed() const { return changed_; }
  // How many keys have a total, if the open transaction commits.
  size_t keys() const { return totals_.size() + new_keys_; }
  // Their memory, roughly: keys may be as large as records.
  int64_t bytes() const { return bytes_; }

  // Between transactions: the topic of the totals was deleted. The next commit has all of them, and not only
  // those that change.
  void WriteAllTotals();

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

  void ChangeAll();

  bool keeps_totals_ = false;
  bool writes_all_ = false;
  size_t max_keys_ = std::numeric_limits<size_t>::max();
  // Allocates for each new key of a commit: keys are few beside records.
  Sums changed_;
  size_t new_keys_ = 0;  // of changed_, that have no total
  int64_t bytes_ = 0;
  Sums totals_;  // as committed
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_COUNTER_SUMS_H_
