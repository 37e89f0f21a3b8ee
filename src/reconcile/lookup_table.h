// An invertible Bloom lookup table (Goodrich and Mitzenmacher, 2011): the difference of two sets can be read
// from the difference of their tables, in bytes that follow the difference and not the sets.
#ifndef LETHE_SRC_RECONCILE_LOOKUP_TABLE_H_
#define LETHE_SRC_RECONCILE_LOOKUP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lethe {

// Both peers' tables must have the same number of cells and the same seed. Thread safety: none.
class LookupTable {
 public:
  static constexpr size_t kCellBytes = 16;

  // Cells for a difference of so many keys. Listing it fails at most once in a thousand times
  // (LookupTableTest.ListsTheDifferenceItWasSizedFor).
  static uint64_t CellsFor(double difference);

  // At least kHashes cells; rounded up to a multiple of kHashes.
  LookupTable(uint64_t cells, uint64_t seed);

  void Insert(uint64_t key) { Change(key, 1); }

  struct Difference {
    std::vector<uint64_t> only_here;
    std::vector<uint64_t> only_there;
  };
  // The difference to the table with these ToBytes(). nullopt if it is too large for the cells, or the bytes
  // are not of such a table. Uses up the table.
  std::optional<Difference> Subtract(absl::string_view bytes);

  // Little-endian; for each cell the keys XOR-ed (8 bytes), their checks XOR-ed (4), their number (4).
  std::string ToBytes() const;

 private:
  static constexpr size_t kHashes = 4;
  struct Cell {
    uint64_t keys = 0;
    uint32_t checks = 0;
    uint32_t count = 0;  // modulo 2^32
  };

  void Change(uint64_t key, uint32_t by);
  uint32_t CheckOf(uint64_t key) const;
  // The i-th cell of a key lies in the i-th quarter, so that its cells differ.
  size_t Place(uint64_t key, size_t i) const;
  bool IsPure(const Cell& cell) const;

  const uint64_t seed_;
  std::vector<Cell> cells_;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECONCILE_LOOKUP_TABLE_H_
