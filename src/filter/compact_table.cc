#include "src/filter/compact_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace lethe {
namespace {

// Memory is taken by the page while the table is small, then by a 64th of it, and from kCompactHugeFrom on by
// huge pages, which are a 16th of it or less.
//
// Another thread fills the next huge page when the lines come as near to it as this.
constexpr int64_t kAhead = LineMemory::kChunkBytes / 4;
// Kept above that before memory is given back: a 32nd, so that a table at rest neither grows nor shrinks.
constexpr int64_t kKeptPart = 32;

// So that the first huge page is filled ahead, too.
bool TakesHugePages(int64_t needed) { return needed + needed / 64 + kAhead >= kCompactHugeFrom; }

int64_t BytesToTake(int64_t needed) {
  if (!TakesHugePages(needed)) return LineMemory::WholePagesFor(needed + needed / 64);
  return (needed + kAhead + LineMemory::kChunkBytes - 1) / LineMemory::kChunkBytes * LineMemory::kChunkBytes;
}

}  // namespace

template <typename Tag, typename Processor>
CompactTable<Tag, Processor>::CompactTable(const CompactFormats& formats, LineMemory memory)
    : formats_(formats), memory_(std::move(memory)) {
  const int slots = formats_.settled_slots[kCompactLeastLevel];
  slots_of_ = {{{slots, slots}, {slots, slots}}};
  SetLines(uint64_t{1} << kCompactLeastLevel);
}

// From one line more or less than now.
template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Resize(uint64_t lines) {
  const int level = 63 - std::countl_zero(lines);
  for (auto& slots : slots_of_) {
    if (level > level_) slots[0] = slots[1];
    if (level < level_) slots = {formats_.settled_slots[static_cast<size_t>(level)], slots[0]};
  }
  SetLines(lines);
  if (swept_lines_ >= lines_) EndSweep();
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::SetLines(uint64_t lines) {
  lines_ = lines;
  level_ = 63 - std::countl_zero(lines);
  low_mask_ = (uint64_t{1} << level_) - 1;
  split_ = lines - (low_mask_ + 1);
  const int64_t needed = static_cast<int64_t>(lines) * kCompactLineBytes;
  // Nothing below the smallest table would make it grow and shrink in turn.
  const bool is_least = lines <= uint64_t{1} << kCompactLeastLevel;
  const int64_t kept = is_least ? 0 : std::max(LineMemory::WholePagesFor(1), needed / kKeptPart);
  keep_bytes_ = BytesToTake(needed) + kept;
  for (size_t region = 0; region < regions_.size(); ++region) {
    const int slots = slots_of_[region / 2][region % 2];
    const int level = level_ + static_cast<int>(region % 2);
    if (regions_[region].slots == slots && rate_level_ == level_) continue;
    regions_[region] = formats_.Of(slots, level);
    rates_[region] = formats_.RateOf(slots, level);
  }
  rate_level_ = level_;
  CountSlots();
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::CountSlots() {
  const uint64_t swept_split =
      std::min(swept_lines_, split_) + (swept_lines_ > low_mask_ ? swept_lines_ - low_mask_ - 1 : 0);
  const uint64_t lines[] = {low_mask_ + 1 - split_ - (swept_lines_ - swept_split), 2 * split_ - swept_split,
                            swept_lines_ - swept_split, swept_split};
  slots_ = 0;
  double rates = 0;
  for (size_t region = 0; region < regions_.size(); ++region) {
    const auto slots = static_cast<int64_t>(lines[region]) * regions_[region].slots;
    slots_ += slots;
    rates += static_cast<double>(slots) * rates_[region];
  }
  entry_rate_ = rates / static_cast<double>(slots_);
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::BeginSweep(int slots, int split_slots) {
  const auto [present, split_present] = slots_of_[0];
  if (split_ == 0) split_slots = split_present;  // of no line
  if (slots < present || split_slots < split_present) return false;
  if (slots == present && split_slots == split_present) return false;
  slots_of_[1] = {slots, split_slots};
  sweeping_ = true;
  SetLines(lines_);
  return true;
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::EndSweep() {
  if (sweeping_) slots_of_[0] = slots_of_[1];
  sweeping_ = false;
  swept_lines_ = 0;
  SetLines(lines_);
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
bool CompactTable<Tag, Processor>::HasMemoryFor(int64_t needed) {
  const int64_t before = memory_.bytes();
  if (needed + (TakesHugePages(needed) ? kAhead : 0) <= before) return true;
  if (lines_ >= uint64_t{1} << kCompactMostLevel) return false;
  if (!TakesHugePages(needed) && TakesHugePages(needed + kAhead)) {
    memory_.ExpectPrepare();  // before the first huge page, in one of the calls that take small ones
  }
  if (!memory_.GrowOrMove(BytesToTake(needed))) return memory_.GrowOrMove(needed);
  memory_.Prepare(before);
  return true;
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
    int counts[2];
    const int count = UnpackAt(from, span, entries);
    for (int high = 0; high < 2; ++high) {
      // An entry of which the bit is not known goes to both, so that it is found for either id.
      const auto may_be = [bit, high](const CompactEntry& entry) {
        return entry.known <= bit || static_cast<int>(entry.address >> bit & 1) == high;
      };
      counts[high] =
          static_cast<int>(std::copy_if(entries, entries + count, kept[high], may_be) - kept[high]);
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
      PackAt(index, span, kept[high], counts[high]);
    }
    return true;
  });
}

// The entries of two lines, in the order of their epochs.
template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::MergedEntries(uint64_t last, uint64_t into, const CompactSpan& span,
                                                CompactEntry* merged) const {
  CompactEntry of_last[Line::kMostSlots];
  CompactEntry of_into[Line::kMostSlots];
  const int last_count = UnpackAt(last, span, of_last);
  const int into_count = UnpackAt(into, span, of_into);
  for (int i = 0; i < last_count; ++i) of_last[i].from_last = true;
  const auto is_older = [](const CompactEntry& x, const CompactEntry& y) { return x.epoch < y.epoch; };
  std::merge(of_into, of_into + into_count, of_last, of_last + last_count, merged, is_older);
  return into_count + last_count;
}

template <typename Tag, typename Processor>
int CompactTable<Tag, Processor>::Merge(const CompactSpan& span) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->int {
    if (lines_ <= uint64_t{1} << kCompactLeastLevel) return 0;
    const uint64_t last = lines_ - 1;
    const uint64_t before = lines_;
    const uint64_t into = last - std::bit_floor(last);
    if (Line::Live(LineAt(last), span) + Line::Live(LineAt(into), span) == 0) {
      Resize(last);
      PackAt(into, span, nullptr, 0);
      return 1;
    }
    CompactEntry entries[2 * Line::kMostSlots];
    int count = MergedEntries(last, into, span, entries);
    Resize(last);
    // A line that is full at once would overflow with its next entry.
    const int wanted = FormatOf(into).slots - 1;
    int moved = 0;
    count = MoveAway(entries, count, wanted, span, &moved);
    if (count <= wanted) {
      NoteRises(entries, count, into);
      PackAt(into, span, entries, count);
      return 4 + 4 * moved;
    }
    // Back to two lines, without the moved entries.
    Resize(before);
    const auto middle = std::stable_partition(entries, entries + count,
                                              [](const CompactEntry& entry) { return !entry.from_last; });
    PackAt(into, span, entries, static_cast<int>(middle - entries));
    PackAt(last, span, middle, static_cast<int>(entries + count - middle));
    return 0;
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
  Line::Insert(LineAt(index), FormatOf(index), LevelOf(index), span, entry);
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::MoveTo(uint64_t index, const CompactEntry& entry,
                                          const CompactSpan& span) {
  NoteRise(entry, index);
  InsertInOrder(index, entry, span);
}

// Makes room in a full line by moving one of its entries to that entry's other line. Lines that are split in
// this round are tried first, since they have room more often; among them the oldest entries, which are the
// cheapest to take out and to put in.
template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::MoveOne(uint64_t index, const CompactSpan& span) {
  return MoveOneTo(/*split_lines=*/true, index, span) || MoveOneTo(/*split_lines=*/false, index, span);
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::MoveOneTo(bool split_lines, uint64_t index, const CompactSpan& span) {
  constexpr int kPrefetched = 6;
  struct Candidate {
    CompactEntry entry;
    uint64_t to;
    int at;
    uint64_t one;
  };
  // A line that is split has room nearly always.
  const size_t at_once = split_lines ? 1 : kPrefetched;
  uint8_t* const line = LineAt(index);
  const CompactFormat& format = FormatOf(index);
  const int level = LevelOf(index);
  CompactMeta meta = Line::MetaOf(line);
  Line::Renew(format, span, &meta);
  std::array<Candidate, kPrefetched> candidates;
  int at = 0;
  for (uint64_t rest = meta.mask; rest != 0;) {
    size_t found = 0;
    for (; rest != 0 && found < at_once; ++at, rest &= rest - 1) {
      Candidate& candidate = candidates[found];
      candidate.entry = Line::EntryAt(line, format, level, index, Line::SlotOf(format, meta, at));
      if (!ToOtherLine(&candidate.entry, &candidate.to) || IsSplit(candidate.to) != split_lines) continue;
      candidate.at = at;
      candidate.one = rest & -rest;
      __builtin_prefetch(LineAt(candidate.to), 1);
      ++found;
    }
    for (size_t i = 0; i < found; ++i) {
      Candidate& candidate = candidates[i];
      if (!HasRoom(candidate.to, span)) continue;
      KeepForCopy(index);
      candidate.entry.epoch = Line::EpochOf(span, candidate.at, candidate.one);
      MoveTo(candidate.to, candidate.entry, span);
      Line::Remove(line, format, meta, candidate.at, candidate.one);
      return true;
    }
  }
  return false;
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::Squeeze(IdHash id, const CompactSpan& span) {
  return Processor::RunWhole([&, this ]() __attribute__((always_inline))->bool {
    const Tag tag = Line::TagOf(id.b);
    for (const uint64_t address : {id.a, id.a ^ Turn(tag)}) {
      const uint64_t index = IndexOf(address);
      if (!HasRoom(index, span) && !MoveOne(index, span)) continue;
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
    if (!HasRoom(index, span) && !MoveOne(index, span)) continue;
    InsertInOrder(index, {.address = address, .epoch = id.epoch, .known = 64, .tag = id.tag}, span);
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
    const Renewal in_first = RenewIn(id.a, tag, span, epoch);
    return in_first != Renewal::kNone ? in_first : RenewIn(id.a ^ Turn(tag), tag, span, epoch);
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

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::GiveBack(int64_t most_bytes) {
  if (!HasExcess()) return;
  const int64_t needed = BytesToTake(static_cast<int64_t>(lines_) * kCompactLineBytes);
  int64_t kept = std::max(needed, LineMemory::WholePagesFor(memory_.bytes() - most_bytes));
  if (memory_.bytes() > kCompactHugeFrom) {
    kept = std::max(
        needed, std::min(kept, (memory_.bytes() - 1) / LineMemory::kChunkBytes * LineMemory::kChunkBytes));
  }
  memory_.Shrink(kept);
}

template class CompactTable<uint8_t, AnyProcessor>;
template class CompactTable<uint16_t, AnyProcessor>;
#if defined(__x86_64__)
template class CompactTable<uint8_t, Avx2Processor>;
template class CompactTable<uint16_t, Avx2Processor>;
#endif

}  // namespace lethe
