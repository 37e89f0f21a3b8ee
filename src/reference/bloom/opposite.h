// A bounded array of ids: never calls a unique event a duplicate.
#ifndef LETHE_SRC_REFERENCE_BLOOM_OPPOSITE_H_
#define LETHE_SRC_REFERENCE_BLOOM_OPPOSITE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/memory/reservation.h"
#include "src/published/bit_positions.h"

namespace lethe {

// "The Opposite of a Bloom Filter" (Jeff Hodges): each id has one slot in an array, and swaps itself for
// what is there. If that is the id itself, it was here before: no false positive, but for two ids with the
// same slot and the same 64 other bits of their hash, which is one pair in 2^64 at most.
//
// It breaks Filter's promise: an id is forgotten when another one with the same slot comes, which may be
// the next one. Duplicates that follow soon after are found: with d new ids between, of a stream in which a
// share c of the ids is sent again so late, about e^(-(1 + c) d / slots) of them. (An id that took another's
// slot loses it to that one's copy, which comes before its own.) Time plays no part; an id may stay for ever.
//
// The size is FixedShareBytes. Thread safety: all methods may be called from several threads at once. Of
// several threads that test and insert one id that is not contained, one at least gets kUnique.
class Opposite final : public EachIdFilter<Opposite> {
 public:
  // ResourceExhausted if the memory is not there.
  static absl::StatusOr<std::unique_ptr<Opposite>> Create(const FilterOptions& options);

  void AdvanceTo(int64_t) override {}

  // N, t, m and k are 0, and so is the window, since nothing is promised; limit_hits counts the ids that
  // others took the slots of.
  FilterStatus Status() const override;

 private:
  friend class EachIdFilter<Opposite>;

  using Slots = std::unique_ptr<std::atomic<uint64_t>[]>;
  Opposite(double target_fpp, Reservation memory, uint64_t slot_count, Slots slots);

  std::atomic<uint64_t>& SlotOf(IdHash id) const { return slots_[ScaleDown(id.a, slot_count_)]; }
  // What stands for the id in its slot; 0 is an empty one. The low bits of `a`, which the slot does not
  // tell, take the place of those of `b` that all ids of a shard have in common.
  static uint64_t Word(IdHash id) { return (id.b ^ id.a << 1) != 0 ? id.b ^ id.a << 1 : 1; }

  // Relaxed everywhere: a verdict is about one word alone and publishes nothing else.
  bool ContainsId(IdHash id) const { return SlotOf(id).load(std::memory_order_relaxed) == Word(id); }
  void InsertId(IdHash id) { TestAndInsertId(id); }
  bool TestAndInsertId(IdHash id);
  void PrefetchId(IdHash id) const { __builtin_prefetch(&SlotOf(id), 1); }

  const double target_fpp_;
  Reservation memory_;
  const uint64_t slot_count_;
  const Slots slots_;
  std::atomic<int64_t> ids_{0};
  std::atomic<int64_t> displaced_{0};
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_BLOOM_OPPOSITE_H_
