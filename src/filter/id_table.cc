#include "src/filter/id_table.h"

#include <algorithm>
#include <new>

namespace lethe {

const uint8_t* IdTable::Find(uint64_t key) const {
  if (size_ == 0) return nullptr;
  for (uint64_t slot = Home(key); tags_[slot] != 0; slot = Next(slot)) {
    if (keys_[slot] == key) return &tags_[slot];
  }
  return nullptr;
}

void IdTable::Prefetch(uint64_t key) const {
  if (size_ == 0) return;
  const uint64_t slot = Home(key);
  __builtin_prefetch(&keys_[slot], 1);
  __builtin_prefetch(&tags_[slot], 1);
}

bool IdTable::Insert(uint64_t key, uint8_t tag) {
  if (IsFull() && !Resize(std::max(kFewestSlots, slots_ + slots_ / 2))) return false;
  Place(key, tag);
  ++size_;
  return true;
}

void IdTable::Place(uint64_t key, uint8_t tag) {
  uint64_t slot = Home(key);
  while (tags_[slot] != 0) slot = Next(slot);
  keys_[slot] = key;
  tags_[slot] = tag;
}

void IdTable::Remove(uint64_t slot) {
  const auto distance = [this](uint64_t from, uint64_t to) {
    return to >= from ? to - from : to + slots_ - from;
  };
  uint64_t hole = slot;
  for (uint64_t later = Next(hole); tags_[later] != 0; later = Next(later)) {
    // A key may move up to the hole unless it belongs behind it.
    if (distance(Home(keys_[later]), later) < distance(hole, later)) continue;
    keys_[hole] = keys_[later];
    tags_[hole] = tags_[later];
    hole = later;
  }
  tags_[hole] = 0;
  --size_;
}

bool IdTable::Reserve(int64_t keys) {
  const uint64_t wanted = static_cast<uint64_t>(keys) * 4 / 3 + 2;
  return wanted <= slots_ || Resize(std::max(kFewestSlots, wanted));
}

void IdTable::KeepOnly(const TagSet& tags) {
  TagSet kept = tags;
  kept.set(0);  // empty slots stay
  for (uint64_t slot = 0; slot < slots_; ++slot) {
    // What moves up to the slot is looked at in its turn.
    while (!kept[tags_[slot]]) Remove(slot);
  }
  if (size_ == 0 && slots_ > 0) {
    memory_.Shrink(memory_.bytes());
    keys_.reset();
    tags_.reset();
    slots_ = 0;
  } else if (4 * static_cast<uint64_t>(size_) < slots_ && slots_ > kFewestSlots) {
    Resize(std::max(kFewestSlots, 2 * static_cast<uint64_t>(size_)));
  }
}

bool IdTable::Resize(uint64_t slots) {
  const auto bytes = static_cast<int64_t>(slots) * kBytesPerSlot;
  if (!memory_.Grow(bytes)) return false;
  std::unique_ptr<uint64_t[]> keys(new (std::nothrow) uint64_t[slots]);
  std::unique_ptr<uint8_t[]> tags(new (std::nothrow) uint8_t[slots]());
  if (keys == nullptr || tags == nullptr) {
    memory_.Shrink(bytes);
    return false;
  }
  std::swap(keys_, keys);
  std::swap(tags_, tags);
  const uint64_t old_slots = std::exchange(slots_, slots);
  for (uint64_t slot = 0; slot < old_slots; ++slot) {
    if (tags[slot] != 0) Place(keys[slot], tags[slot]);
  }
  memory_.Shrink(static_cast<int64_t>(old_slots) * kBytesPerSlot);
  return true;
}

}  // namespace lethe
