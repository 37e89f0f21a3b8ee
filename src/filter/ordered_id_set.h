// An exact set of ids that remembers their order, and forgets all of them at once without a sweep.
#ifndef LETHE_SRC_FILTER_ORDERED_ID_SET_H_
#define LETHE_SRC_FILTER_ORDERED_ID_SET_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lethe/event.h"
#include "src/assertion.h"

namespace lethe {

// Entries have `IdHash id` and `int64_t stream_time_ms`, which is never kForgotten (stream times are
// bounded far below). They are in an array, in the order of insertion; an open-addressed table of indices
// finds them. A slot belongs to the present content if it bears the present epoch, so Clear() does not
// touch the table; memory is kept, and once the set has been at its largest it does not allocate.
//
// Insert and Reserve throw std::bad_alloc if the system has no memory, and then change nothing. Nothing else
// allocates.
//
// Invariant: every entry that was not forgotten is found by exactly one slot of the present epoch, and the
// table is at most half full. Thread-compatible.
template <typename Entry>
class OrderedIdSet {
 public:
  // An upper bound of what an entry takes: itself, in an array that doubles, and four slots in a table
  // that doubles when it is half full.
  static constexpr int64_t kBytesPerId = 2 * sizeof(Entry) + 4 * sizeof(uint64_t);

  // False, and no change, if the id is in the set.
  bool Insert(const Entry& entry) {
    if (2 * (entries_.size() + 1) > slots_.size()) MoveTo(Slots(SlotsFor(2 * slots_.size())));
    Slot& slot = slots_[SlotOf(entry.id)];
    if (InUse(slot) && !IsForgotten(entries_[slot.index])) return false;
    entries_.push_back(entry);
    // A forgotten id that comes again is a new one, in its new place in the order.
    slot = SlotFor(entry.id, entries_.size() - 1);
    LETHE_DEBUG_ASSERT(2 * entries_.size() <= slots_.size());
    return true;
  }

  // Asks for the memory that Insert, Find and Forget read first. Forced inline: GCC 12 takes a function that
  // only prefetches for pure, and drops its calls.
  [[gnu::always_inline]] void Prefetch(IdHash id) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[id.a & (slots_.size() - 1)], 1);
  }

  // The id's entry, or null. Valid until the next change.
  const Entry* Find(IdHash id) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[SlotOf(id)];
    return InUse(slot) && !IsForgotten(entries_[slot.index]) ? &entries_[slot.index] : nullptr;
  }

  // True if the id was in the set.
  bool Forget(IdHash id) {
    const Entry* const entry = Find(id);
    if (entry == nullptr) return false;
    entries_[static_cast<size_t>(entry - entries_.data())].stream_time_ms = kForgotten;
    ++forgotten_;
    return true;
  }

  // Keeps the entries for which keep(entry).
  template <typename Keep>
  void KeepIf(Keep keep) {
    std::erase_if(entries_, [&](const Entry& entry) { return IsForgotten(entry) || !keep(entry); });
    forgotten_ = 0;
    EmptyTable();
    for (size_t i = 0; i < entries_.size(); ++i) {
      Slot& slot = slots_[SlotOf(entries_[i].id)];
      LETHE_DEBUG_ASSERT(!InUse(slot));
      slot = SlotFor(entries_[i].id, i);
    }
  }

  void Clear() {
    entries_.clear();
    forgotten_ = 0;
    EmptyTable();
  }

  // The entries in the order of insertion. Valid until the next change.
  absl::Span<const Entry> InOrder() {
    if (forgotten_ > 0) KeepIf([](const Entry&) { return true; });
    return entries_;
  }

  // All places in their order; skip those with IsForgotten().
  absl::Span<const Entry> places_in_order() const { return entries_; }
  static bool IsForgotten(const Entry& entry) { return entry.stream_time_ms == kForgotten; }

  size_t size() const { return entries_.size() - forgotten_; }
  // Entries and the places of forgotten ones: what counts towards capacity.
  size_t places() const { return entries_.size(); }
  // An upper bound of the bytes that the present content needs: memory kept from a larger one is not
  // counted, so a caller who clears the set at a limit starts below it again.
  int64_t bytes() const { return static_cast<int64_t>(entries_.size()) * kBytesPerId; }

  // Room for `capacity` places, a power of two, in BytesFor(capacity), without allocation up to there.
  void Reserve(size_t capacity) {
    Slots slots(SlotsFor(2 * capacity));
    entries_.reserve(capacity);
    MoveTo(std::move(slots));
  }
  static int64_t BytesFor(size_t capacity) {
    return static_cast<int64_t>(capacity * (sizeof(Entry) + 2 * sizeof(Slot)));
  }

 private:
  static constexpr int64_t kForgotten = INT64_MAX;
  static constexpr size_t kFewestSlots = 64;

  struct Slot {
    uint16_t epoch = 0;  // 0: never used
    uint16_t tag = 0;    // bits of the hash: most other ids are recognized without their entries
    uint32_t index = 0;  // into entries_; more would be 96 GB of ids
  };
  static_assert(sizeof(Slot) == 8);
  using Slots = std::vector<Slot>;

  static uint16_t Tag(IdHash id) { return static_cast<uint16_t>(id.b >> 48); }
  bool InUse(const Slot& slot) const { return slot.epoch == epoch_; }
  Slot SlotFor(IdHash id, size_t index) const {
    return {.epoch = epoch_, .tag = Tag(id), .index = static_cast<uint32_t>(index)};
  }

  // The slot of the id, or the free slot where it would go.
  size_t SlotOf(IdHash id) const {
    const size_t mask = slots_.size() - 1;
    for (size_t i = id.a & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (!InUse(slot) || (slot.tag == Tag(id) && entries_[slot.index].id == id)) return i;
    }
  }

  size_t SlotsFor(size_t slots) const {
    return std::max({kFewestSlots, slots_.size(), std::bit_ceil(slots)});
  }

  void MoveTo(Slots empty) {
    slots_.swap(empty);
    for (const Slot& slot : empty) {
      if (InUse(slot)) slots_[SlotOf(entries_[slot.index].id)] = slot;
    }
  }

  void EmptyTable() {
    if (++epoch_ != 0) return;
    // Once in 65,535 times: slots of the first epochs must not come to life again.
    std::fill(slots_.begin(), slots_.end(), Slot{});
    epoch_ = 1;
  }

  std::vector<Entry> entries_;  // forgotten ones are removed by KeepIf()
  Slots slots_;                 // a power of two of them, or none yet
  size_t forgotten_ = 0;
  uint16_t epoch_ = 1;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_ORDERED_ID_SET_H_
