#include "src/reconcile/lookup_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/reconcile/mix.h"

namespace lethe {

static_assert(std::endian::native == std::endian::little, "cells are sent as they are in memory");

uint64_t LookupTable::CellsFor(double difference) {
  // With four cells a key, large tables list differences up to 0.772 of their cells; small ones vary more.
  return static_cast<uint64_t>(std::ceil(1.36 * difference + 6 * std::sqrt(difference) + 24));
}

LookupTable::LookupTable(uint64_t cells, uint64_t seed)
    : seed_(seed),
      cells_(std::max<size_t>((static_cast<size_t>(cells) + kHashes - 1) / kHashes, 1) * kHashes) {
  static_assert(sizeof(Cell) == kCellBytes);
}

uint32_t LookupTable::CheckOf(uint64_t key) const { return static_cast<uint32_t>(Mix(key ^ ~seed_) >> 32); }

size_t LookupTable::Place(uint64_t key, size_t i) const {
  const size_t quarter = cells_.size() / kHashes;
  return i * quarter + static_cast<size_t>(Mix(key ^ Mix(seed_ + i)) % quarter);
}

void LookupTable::Change(uint64_t key, uint32_t by) {
  const uint32_t check = CheckOf(key);
  for (size_t i = 0; i < kHashes; ++i) {
    Cell& cell = cells_[Place(key, i)];
    cell.keys ^= key;
    cell.checks ^= check;
    cell.count += by;
  }
}

bool LookupTable::IsPure(const Cell& cell) const {
  return (cell.count == 1 || cell.count == UINT32_MAX) && cell.checks == CheckOf(cell.keys);
}

std::optional<LookupTable::Difference> LookupTable::Subtract(absl::string_view bytes) {
  if (bytes.size() != cells_.size() * kCellBytes) return std::nullopt;
  for (size_t i = 0; i < cells_.size(); ++i) {
    Cell other;
    std::memcpy(&other, bytes.data() + i * kCellBytes, kCellBytes);
    cells_[i].keys ^= other.keys;
    cells_[i].checks ^= other.checks;
    cells_[i].count -= other.count;
  }
  std::vector<size_t> pure;
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (IsPure(cells_[i])) pure.push_back(i);
  }
  Difference difference;
  // A table that was made to deceive might be listed for ever.
  size_t left = 8 * cells_.size();
  for (; !pure.empty() && left > 0; --left) {
    const Cell cell = cells_[pure.back()];
    pure.pop_back();
    if (!IsPure(cell)) continue;
    (cell.count == 1 ? difference.only_here : difference.only_there).push_back(cell.keys);
    Change(cell.keys, 0 - cell.count);
    for (size_t i = 0; i < kHashes; ++i) {
      const size_t place = Place(cell.keys, i);
      if (IsPure(cells_[place])) pure.push_back(place);
    }
  }
  const bool is_empty = std::all_of(cells_.begin(), cells_.end(), [](const Cell& cell) {
    return cell.keys == 0 && cell.checks == 0 && cell.count == 0;
  });
  if (!is_empty) return std::nullopt;
  return difference;
}

std::string LookupTable::ToBytes() const {
  return {reinterpret_cast<const char*>(cells_.data()), cells_.size() * kCellBytes};
}

}  // namespace lethe
