// What CompactTable does off the hot path. It is compiled for each processor with the filter
// (compact_filter_code.h).
#ifndef LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_
#define LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "src/filter/compact_table.h"

namespace lethe {

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::ReadAt(uint64_t index, const CompactSpan& span, Entries* entries) const {
  Processor::RunWhole([&, this ]() __attribute__((always_inline))->void {
    Line::Read(LineAt(index), FormatOf(index), span, entries);
  });
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::WriteAt(uint64_t index, const CompactSpan& span, const Entries& entries,
                                           uint64_t chosen, int more) {
  Processor::RunWhole([&, this ]() __attribute__((always_inline))->void {
    Line::Write(LineAt(index), FormatOf(index), span, entries, chosen, more);
  });
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Narrow(uint64_t index, const CompactSpan& span, uint64_t chosen, int more,
                                          Entries* entries) {
  const int level = LevelOf(index);
  const uint64_t field_mask = FormatOf(index).field_mask;
  const int most = level + FormatOf(index).known_bits();
  for (; chosen != 0; chosen &= chosen - 1) {
    const int i = __builtin_ctzll(chosen);
    const uint64_t field = entries->fields[i] >> more;
    if (field <= field_mask) continue;
    const int known = level + 63 - __builtin_clzll(field);
    entries->fields[i] = ((field | ~(field_mask >> 1)) & field_mask) << more;
    risen_[CompactPlaceOf(entries->EpochOf(span, i))] += Line::RateOfKnown(most) - Line::RateOfKnown(known);
  }
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Sweep(const CompactSpan& span, int64_t lines) {
  Entries entries;
  for (; lines > 0 && swept_lines_ < lines_; --lines) {
    const uint64_t index = swept_lines_;
    ReadAt(index, span, &entries);
    ++swept_lines_;
    Narrow(index, span, AllOf(entries), /*more=*/0, &entries);
    WriteAt(index, span, entries, AllOf(entries), /*more=*/0);
  }
  if (swept_lines_ >= lines_) EndSweep();
  CountSlots();
}

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::Split(const CompactSpan& span, int slots, int most) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->int {
    int made = 0;
    for (; made < most; ++made) {
      if (made > 0 && BeginsDoubling()) break;
      const int64_t needed = static_cast<int64_t>(lines_ + 1) * kCompactLineBytes;
      if (!HasMemoryFor(needed)) break;
      if (BeginsDoubling()) SetSplitSlots(slots);
      const uint64_t from = split_;
      const uint64_t to = lines_;
      const int known_bits = FormatOf(from).known_bits();
      Entries entries;
      uint64_t chosen[2];
      Divide(from, span, &entries, chosen);
      KeepForCopy(from);
      Resize(lines_ + 1);
      for (int high = 0; high < 2; ++high) {
        const uint64_t index = high == 0 ? from : to;
        // A bit of each entry is the line's now.
        if (FormatOf(index).known_bits() < known_bits - 1)
          Narrow(index, span, chosen[high], /*more=*/1, &entries);
        WriteAt(index, span, entries, chosen[high], /*more=*/1);
      }
    }
    if (made > 0) CountSlots();
    return made;
  });
}

// The entries of a line that is to be split, and which go to either of the two lines. Their fields' lowest
// bit says so.
template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Divide(uint64_t from, const CompactSpan& span, Entries* entries,
                                          uint64_t chosen[2]) {
  const int rooms[] = {slots_of_[from < swept_lines_ ? 1 : 0][1], slots_of_[0][1]};
  do {
    ReadAt(from, span, entries);
    uint64_t high = 0;
    uint64_t least = ~uint64_t{0};
    // No branch: the bit is random.
    for (int i = 0; i < entries->count; ++i) {
      high |= (entries->fields[i] & 1) << i;
      least = std::min(least, entries->fields[i]);
    }
    chosen[0] = AllOf(*entries) ^ high;
    chosen[1] = high;
    // An entry of which the bit is not known goes to both, so that it is found for either id.
    for (int i = 0; least == 1 && i < entries->count; ++i) {
      if (entries->fields[i] != 1) continue;
      entries->fields[i] = 2;
      chosen[0] |= uint64_t{1} << i;
    }
    if (std::popcount(chosen[0]) <= rooms[0] && std::popcount(chosen[1]) <= rooms[1]) return;
    // Nearly all of a full line go to a line of fewer slots.
  } while (MakeRoomIn(from, span));
  for (int high = 0; high < 2; ++high) DropOldest(*entries, span, rooms[high], &chosen[high]);
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::DropOldest(const Entries& entries, const CompactSpan& span, int most,
                                              uint64_t* chosen) {
  for (int surplus = std::popcount(*chosen) - most; surplus > 0; --surplus) {
    ++dropped_[CompactPlaceOf(entries.EpochOf(span, __builtin_ctzll(*chosen)))];
    has_dropped_ = true;
    *chosen &= *chosen - 1;
  }
}

// The entries of two lines in the order of their epochs, as those of one. Returns which were in the last.
template <typename Tag, typename Processor>
uint64_t CompactTable<Tag, Processor>::ReadBoth(uint64_t last, uint64_t into, const CompactSpan& span,
                                                Entries* merged) const {
  Entries of[2];
  ReadAt(into, span, &of[0]);
  ReadAt(last, span, &of[1]);
  int next[2] = {};
  uint64_t from_last = 0;
  merged->count = of[0].count + of[1].count;
  for (int i = 0; i < merged->count; ++i) {
    const bool is_last =
        next[0] == of[0].count || (next[1] < of[1].count && of[1].epochs[next[1]] < of[0].epochs[next[0]]);
    const Entries& line = of[is_last ? 1 : 0];
    const int entry = next[is_last ? 1 : 0]++;
    merged->fields[i] = line.fields[entry] << 1 | static_cast<uint64_t>(is_last);
    merged->epochs[i] = line.epochs[entry];
    merged->tags[i] = line.tags[entry];
    from_last |= static_cast<uint64_t>(is_last) << i;
  }
  return from_last;
}

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::Merge(const CompactSpan& span, int most, int64_t* work) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->int {
    int merged = 0;
    for (; *work > 0 && merged < most && lines_ > uint64_t{1} << kCompactLeastLevel; ++merged) {
      const uint64_t last = lines_ - 1;
      const uint64_t into = last - std::bit_floor(last);
      if (Line::Live(LineAt(last), span) + Line::Live(LineAt(into), span) == 0) {
        std::memset(LineAt(into), 0, kCompactLineBytes);
        Resize(last);
        --*work;
        continue;
      }
      Entries entries;
      const uint64_t from_last = ReadBoth(last, into, span, &entries);
      Resize(last);
      uint64_t chosen = AllOf(entries);
      // A line that is full at once would overflow with its next entry.
      const int wanted = FormatOf(into).slots - 1;
      const int moved = MoveAway(into, span, wanted, entries, &chosen);
      *work -= entries.count + kWorkOfMove * moved;
      if (std::popcount(chosen) > wanted) {
        // Back to two lines, without the moved entries.
        Resize(last + 1);
        WriteAt(into, span, entries, chosen & ~from_last, /*more=*/1);
        WriteAt(last, span, entries, chosen & from_last, /*more=*/1);
        break;
      }
      Narrow(into, span, chosen, /*more=*/0, &entries);
      WriteAt(into, span, entries, chosen, /*more=*/0);
    }
    CountSlots();
    return merged;
  });
}

// Moves chosen entries of a line to their other lines until `wanted` are left. Returns how many it moved.
template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::MoveAway(uint64_t from, const CompactSpan& span, int wanted,
                                           const Entries& entries, uint64_t* chosen) {
  const int most = std::popcount(*chosen) - wanted;
  if (most <= 0) return 0;
  struct Candidate {
    CompactEntry entry;
    uint64_t to;
    int at;
  };
  Candidate candidates[2 * Line::kMostSlots];
  int found = 0;
  for (uint64_t rest = *chosen; rest != 0; rest &= rest - 1) {
    Candidate& candidate = candidates[found];
    candidate.at = __builtin_ctzll(rest);
    candidate.entry =
        Line::EntryOf(entries.fields[candidate.at], entries.tags[candidate.at], LevelOf(from), from);
    found += ToOtherLine(&candidate.entry, &candidate.to) ? 1 : 0;
  }
  for (int i = 0; i < std::min(found, 2 * most); ++i) __builtin_prefetch(LineAt(candidates[i].to), 1);
  int moved = 0;
  for (int i = 0; i < found && moved < most; ++i) {
    Candidate& candidate = candidates[i];
    if (!HasRoom(candidate.to, span)) continue;
    candidate.entry.epoch = entries.EpochOf(span, candidate.at);
    MoveTo(candidate.to, candidate.entry, span);
    *chosen ^= uint64_t{1} << candidate.at;
    ++moved;
  }
  return moved;
}

// Converts an entry for its other line. False if not enough of its address is known.
template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::ToOtherLine(CompactEntry* entry, uint64_t* index) const {
  entry->address ^= Turn(static_cast<Tag>(entry->tag));
  *index = IndexOf(entry->address);
  return LevelOf(*index) <= entry->known;
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::InsertInOrder(uint64_t index, const CompactEntry& entry,
                                                 const CompactSpan& span) {
  Processor::RunWhole([&, this ]() __attribute__((always_inline))->void {
    Line::Insert(LineAt(index), FormatOf(index), LevelOf(index), span, entry);
  });
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::MoveTo(uint64_t index, const CompactEntry& entry,
                                          const CompactSpan& span) {
  NoteRise(entry, index);
  InsertInOrder(index, entry, span);
}

// Makes room in a full line by moving entries to their other lines. Lines that are split in this round are
// tried first, since they have room more often, and take two entries: a line that is not split will soon be
// full again, and the misses of the cache overlap. The oldest entries are the cheapest to take out and to put
// in.
template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::MakeRoomIn(uint64_t index, const CompactSpan& span) {
  return MoveSomeTo</*kSplitLines=*/true>(index, span) || MoveSomeTo</*kSplitLines=*/false>(index, span);
}

template <typename Tag, typename Processor>
template <bool kSplitLines>
bool CompactTable<Tag, Processor>::MoveSomeTo(uint64_t index, const CompactSpan& span) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->bool {
    constexpr size_t kPrefetched = 4;
    constexpr int kMostMoved = kSplitLines ? 2 : 1;
    struct Candidate {
      CompactEntry entry;
      uint64_t to;
      int at;
      uint64_t one;
    };
    uint8_t* const line = LineAt(index);
    const CompactFormat& format = FormatOf(index);
    const int level = LevelOf(index);
    CompactMeta meta = Line::MetaOf(line);
    Line::Renew(format, span, &meta);
    std::array<Candidate, kPrefetched> candidates;
    int at = 0;
    for (uint64_t rest = meta.mask; rest != 0;) {
      size_t found = 0;
      // No branch: which entries may move is random.
      for (; rest != 0 && found < kPrefetched; ++at, rest &= rest - 1) {
        Candidate& candidate = candidates[found];
        candidate.entry = Line::EntryAt(line, format, level, index, Line::SlotOf(format, meta, at));
        const bool is_known = ToOtherLine(&candidate.entry, &candidate.to);
        candidate.at = at;
        candidate.one = rest & -rest;
        found += static_cast<size_t>(is_known & (IsSplit(candidate.to) == kSplitLines));
      }
      for (size_t i = 0; i < found; ++i) __builtin_prefetch(LineAt(candidates[i].to), 1);
      int moved = 0;
      // From the newest, so that those before stay where they are.
      for (size_t i = found; i-- > 0 && moved < kMostMoved;) {
        Candidate& candidate = candidates[i];
        if (!HasRoom(candidate.to, span)) continue;
        if (moved == 0) KeepForCopy(index);
        candidate.entry.epoch = Line::EpochOf(span, candidate.at, candidate.one);
        MoveTo(candidate.to, candidate.entry, span);
        Line::Remove(line, format, meta, candidate.at, candidate.one);
        meta = Line::MetaOf(line);
        ++moved;
      }
      if (moved > 0) return true;
    }
    return false;
  });
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::Squeeze(IdHash id, const CompactSpan& span) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->bool {
    const Tag tag = Line::TagOf(id.b);
    for (const uint64_t address : {id.a, id.a ^ Turn(tag)}) {
      const uint64_t index = IndexOf(address);
      if (!HasRoom(index, span) && !MakeRoomIn(index, span)) continue;
      const CompactPlace place = PlaceOf(address);
      Line::Append(place.line, *place.format, Line::MetaWord(place.line), span, Line::Live(place.line, span),
                   Line::Dead(place.line, span), place.address_bits, tag);
      return true;
    }
    if (stashed_ == kMostStashed) return false;
    stash_[static_cast<size_t>(stashed_++)] = {.address = id.a, .epoch = span.newest, .tag = tag};
    return true;
  });
}

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::FindStashed(IdHash id, const CompactSpan& span) const {
  for (int i = 0; i < stashed_; ++i) {
    const Stashed& stashed = stash_[static_cast<size_t>(i)];
    if (stashed.address == id.a && stashed.tag == Line::TagOf(id.b) && stashed.epoch >= span.oldest) return i;
  }
  return -1;
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::Unstash(const Stashed& id, const CompactSpan& span) {
  for (const uint64_t address : {id.address, id.address ^ Turn(id.tag)}) {
    const uint64_t index = IndexOf(address);
    if (!HasRoom(index, span) && !MakeRoomIn(index, span)) continue;
    InsertInOrder(index, {address, id.epoch, /*known=*/64, id.tag}, span);
    return true;
  }
  return false;
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::DrainStash(const CompactSpan& span) {
  constexpr int kAtOnce = 4;
  for (int i = 0; i < kAtOnce && stashed_ > 0; ++i) {
    next_stashed_ = (next_stashed_ + 1) % stashed_;
    Stashed& stashed = stash_[static_cast<size_t>(next_stashed_)];
    if (stashed.epoch < span.oldest || Unstash(stashed, span)) {
      stashed = stash_[static_cast<size_t>(--stashed_)];
    }
  }
}

template <typename Tag, typename Processor>
typename CompactTable<Tag, Processor>::Renewal CompactTable<Tag, Processor>::Renew(IdHash id,
                                                                                   const CompactSpan& span,
                                                                                   int64_t* epoch) {
  if (const int at = FindStashed(id, span); at >= 0) {
    Stashed& stashed = stash_[static_cast<size_t>(at)];
    *epoch = stashed.epoch;
    if (stashed.epoch == span.newest) return Renewal::kIsNewest;
    stashed.epoch = span.newest;
    return Renewal::kMoved;
  }
  return Processor::RunWhole([&, this ]() __attribute__((always_inline)) {
    const Tag tag = Line::TagOf(id.b);
    for (const uint64_t address : {id.a, id.a ^ Turn(tag)}) {
      const Renewal renewal = RenewIn(address, tag, span, epoch);
      if (renewal != Renewal::kNone) return renewal;
    }
    return Renewal::kNone;
  });
}

template <typename Tag, typename Processor>
typename CompactTable<Tag, Processor>::Renewal CompactTable<Tag, Processor>::RenewIn(uint64_t address,
                                                                                     Tag tag,
                                                                                     const CompactSpan& span,
                                                                                     int64_t* epoch) {
  const uint64_t index = IndexOf(address);
  const int level = LevelOf(index);
  Entries entries;
  ReadAt(index, span, &entries);
  // The newest are the last.
  for (int i = entries.count - 1; i >= 0; --i) {
    if (entries.tags[i] != tag) continue;
    CompactEntry entry = Line::EntryOf(entries.fields[i], tag, level, index);
    const uint64_t differing = entry.address ^ address;
    const bool is_equal = entry.known >= 64 ? differing == 0 : differing << (64 - entry.known) == 0;
    if (!is_equal) continue;
    *epoch = entries.EpochOf(span, i);
    if (*epoch == span.newest) return Renewal::kIsNewest;
    KeepForCopy(index);
    entry.epoch = span.newest;
    WriteAt(index, span, entries, AllOf(entries) ^ uint64_t{1} << i, /*more=*/0);
    InsertInOrder(index, entry, span);
    return Renewal::kMoved;
  }
  return Renewal::kNone;
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::SweepStamps(const CompactSpan& span) {
  risen_[CompactPlaceOf(span.newest)] = 0;
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->void {
    for (uint64_t left = lines_ / (Line::kStamps / 4) + 1; left > 0; --left) {
      if (++swept_ >= lines_) swept_ = 0;
      Line::Renew(LineAt(swept_), FormatOf(swept_), span);
    }
  });
}

// All entries of the mask are looked at, also those of epochs that are dead now: stamps come round.
template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::IsSound(uint64_t index) const {
  const CompactFormat& format = FormatOf(index);
  const uint8_t* const line = LineAt(index);
  const CompactMeta meta = Line::MetaOf(line);
  const int entries = std::popcount(meta.mask);
  if (entries > format.slots || meta.head >= format.slots) return false;
  if (static_cast<int>(std::bit_width(meta.mask)) > Line::kEpochsBefore + entries) return false;
  for (int i = 0; i < entries; ++i) {
    const int slot = (static_cast<int>(meta.head) + i) % format.slots;
    const uint64_t field = Line::GetField(line, format, slot);
    if (field == 0 || LevelOf(index) + static_cast<int>(std::bit_width(field)) - 1 > 64) return false;
  }
  return true;
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::CheckLines(const CompactSpan& span, CompactHeld* held) const {
  *held = CompactHeld();
  Entries entries;
  for (uint64_t index = 0; index < lines_; ++index) {
    if (!IsSound(index)) return false;
    ReadAt(index, span, &entries);
    for (int i = 0; i < entries.count; ++i) {
      const int64_t epoch = entries.EpochOf(span, i);
      const int known = LevelOf(index) + 63 - std::countl_zero(entries.fields[i]);
      held->ids_of_newest += epoch == span.newest ? 1 : 0;
      held->fpp[static_cast<size_t>(epoch - span.oldest)] += std::ldexp(1.0, 1 - known - Line::kTagBits);
    }
  }
  for (int i = 0; i < stashed_; ++i) {
    held->ids_of_newest += stash_[static_cast<size_t>(i)].epoch == span.newest ? 1 : 0;
  }
  return true;
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_
