// A share of the memory budget that is given back when its owner goes.
#ifndef LETHE_SRC_MEMORY_RESERVATION_H_
#define LETHE_SRC_MEMORY_RESERVATION_H_

#include <cstdint>
#include <utility>

#include "lethe/memory_budget.h"
#include "src/assertion.h"

namespace lethe {

// Invariant: bytes() of the budget are taken in this object's name. Move-only. Thread safety: none.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(MemoryBudget* budget) : budget_(budget) {}
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() {
    if (budget_ != nullptr) budget_->Release(bytes_);
  }

  // Takes `bytes` more, or takes nothing and returns false.
  bool Grow(int64_t bytes) {
    if (!(bytes_ == 0 ? budget_->ReserveFirst(bytes) : budget_->Reserve(bytes))) return false;
    bytes_ += bytes;
    return true;
  }

  // Gives back `bytes` of those taken.
  void Shrink(int64_t bytes) {
    LETHE_DEBUG_ASSERT(bytes <= bytes_);
    budget_->Release(bytes);
    bytes_ -= bytes;
  }

  int64_t bytes() const { return bytes_; }
  // Whether Grow would find them now; if not, the budget is told.
  bool HasRoomFor(int64_t bytes) const { return budget_->HasRoomFor(bytes); }

 private:
  MemoryBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_MEMORY_RESERVATION_H_
