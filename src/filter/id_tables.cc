#include "src/filter/id_tables.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace lethe {

bool IdTables::Insert(uint64_t key, uint8_t tag) {
  if (tables_.empty()) {
    if (!HasRoomForOne(0)) return false;
    tables_.push_back({IdTable(budget_), 0});
    directory_.assign(1, 0);
  }
  if (Of(key).IsFull() && Of(key).slots() >= kMostSlots && !Divide(key)) return false;
  IdTable& table = Of(key);
  const int64_t bytes = table.memory_bytes();
  if (table.IsFull()) slots_passed_ += table.slots();
  if (!table.Insert(key, tag)) return false;
  table_bytes_ += table.memory_bytes() - bytes;
  ++size_;
  return true;
}

// Takes the memory for one table more of that depth in tables_ and directory_, and makes the directory as
// large as that.
bool IdTables::HasRoomForOne(int depth) {
  const auto bytes = [](size_t tables, size_t places) {
    return static_cast<int64_t>(tables * sizeof(Part) + places * sizeof(uint32_t));
  };
  const size_t tables = std::max(tables_.capacity(), std::bit_ceil(tables_.size() + 1));
  const size_t places = std::max(directory_.size(), size_t{1} << depth);
  if (!own_.Grow(bytes(tables, places) - own_.bytes())) return false;
  try {
    tables_.reserve(tables);
    directory_.reserve(places);
  } catch (const std::bad_alloc&) {
    return false;  // what was taken from the budget is for the next try
  }
  while (!directory_.empty() && directory_.size() < places) {
    const size_t half = directory_.size();
    directory_.resize(2 * half);
    std::copy_n(directory_.begin(), half, directory_.begin() + static_cast<std::ptrdiff_t>(half));
  }
  return true;
}

// Divides the table of a key in two. False, and nothing has changed but for room, if there is no memory; true
// also if it should rather grow.
bool IdTables::Divide(uint64_t key) {
  const uint32_t old_place = directory_[Place(key)];
  const int depth = tables_[old_place].depth;
  if (depth >= kMostSkew + static_cast<int>(std::bit_width(tables_.size()))) return true;
  const uint64_t bit = uint64_t{1} << depth;
  int64_t sizes[2] = {0, 0};
  const IdTable& old = tables_[old_place].table;
  old.ForEach([&](uint64_t k, uint8_t) { ++sizes[(k & bit) != 0 ? 1 : 0]; });
  IdTable low(budget_);
  IdTable high(budget_);
  // Half as many again, as when one grows.
  if (!HasRoomForOne(depth + 1) || !low.Reserve(sizes[0] + sizes[0] / 2) ||
      !high.Reserve(sizes[1] + sizes[1] / 2)) {
    return false;
  }
  tables_[old_place].table.ForEach(
      [&](uint64_t k, uint8_t tag) { ((k & bit) != 0 ? high : low).Insert(k, tag); });
  slots_passed_ += 2 * tables_[old_place].table.slots();
  table_bytes_ += low.memory_bytes() + high.memory_bytes() - tables_[old_place].table.memory_bytes();
  tables_[old_place] = {std::move(low), depth + 1};
  const auto new_place = static_cast<uint32_t>(tables_.size());
  tables_.push_back({std::move(high), depth + 1});
  for (uint64_t place = (key & (bit - 1)) | bit; place < directory_.size(); place += 2 * bit) {
    directory_[place] = new_place;
  }
  return true;
}

void IdTables::SweepNext(const IdTable::TagSet& kept) {
  if (tables_.empty()) return;
  if (next_ >= tables_.size()) next_ = 0;
  Sweep(&tables_[next_++].table, kept);
  if (size_ > 0) return;
  next_ = 0;
  table_bytes_ = 0;
  std::vector<Part>().swap(tables_);
  std::vector<uint32_t>().swap(directory_);
  own_.Shrink(own_.bytes());
}

bool IdTables::SweepAt(uint64_t key, const IdTable::TagSet& kept) {
  if (tables_.empty()) return false;
  const int64_t before = size_;
  Sweep(&Of(key), kept);
  return size_ < before;
}

void IdTables::Sweep(IdTable* table, const IdTable::TagSet& kept) {
  slots_passed_ += table->slots();
  size_ -= table->size();
  table_bytes_ -= table->memory_bytes();
  table->KeepOnly(kept);
  size_ += table->size();
  table_bytes_ += table->memory_bytes();
}

}  // namespace lethe
