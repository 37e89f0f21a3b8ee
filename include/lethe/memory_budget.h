// The memory limit of stages, shared by all of their filters, and parts of it.
#ifndef LETHE_MEMORY_BUDGET_H_
#define LETHE_MEMORY_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "lethe/export.h"

namespace lethe {

class MemoryShares;

// Invariant: 0 <= used_bytes(), and but for a share that is overdrawn used_bytes() <= limit_bytes(), whatever
// threads do; what a part has used, its whole has used. Thread-safe and, but for SetLimit, which only one
// thread may call at a time, and for shares when memory is short, lock-free.
//
// It is counted what is free, not what is used: so a lower limit is taken from it as any other bytes are, and
// no thread can reserve what it is taking.
class LETHE_EXPORT MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes), free_bytes_(limit_bytes) {}
  // A part of `whole`, which outlives it: what is taken from the part is taken from both.
  MemoryBudget(int64_t limit_bytes, MemoryBudget* whole)
      : whole_(whole), limit_bytes_(limit_bytes), free_bytes_(limit_bytes) {}
  // One of the shares of what `shares` divides, which outlives it: while memory is short, its limit follows
  // from what all hold.
  explicit MemoryBudget(MemoryShares& shares);
  ~MemoryBudget();
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Takes `bytes` from the budget, or takes nothing and returns false if they are not there.
  bool Reserve(int64_t bytes) {
    if (TakeFromAll(bytes)) {
      DivideIfShort();
      return true;
    }
    if (DivideFor(bytes) && TakeFromAll(bytes)) return true;
    NoteRefused(bytes);
    return false;
  }

  // The same for what a filter cannot be without: a share has it as long as the whole does.
  bool ReserveFirst(int64_t bytes) {
    if (shares_ == nullptr || !whole_->Reserve(bytes)) return Reserve(bytes);
    free_bytes_ -= bytes;
    DivideIfShort();
    return true;
  }

  // Whether `bytes` are there now. If not, that counts as a refusal, as if they had been asked for.
  bool HasRoomFor(int64_t bytes) {
    if (bytes <= free_bytes() || DivideFor(bytes)) return true;
    NoteRefused(bytes);
    return false;
  }

  // What the largest request that was refused since the last call lacks now; 0 if none was, or if there is
  // room for it by now.
  int64_t TakeMissingBytes() { return std::max<int64_t>(0, refused_bytes_.exchange(0) - free_bytes()); }

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
  // Of it and of its whole; 0 if it is overdrawn.
  int64_t free_bytes() const {
    const int64_t free = std::max<int64_t>(0, free_bytes_);
    return whole_ == nullptr ? free : std::min(free, whole_->free_bytes());
  }

  // A share that holds more than its limit, which fell because others need memory: who has taken much of it
  // gives back.
  bool IsOverdrawn() const { return free_bytes_.load(std::memory_order_relaxed) < 0; }
  // Those that take from it, to know what is much: the limit divided by their number.
  void AddUser() { ++users_; }
  void RemoveUser() { --users_; }
  int64_t EvenPart() const { return limit_bytes_ / std::max<int64_t>(1, users_); }

 private:
  friend MemoryShares;
  // Nothing changes for what is used, which may be more.
  void SetLimitOfShare(int64_t limit_bytes) {
    free_bytes_ += limit_bytes - limit_bytes_;
    limit_bytes_ = limit_bytes;
  }
  // Of shares alone. DivideFor: whether there is room for `bytes` then.
  void DivideIfShort();
  bool DivideFor(int64_t bytes);

  bool TakeFromAll(int64_t bytes) {
    if (!Take(bytes)) return false;
    if (whole_ == nullptr || whole_->Reserve(bytes)) return true;
    free_bytes_ += bytes;
    return false;
  }

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
  MemoryShares* const shares_ = nullptr;
  std::atomic<int64_t> limit_bytes_;
  std::atomic<int64_t> free_bytes_;
  std::atomic<int64_t> refused_bytes_{0};  // the most since TakeMissingBytes()
  std::atomic<int64_t> users_{0};
};

}  // namespace lethe

#endif  // LETHE_MEMORY_BUDGET_H_
