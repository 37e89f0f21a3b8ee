#include "src/stage/pending_set.h"

#include <algorithm>

namespace lethe {
namespace {

// No stream time is this: they are bounded far below (StreamTime::kFarthestMs).
constexpr int64_t kForgotten = INT64_MAX;
constexpr size_t kFewestSlots = 64;

}  // namespace

bool PendingSet::Insert(const TimedId& timed) {
  if (2 * (entries_.size() + 1) > slots_.size()) Grow();
  Slot& slot = slots_[Find(timed.id)];
  if (InUse(slot) && entries_[slot.index].stream_time_ms != kForgotten) return false;
  // A forgotten id that comes again is a new one, in its new place in the order.
  slot = {.epoch = epoch_, .tag = Tag(timed.id), .index = static_cast<uint32_t>(entries_.size())};
  entries_.push_back(timed);
  return true;
}

bool PendingSet::Contains(IdHash id) const {
  if (slots_.empty()) return false;
  const Slot& slot = slots_[Find(id)];
  return InUse(slot) && entries_[slot.index].stream_time_ms != kForgotten;
}

bool PendingSet::Forget(IdHash id) {
  if (!Contains(id)) return false;
  entries_[slots_[Find(id)].index].stream_time_ms = kForgotten;
  ++forgotten_;
  return true;
}

void PendingSet::Clear() {
  entries_.clear();
  forgotten_ = 0;
  EmptyTable();
}

absl::Span<const TimedId> PendingSet::InOrder() {
  if (forgotten_ > 0) {
    // Indices shift, so the table is filled anew. Forgetting is rare: an event that cannot be written.
    std::erase_if(entries_, [](const TimedId& entry) { return entry.stream_time_ms == kForgotten; });
    forgotten_ = 0;
    EmptyTable();
    for (size_t i = 0; i < entries_.size(); ++i) {
      const IdHash id = entries_[i].id;
      slots_[Find(id)] = {.epoch = epoch_, .tag = Tag(id), .index = static_cast<uint32_t>(i)};
    }
  }
  return entries_;
}

void PendingSet::EmptyTable() {
  if (++epoch_ != 0) return;
  // Once in 65,535 times: slots of the first epochs must not come to life again.
  std::fill(slots_.begin(), slots_.end(), Slot{});
  epoch_ = 1;
}

size_t PendingSet::Find(IdHash id) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = id.a & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (!InUse(slot) || (slot.tag == Tag(id) && entries_[slot.index].id == id)) return i;
  }
}

void PendingSet::Grow() {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(std::max(kFewestSlots, 2 * old.size()), Slot{});
  for (const Slot& slot : old) {
    if (InUse(slot)) slots_[Find(entries_[slot.index].id)] = slot;
  }
}

}  // namespace lethe
