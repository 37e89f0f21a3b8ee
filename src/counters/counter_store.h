// Where the totals of a counter are kept for the user's applications, beside the topic of totals.
#ifndef LETHE_SRC_COUNTERS_COUNTER_STORE_H_
#define LETHE_SRC_COUNTERS_COUNTER_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lethe {

// What a key has come to in one partition; nullopt: somebody has deleted its total.
struct StoredTotal {
  std::string key;
  std::optional<int64_t> total;
};

// The last total of each key in the offsets [from, to) of one partition of the topic of totals.
struct StoreBatch {
  int32_t partition = 0;
  int64_t from = 0;
  int64_t to = 0;
  std::vector<StoredTotal> totals;
};

// The store keeps, with the totals of each partition, the position in the topic up to which they are: the
// offset of the next record. A batch and its position are stored together or not at all, and only where the
// position is the batch's `from`. So a batch that comes again, or from a writer that was left behind, changes
// nothing; a store that was set back to an earlier state says so, and goes on from there.
//
// An error leaves it unknown whether a batch was stored: ask for the positions. The call connects again where
// it must. Errors are told apart by their code, and say what to do: Unavailable (away, restarting),
// ResourceExhausted (no memory), PermissionDenied (wrong password), FailedPrecondition (all else that an
// operator must see to). Used by one thread.
class CounterStore {
 public:
  virtual ~CounterStore() = default;

  // For people: without its password.
  virtual const std::string& name() const = 0;

  // Of these partitions, in their order; 0 where nothing was stored.
  virtual absl::StatusOr<std::vector<int64_t>> Positions(const std::vector<int32_t>& partitions) = 0;

  // Stores the batches in their order. Returns the position of each batch's partition behind it: its `to` if
  // it was stored, and another if it was not.
  virtual absl::StatusOr<std::vector<int64_t>> Apply(const std::vector<StoreBatch>& batches) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_COUNTER_STORE_H_
