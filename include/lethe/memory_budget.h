// The memory limit of a process, shared by all of its filters, and parts of it.
#ifndef LETHE_MEMORY_BUDGET_H_
#define LETHE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>

namespace lethe {

// Invariant: 0 <= used_bytes() <= limit_bytes(), whatever threads do; what a part has used, its whole has
// used. Thread-safe and lock-free.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  // A part of `whole`, which outlives it: what is taken from the part is taken from both.
  MemoryBudget(int64_t limit_bytes, MemoryBudget* whole) : limit_bytes_(limit_bytes), whole_(whole) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Takes `bytes` from the budget, or takes nothing and returns false if they are not there.
  bool Reserve(int64_t bytes) {
    int64_t used = used_bytes_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_bytes_ - used) return false;
    } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    if (whole_ == nullptr || whole_->Reserve(bytes)) return true;
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }

  // Gives back what Reserve took.
  void Release(int64_t bytes) {
    if (whole_ != nullptr) whole_->Release(bytes);
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  const int64_t limit_bytes_;
  MemoryBudget* const whole_ = nullptr;
  std::atomic<int64_t> used_bytes_{0};
};

}  // namespace lethe

#endif  // LETHE_MEMORY_BUDGET_H_
