// What CompactTable does off the hot path. It is compiled for each processor with the filter
// (compact_filter_code.h).
#ifndef LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_
#define LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "src/filter/compact_table.h"

namespace lethe {

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::UnpackAt(uint64_t index, const CompactSpan& span,
                                           CompactEntry* entries) const {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->int {
    return Line::Unpack(LineAt(index), FormatOf(index), LevelOf(index), index, span, entries);
  });
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::PackAt(uint64_t index, const CompactSpan& span,
                                          const CompactEntry* entries, int count) {
  Processor::RunWhole([&, this ]() __attribute__((always_inline))->void {
    Line::Pack(LineAt(index), FormatOf(index), LevelOf(index), span, entries, count);
  });
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Sweep(const CompactSpan& span, int64_t lines) {
  Processor::RunWhole([&, this ]() __attribute__((always_inline)) {
    CompactEntry entries[Line::kMostSlots];
    for (; lines > 0 && swept_lines_ < lines_; --lines) {
      const uint64_t index = swept_lines_;
      const int count = UnpackAt(index, span, entries);
      ++swept_lines_;
      NoteRises(entries, count, index);
      PackAt(index, span, entries, count);
    }
    if (swept_lines_ >= lines_) EndSweep();
    CountSlots();
  });
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::Split(const CompactSpan& span, int slots) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->bool {
    const int64_t needed = static_cast<int64_t>(lines_ + 1) * kCompactLineBytes;
    if (!HasMemoryFor(needed)) return false;
    if (BeginsDoubling()) {
      for (auto& slots_of : slots_of_) slots_of[1] = slots;
    }
    const uint64_t from = split_;
    const uint64_t to = lines_;
    const int bit = level_;
    const int known_bits = FormatOf(from).known_bits();
    CompactEntry entries[Line::kMostSlots];
    CompactEntry kept[2][Line::kMostSlots];
    int counts[2] = {};
    const int count = Line::Unpack(LineAt(from), FormatOf(from), LevelOf(from), from, span, entries);
    for (int i = 0; i < count; ++i) {
      // An entry of which the bit is not known goes to both, so that it is found for either id. No branch:
      // the bit is random.
      const bool is_known = entries[i].known > bit;
      const bool is_high = (entries[i].address >> bit & 1) != 0;
      kept[0][counts[0]] = kept[1][counts[1]] = entries[i];
      counts[0] += static_cast<int>(!is_known | !is_high);
      counts[1] += static_cast<int>(!is_known | is_high);
    }
    for (int high = 0; high < 2; ++high) {
      const int room = slots_of_[high == 0 && from < swept_lines_ ? 1 : 0][1];
      if (__builtin_expect(counts[high] <= room, 1)) continue;
      // Nearly all of a full line go to a line of fewer slots.
      int moved = 0;
      counts[high] = MoveAway(kept[high], counts[high], room, span, &moved);
      if (counts[high] > room) return false;
    }
    KeepForCopy(from);
    Resize(lines_ + 1);
    for (int high = 0; high < 2; ++high) {
      const uint64_t index = high == 0 ? from : to;
      // A bit of each entry is the line's now.
      if (FormatOf(index).known_bits() < known_bits - 1) NoteRises(kept[high], counts[high], index);
      Line::Pack(LineAt(index), FormatOf(index), LevelOf(index), span, kept[high], counts[high]);
    }
    return true;
  });
}

// The entries of two lines, in the order of their epochs.
template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::MergedEntries(uint64_t last, uint64_t into, const CompactSpan& span,
                                                CompactEntry* merged) const {
  CompactEntry of[2][Line::kMostSlots];
  int counts[2];
  // Loops of two, here and below, since all that is called is compiled into them.
  for (const bool is_last : {false, true}) {
    counts[is_last] = UnpackAt(is_last ? last : into, span, of[is_last]);
    for (int i = 0; i < counts[is_last]; ++i) of[is_last][i].from_last = is_last;
  }
  const auto is_older = [](const CompactEntry& x, const CompactEntry& y) { return x.epoch < y.epoch; };
  std::merge(of[0], of[0] + counts[0], of[1], of[1] + counts[1], merged, is_older);
  return counts[0] + counts[1];
}

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::Merge(const CompactSpan& span) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->int {
    if (lines_ <= uint64_t{1} << kCompactLeastLevel) return 0;
    const uint64_t last = lines_ - 1;
    const uint64_t before = lines_;
    const uint64_t into = last - std::bit_floor(last);
    CompactEntry entries[2 * Line::kMostSlots];
    int count = MergedEntries(last, into, span, entries);
    const bool is_empty = count == 0;
    Resize(last);
    // A line that is full at once would overflow with its next entry.
    const int wanted = FormatOf(into).slots - 1;
    int moved = 0;
    count = MoveAway(entries, count, wanted, span, &moved);
    const bool fits = count <= wanted;
    CompactEntry of_last[Line::kMostSlots];
    int last_count = 0;
    if (fits) {
      NoteRises(entries, count, into);
    } else {
      // Back to two lines, without the moved entries.
      Resize(before);
      int into_count = 0;
      for (int i = 0; i < count; ++i) {
        (entries[i].from_last ? of_last[last_count++] : entries[into_count++]) = entries[i];
      }
      count = into_count;
    }
    for (int line = 0; line < (fits ? 1 : 2); ++line) {
      PackAt(line == 0 ? into : last, span, line == 0 ? entries : of_last, line == 0 ? count : last_count);
    }
    if (!fits) return 0;
    return is_empty ? 1 : 4 + 4 * moved;
  });
}

// Moves entries to their other lines until `wanted` are left. Returns how many are.
template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::MoveAway(CompactEntry* entries, int count, int wanted,
                                           const CompactSpan& span, int* moved) {
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    CompactEntry other = entries[i];
    uint64_t index = 0;
    if (count - *moved > wanted && ToOtherLine(&other, &index) && HasRoom(index, span)) {
      MoveTo(index, other, span);
      ++*moved;
    } else {
      entries[kept++] = entries[i];
    }
  }
  return kept;
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
    InsertInOrder(index, {address, id.epoch, /*known=*/64, /*from_last=*/false, id.tag}, span);
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
  CompactEntry entries[Line::kMostSlots];
  const int count = UnpackAt(index, span, entries);
  // The newest are the last.
  for (int i = count - 1; i >= 0; --i) {
    if (entries[i].tag != tag) continue;
    const uint64_t differing = entries[i].address ^ address;
    const bool is_equal = entries[i].known >= 64 ? differing == 0 : differing << (64 - entries[i].known) == 0;
    if (!is_equal) continue;
    *epoch = entries[i].epoch;
    if (entries[i].epoch == span.newest) return Renewal::kIsNewest;
    KeepForCopy(index);
    entries[i].epoch = span.newest;
    std::rotate(entries + i, entries + i + 1, entries + count);
    PackAt(index, span, entries, count);
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
  CompactEntry entries[Line::kMostSlots];
  for (uint64_t index = 0; index < lines_; ++index) {
    if (!IsSound(index)) return false;
    const int count = UnpackAt(index, span, entries);
    for (int i = 0; i < count; ++i) {
      held->ids_of_newest += entries[i].epoch == span.newest ? 1 : 0;
      held->fpp[static_cast<size_t>(entries[i].epoch - span.oldest)] +=
          std::ldexp(1.0, 1 - entries[i].known - Line::kTagBits);
    }
  }
  for (int i = 0; i < stashed_; ++i) {
    held->ids_of_newest += stash_[static_cast<size_t>(i)].epoch == span.newest ? 1 : 0;
  }
  return true;
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_TABLE_CODE_H_
