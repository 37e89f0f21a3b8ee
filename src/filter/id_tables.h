// A hash table of ids of any size, of which no call has to go through more than a small part.
#ifndef LETHE_SRC_FILTER_ID_TABLES_H_
#define LETHE_SRC_FILTER_ID_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lethe/memory_budget.h"
#include "src/filter/id_table.h"
#include "src/filter/reservation.h"

namespace lethe {

// Extendible hashing (Fagin, Nievergelt, Pippenger and Strong, 1979): many tables, and a directory that says
// by the low bits of a key in which one it is. A table that would grow beyond kMostSlots is divided in two,
// by one more bit; the directory is doubled where it lacks that bit. So growing, and each step of a sweep,
// goes through one table, and there is never a second copy of more than that. Tables shrink, each by itself,
// but are never joined: a kilobyte at most of each that there were remains, until all are empty.
//
// Invariant: directory_[i] is the table of all keys whose low bits are i; a table of depth d has the keys
// that agree in the low d bits, and is at all places of the directory that agree in them. Thread safety:
// none; const methods may run together.
class IdTables {
 public:
  // The budget outlives it. Takes no memory before the first insertion.
  explicit IdTables(MemoryBudget* budget) : budget_(budget), own_(budget) {}

  // As IdTable's. A false Insert may be for want of room in one table, where others have some. What the
  // system has no memory for is as what the budget has none for.
  uint8_t* Find(uint64_t key) { return tables_.empty() ? nullptr : Of(key).Find(key); }
  const uint8_t* Find(uint64_t key) const { return tables_.empty() ? nullptr : Of(key).Find(key); }
  void Prefetch(uint64_t key) const {
    if (!tables_.empty()) Of(key).Prefetch(key);
  }
  bool Insert(uint64_t key, uint8_t tag);

  // Removes from the next table, in turn, the keys whose tag is not in the set. So as many calls as there are
  // tables have seen all keys that were there before the first of them.
  void SweepNext(const IdTable::TagSet& kept);
  // The same in the table where a key belongs. True if that has removed any.
  bool SweepAt(uint64_t key, const IdTable::TagSet& kept);

  size_t tables() const { return tables_.size(); }
  int64_t size() const { return size_; }
  int64_t memory_bytes() const { return own_.bytes() + table_bytes_; }
  // All slots that were gone through so far, in sweeps and to grow.
  uint64_t slots_passed() const { return slots_passed_; }

  // A table of so many slots is divided rather than grow: it takes a tenth of a millisecond or so to go
  // through it.
  static constexpr uint64_t kMostSlots = 12'000;

 private:
  struct Part {
    IdTable table;
    int depth;
  };
  // A table that is so many bits deeper than it takes to tell all of them apart has keys that are no hashes,
  // and grows instead.
  static constexpr int kMostSkew = 6;

  size_t Place(uint64_t key) const { return static_cast<size_t>(key) & (directory_.size() - 1); }
  IdTable& Of(uint64_t key) { return tables_[directory_[Place(key)]].table; }
  const IdTable& Of(uint64_t key) const { return tables_[directory_[Place(key)]].table; }

  bool Divide(uint64_t key);
  bool HasRoomForOne(int depth);
  void Sweep(IdTable* table, const IdTable::TagSet& kept);

  MemoryBudget* budget_;
  Reservation own_;  // of tables_ and directory_
  std::vector<Part> tables_;
  std::vector<uint32_t> directory_;
  int64_t size_ = 0;
  int64_t table_bytes_ = 0;
  size_t next_ = 0;  // to sweep
  uint64_t slots_passed_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_ID_TABLES_H_
