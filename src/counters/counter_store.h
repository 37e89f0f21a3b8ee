// A store of a counter's totals for the user's applications, beside the topic of totals.
#ifndef LETHE_SRC_COUNTERS_COUNTER_STORE_H_
#define LETHE_SRC_COUNTERS_COUNTER_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lethe {

// The total of a key in one partition; nullopt: deleted.
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

// The store keeps the position of each partition in the topic of totals: the offset of the next record. It
// stores a batch and its position together or not at all, and only if the position is the batch's `from`. So
// a repeated batch, or one from an outdated writer, changes nothing, and a store that was reset goes on from
// its position.
//
// After an error ask for the positions: a batch may be stored or not. Calls reconnect. Errors: Unavailable
// (away, restarting), ResourceExhausted (no memory), PermissionDenied (wrong password), FailedPrecondition
// (anything else that an operator must correct), Cancelled (interrupted). Used by one thread, but for
// Interrupt.
class CounterStore {
 public:
  virtual ~CounterStore() = default;

  // Without its password.
  virtual const std::string& name() const = 0;

  // For a shell: deletes all that the store has of this counter.
  virtual std::string ResetCommand() const = 0;

  // From any thread: ends a call that waits, and all that come later.
  virtual void Interrupt() = 0;

  // Of these partitions, in their order; 0 where nothing was stored, or where totals have been deleted since:
  // then all are to be stored again.
  virtual absl::StatusOr<std::vector<int64_t>> Positions(const std::vector<int32_t>& partitions) = 0;

  // Stores the batches in their order. Returns the new position of each batch's partition: its `to` if it was
  // stored.
  virtual absl::StatusOr<std::vector<int64_t>> Apply(const std::vector<StoreBatch>& batches) = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_COUNTERS_COUNTER_STORE_H_
