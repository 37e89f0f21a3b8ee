// A hash table of ids, exact to 64 bits, with a tag for each.
#ifndef LETHE_SRC_FILTER_ID_TABLE_H_
#define LETHE_SRC_FILTER_ID_TABLE_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "lethe/memory_budget.h"
#include "src/filter/bit_positions.h"
#include "src/filter/reservation.h"

namespace lethe {

// Open addressing with linear probing, in two arrays (9 bytes a slot), for keys that are hashes already.
// Grows by half when three quarters full, shrinks when a quarter full; while it does either, both tables
// are in memory, and in the budget. What is large is better divided among many (id_tables.h), since whoever
// meets one of its passes waits for all of it.
//
// Invariant: from the slot where a key belongs to the one where it is, no slot is empty; so a removal moves
// later keys up, and there are no tombstones. Thread safety: none; const methods may run together.
class IdTable {
 public:
  using TagSet = std::bitset<256>;

  // The budget outlives the table. Takes no memory before the first insertion.
  explicit IdTable(MemoryBudget* budget) : memory_(budget) {}

  // The tag of a key, which may be changed to any other but 0; nullptr if the key is not there.
  uint8_t* Find(uint64_t key) { return const_cast<uint8_t*>(std::as_const(*this).Find(key)); }
  const uint8_t* Find(uint64_t key) const;
  void Prefetch(uint64_t key) const;

  // Adds a key that is not there. False, and nothing has changed, if there is no room and no memory.
  bool Insert(uint64_t key, uint8_t tag);

  // Removes all keys whose tag is not in the set, and gives back what is too much memory.
  void KeepOnly(const TagSet& tags);

  // Makes room for so many keys in all. False, and nothing has changed, if there is no memory.
  bool Reserve(int64_t keys);

  // Whether the next insertion makes it grow.
  bool IsFull() const { return 4 * static_cast<uint64_t>(size_ + 1) > 3 * slots_; }
  uint64_t slots() const { return slots_; }

  // Calls visit(key, tag) for each key.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (uint64_t slot = 0; slot < slots_; ++slot) {
      if (tags_[slot] != 0) visit(keys_[slot], tags_[slot]);
    }
  }

  int64_t size() const { return size_; }
  int64_t memory_bytes() const { return memory_.bytes(); }

 private:
  static constexpr int64_t kBytesPerSlot = sizeof(uint64_t) + sizeof(uint8_t);
  static constexpr uint64_t kFewestSlots = 64;

  uint64_t Home(uint64_t key) const { return ScaleDown(key, slots_); }
  uint64_t Next(uint64_t slot) const { return slot + 1 == slots_ ? 0 : slot + 1; }
  void Place(uint64_t key, uint8_t tag);
  void Remove(uint64_t slot);
  bool Resize(uint64_t slots);

  Reservation memory_;
  uint64_t slots_ = 0;
  int64_t size_ = 0;
  std::unique_ptr<uint64_t[]> keys_;
  std::unique_ptr<uint8_t[]> tags_;  // 0: the slot is empty
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_ID_TABLE_H_
