// The ids that were passed in an open transaction: exact, and forgotten at once when it ends.
#ifndef LETHE_SRC_STAGE_PENDING_SET_H_
#define LETHE_SRC_STAGE_PENDING_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/filter.h"

namespace lethe {

// A set of ids in the order in which they were inserted, with the stream time of each: an array of the
// ids, and an open-addressed table of indices into it. A slot belongs to the present content if it bears
// the present epoch, so Clear() does not touch the table; memory is kept, and once the set has seen its
// largest transaction it does not allocate.
//
// Invariant: every entry that was not forgotten is found by exactly one slot of the present epoch, and the
// table is at most half full. Thread-compatible.
class PendingSet {
 public:
  // False, and no change, if the id is in the set.
  bool Insert(const TimedId& timed);
  bool Contains(IdHash id) const;
  // True if the id was in the set.
  bool Forget(IdHash id);
  void Clear();

  // The ids that were inserted and not forgotten, in the order of insertion. Valid until the next change.
  absl::Span<const TimedId> InOrder();

  size_t size() const { return entries_.size() - forgotten_; }
  // An upper bound of the bytes that the present content needs: memory kept from a larger transaction is
  // not counted, so a caller who ends the transaction at a limit starts below it again.
  int64_t bytes() const { return static_cast<int64_t>(entries_.size()) * kBytesPerId; }

  // An entry in an array that doubles, and four slots in a table that doubles when it is half full.
  static constexpr int64_t kBytesPerId = 2 * 24 + 4 * 8;

 private:
  struct Slot {
    uint16_t epoch = 0;  // 0: never used
    uint16_t tag = 0;    // bits of the hash, so that an unlike id is told apart without its entry
    uint32_t index = 0;  // into entries_; more would be 96 GB of ids
  };
  static_assert(sizeof(Slot) == 8 && sizeof(TimedId) == 24);

  static uint16_t Tag(IdHash id) { return static_cast<uint16_t>(id.b >> 48); }
  // The slot of the id, or the free slot where it would go.
  size_t Find(IdHash id) const;
  bool InUse(const Slot& slot) const { return slot.epoch == epoch_; }
  void Grow();
  void EmptyTable();

  std::vector<TimedId> entries_;  // a forgotten one has the time kForgotten until InOrder() removes it
  std::vector<Slot> slots_;       // a power of two of them, or none yet
  size_t forgotten_ = 0;
  uint16_t epoch_ = 1;
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_PENDING_SET_H_
