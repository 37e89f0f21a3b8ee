// One memory limit for several stages: by need while there is enough, in fair shares when it is short.
#ifndef LETHE_SRC_MEMORY_MEMORY_SHARES_H_
#define LETHE_SRC_MEMORY_MEMORY_SHARES_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "lethe/memory_budget.h"
#include "src/sync/mutex.h"

namespace lethe {

// Max-min fairness: whoever needs less than an even share has it, and the others divide the rest evenly. A
// sixteenth of the whole is kept for those under their share, so that they need not wait until one over it
// has given back. A stage alone has the whole.
//
// Invariant: all shares have one limit, a new one from the next division on. While the sixteenth is touched
// it is the level that frees it if all that hold more come down to it; else it is the whole. Thread-safe.
class MemoryShares {
 public:
  explicit MemoryShares(MemoryBudget* whole) : whole_(whole) {}
  MemoryShares(const MemoryShares&) = delete;
  MemoryShares& operator=(const MemoryShares&) = delete;

  void Add(MemoryBudget* share);
  void Remove(MemoryBudget* share);

  MemoryBudget* whole() const { return whole_; }
  // Whether what is kept for the small ones is touched.
  bool IsShort() const { return whole_->free_bytes() < Kept(); }
  // Sets the limits anew, as if `share` held `bytes` more.
  void Divide(const MemoryBudget* share, int64_t bytes);

 private:
  int64_t Kept() const { return whole_->limit_bytes() / 16; }
  int64_t Level(const MemoryBudget* share, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  MemoryBudget* const whole_;
  Mutex mutex_;
  std::vector<MemoryBudget*> shares_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> used_
      ABSL_GUARDED_BY(mutex_);  // room for one number each, so that a division does not allocate
};

}  // namespace lethe

#endif  // LETHE_SRC_MEMORY_MEMORY_SHARES_H_
