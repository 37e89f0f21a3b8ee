// The memory limit of a stage, shared by all of its filters, and parts of it.
#ifndef LETHE_MEMORY_BUDGET_H_
#define LETHE_MEMORY_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lethe/export.h"

namespace lethe {

// Invariant: 0 <= used_bytes() <= limit_bytes(), whatever threads do; what a part has used, its whole has
// used. Thread-safe and lock-free, but for SetLimit, which only one thread may call at a time.
//
// It is counted what is free, not what is used: so a lower limit is taken from it as any other bytes are, and
// no thread can reserve what it is taking.
class LETHE_EXPORT MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes), free_bytes_(limit_bytes) {}
  // A part of `whole`, which outlives it: what is taken from the part is taken from both.
  MemoryBudget(int64_t limit_bytes, MemoryBudget* whole)
      : whole_(whole), limit_bytes_(limit_bytes), free_bytes_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Takes `bytes` from the budget, or takes nothing and returns false if they are not there.
  bool Reserve(int64_t bytes) {
    if (Take(bytes)) {
      if (whole_ == nullptr || whole_->Reserve(bytes)) return true;
      free_bytes_ += bytes;
    }
    NoteRefused(bytes);
    return false;
  }

  // Whether `bytes` are there now. If not, that counts as a refusal, as if they had been asked for.
  bool HasRoomFor(int64_t bytes) {
    if (bytes <= free_bytes_) return true;
    NoteRefused(bytes);
    return false;
  }

  // What the largest request that was refused since the last call lacks now; 0 if none was, or if there is
  // room for it by now.
  int64_t TakeMissingBytes() { return std::max<int64_t>(0, refused_bytes_.exchange(0) - free_bytes_); }

  // Gives back what Reserve took.
  void Release(int64_t bytes) {
    if (whole_ != nullptr) whole_->Release(bytes);
    free_bytes_ += bytes;
  }

  // Another limit, at once. False, and nothing is changed, if more than that is used. A part's and its
  // whole's are set each by itself.
  bool SetLimit(int64_t limit_bytes) {
    const int64_t more = limit_bytes - limit_bytes_;
    if (more < 0 && !Take(-more)) return false;
    limit_bytes_ = limit_bytes;
    if (more > 0) free_bytes_ += more;
    return true;
  }

  // While the limit is being changed, not more than there was under either.
  int64_t used_bytes() const {
    const int64_t free = free_bytes_;
    return std::max<int64_t>(0, limit_bytes_ - free);
  }
  int64_t limit_bytes() const { return limit_bytes_; }

 private:
  bool Take(int64_t bytes) {
    int64_t free = free_bytes_;
    do {
      if (bytes > free) return false;
    } while (!free_bytes_.compare_exchange_weak(free, free - bytes));
    return true;
  }

  // At the limit some ask with every id, on several processors: they share what they only read. (Of two that
  // are refused at once either may be taken for the largest.)
  void NoteRefused(int64_t bytes) {
    if (bytes <= refused_bytes_.load(std::memory_order_relaxed)) return;
    refused_bytes_.store(bytes, std::memory_order_relaxed);
  }

  MemoryBudget* const whole_ = nullptr;
  std::atomic<int64_t> limit_bytes_;
  std::atomic<int64_t> free_bytes_;
  std::atomic<int64_t> refused_bytes_{0};  // the most since TakeMissingBytes()
};

}  // namespace lethe

#endif  // LETHE_MEMORY_BUDGET_H_
