// The sums of a commit: what each counter key has changed by.
#ifndef LETHE_SRC_COUNTERS_DELTA_SUMS_H_
#define LETHE_SRC_COUNTERS_DELTA_SUMS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace lethe {

// Not thread-safe: one per partition and transaction.
class DeltaSums {
 public:
  // Adds to the key's sum. False, and nothing is added, if the sum would leave int64: the caller writes
  // what is there, clears, and adds again, so that nothing ever wraps.
  bool Add(absl::string_view key, int64_t delta);

  const absl::flat_hash_map<std::string, int64_t>& sums() const { return sums_; }
  // What they take in memory, roughly: keys may be as large as records are, and each another.
  int64_t bytes() const { return bytes_; }
  void Clear() {
    sums_.clear();
    bytes_ = 0;
  }

 private:
  // A slot of the table, as empty as it may be, and what an allocation costs.
  static constexpr int64_t kBytesBesideKey = 112;

  // Allocates for each key that is new in a commit: keys are few beside records.
  absl::flat_hash_map<std::string, int64_t> sums_;
  int64_t bytes_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_DELTA_SUMS_H_
