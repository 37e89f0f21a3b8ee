// The lines of a compact filter: a hash table of fingerprints that grows and shrinks by one line.
#ifndef LETHE_SRC_FILTER_COMPACT_TABLE_H_
#define LETHE_SRC_FILTER_COMPACT_TABLE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "lethe/event.h"
#include "src/filter/compact_copy.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_line.h"
#include "src/filter/compact_probe.h"
#include "src/memory/line_memory.h"
#include "src/snapshot/fields.h"

namespace lethe {

// What lines hold: ids of the newest epoch, and the sums of their entries' rates by epoch, the oldest first.
struct CompactHeld {
  int64_t ids_of_newest = 0;
  std::array<double, kCompactMostEpochs> fpp = {};
};

// Two-choice linear hashing (Litwin, 1980) over lines of 64 bytes. An id has a tag and an address A of 64
// bits; its fingerprint is in one of the lines of A and of A xor G(tag), so that either can be computed from
// the other. With 2^p <= lines < 2^(p+1), a line is chosen by p + 1 address bits, or by p bits if p + 1 bits
// name a line that does not exist yet. Split() makes the next line, from the one that shares its low p bits;
// Merge() takes the last line back. An id whose lines are both full moves another entry to that one's second
// line, or goes into the stash: a few whole ids outside of the lines.
//
// Invariants: every live entry is in one of its two lines or in the stash, or in both children of its line if
// it has no known bit left to choose by. A field claims only known bits. Epochs are the caller's: those
// outside of the span it passes are dead, and SweepStamps() is called for each new one.
//
// No method allocates except Split, through LineMemory. Thread safety: none; const methods may run together.
template <typename Tag, typename Processor>
class CompactTable {
 public:
  using Line = CompactLine<Tag>;

  // More ids in the stash would slow lookups down. It is nearly always empty: while splits had memory, no run
  // stashed more than 9.
  static constexpr int kMostStashed = 32;

  // `memory` has room for the first lines, which are zero.
  CompactTable(const CompactFormats& formats, LineMemory memory);

  // Forced inline: GCC 12 takes a function that only prefetches for pure, and drops its calls.
  [[gnu::always_inline]] inline void Prefetch(IdHash id) const {
    __builtin_prefetch(LineAt(IndexOf(id.a)), 1, 3);
    __builtin_prefetch(LineAt(IndexOf(id.a ^ Turn(Line::TagOf(id.b)))), 1, 3);
  }

  [[gnu::always_inline]] inline CompactFound Look(IdHash id, const CompactSpan& span) const {
    const Tag tag = Line::TagOf(id.b);
    CompactFound found;
    const bool in_first = ProbeLine<Processor>(PlaceOf(id.a), tag, span, &found.sides[0]);
    const bool in_second = ProbeLine<Processor>(PlaceOf(id.a ^ Turn(tag)), tag, span, &found.sides[1]);
    found.contained = in_first | in_second;
    if (__builtin_expect(stashed_ > 0, 0)) found.contained = found.contained || FindStashed(id, span) >= 0;
    return found;
  }

  // Inserts an id into the newest epoch, into the line with more room. False if none has room, as Look has
  // found.
  [[gnu::always_inline]] inline bool Append(IdHash id, const CompactFound& found, const CompactSpan& span) {
    // An index, since half of all branches on it would be mispredicted.
    const CompactSide& side = found.sides[found.sides[1].room() > found.sides[0].room() ? 1 : 0];
    if (__builtin_expect(side.room() <= 0, 0)) return false;
    Line::Append(side.place.line, *side.place.format, side.meta_word, span, static_cast<int>(side.live),
                 static_cast<int>(side.dead), side.place.address_bits, Line::TagOf(id.b));
    return true;
  }

  // The same for an id whose lines are full. False, and nothing is inserted, if the stash is full too.
  bool Squeeze(IdHash id, const CompactSpan& span);

  // What Renew found: an entry like the id's in the newest epoch; one that it has moved there from `epoch`;
  // or none. The entry may be another id's, which must be found as before: so it stays in its line, with the
  // bits that are known of it. Those are the same for both ids, so it goes wherever either is looked for.
  enum class Renewal : uint8_t { kIsNewest, kMoved, kNone };
  Renewal Renew(IdHash id, const CompactSpan& span, int64_t* epoch);

  // Makes the table larger by a line. False if it has no memory for it (or, as good
  // as never, if a line's entries have no place). The first line of a doubling decides for all of it how many
  // slots each of the two has that a line becomes.
  bool Split(const CompactSpan& span, int slots);
  bool BeginsDoubling() const { return split_ == 0; }
  // Makes it smaller by a line. Returns a measure of the work done, or 0 if the lines have no room for the
  // entries now.
  int Merge(const CompactSpan& span);
  // Tries to put up to four stashed ids into their lines.
  void DrainStash(const CompactSpan& span);
  // Begins to give all lines more slots, or as many: those that are not split, and those that are. Their
  // fingerprints become narrower. False if there is nothing to do. Not while one is under way.
  bool BeginSweep(int slots, int split_slots);
  bool IsSweeping() const { return sweeping_; }
  // Goes on with it for so many lines. Not during a copy.
  void Sweep(const CompactSpan& span, int64_t lines);
  // Renews a part of the lines, in turn: so many that no stamp in a line comes round again.
  void SweepStamps(const CompactSpan& span);

  // Gives memory back that the lines do not need, up to `most_bytes` of it or a huge page.
  void GiveBack(int64_t most_bytes);
  bool HasExcess() const { return memory_.bytes() > keep_bytes_; }

  // Snapshots. While a copy is made, Merge, Sweep and GiveBack must not be called.
  std::shared_ptr<CompactCopy> BeginCopy();
  bool IsBeingCopied() const { return !copy_.expired(); }
  absl::Span<const char> memory() const {
    return {static_cast<const char*>(memory_.data()), static_cast<size_t>(lines_ * kCompactLineBytes)};
  }
  void Save(const CompactSpan& span, FieldWriter* fields) const;
  // Returns the number of lines; 0 if the fields are wrong.
  int64_t Restore(const CompactSpan& span, FieldReader* fields);
  // Takes the memory for so many lines, and `memory_bytes` at least. False if it is not there.
  bool MakeRoomFor(int64_t lines, int64_t memory_bytes);
  // Whether a table can have made the lines. Sums up their contents.
  bool CheckLines(const CompactSpan& span, CompactHeld* held) const;

  int64_t lines() const { return static_cast<int64_t>(lines_); }
  int64_t slots() const { return slots_; }
  int level() const { return level_; }
  int fingerprint_bits() const { return formats_.bits_of(regions_[0]); }  // of lines that are not split
  // Of lines that are not split, and of those that are; while it sweeps, what they will have.
  int slots_of(bool split) const { return slots_of_[sweeping_ ? 1 : 0][split ? 1 : 0]; }
  double split_part() const { return std::ldexp(static_cast<double>(split_), -level_); }
  // The mean rate of new entries (CompactFormats::RateOf), by the slots of the lines.
  double entry_rate() const { return entry_rate_; }
  int stashed() const { return stashed_; }
  // By how much the rates of each epoch's entries have risen since they were inserted, or restored: a line of
  // a lower level, or with narrower fingerprints, holds fewer of the bits that are known of an entry.
  const CompactRates& risen() const { return risen_; }
  int64_t memory_bytes() const { return memory_.bytes(); }
  const CompactFormats& formats() const { return formats_; }

  // Of the line that an address chooses (CompactLine::SumOfRates).
  double SumOfRates(uint64_t address, const CompactSpan& span) const {
    const uint64_t index = IndexOf(address);
    return Line::SumOfRates(LineAt(index), FormatOf(index), span);
  }
  void PrefetchLine(uint64_t address) const { __builtin_prefetch(LineAt(IndexOf(address))); }

 private:
  struct Stashed {
    uint64_t address;
    int64_t epoch;
    Tag tag;
  };

  // Odd, so that an id's two lines differ.
  static uint64_t Turn(Tag tag) {
    const uint64_t product = (uint64_t{tag} + 1) * 0x9E3779B97F4A7C15ULL;
    return (product ^ product >> 32) | 1;
  }

  uint8_t* LineAt(uint64_t index) const {
    return static_cast<uint8_t*>(memory_.data()) + index * kCompactLineBytes;
  }
  uint64_t IndexOf(uint64_t address) const {
    const uint64_t index = address & (2 * low_mask_ + 1);
    return index >= lines_ ? index & low_mask_ : index;
  }
  bool IsSplit(uint64_t index) const { return (index & low_mask_) < split_; }
  int LevelOf(uint64_t index) const { return level_ + (IsSplit(index) ? 1 : 0); }
  const CompactFormat& FormatOf(uint64_t index) const {
    return regions_[(index < swept_lines_ ? 2U : 0U) + (IsSplit(index) ? 1U : 0U)];
  }
  CompactPlace PlaceOf(uint64_t address) const {
    const uint64_t index = IndexOf(address);
    return {.line = LineAt(index), .format = &FormatOf(index), .address_bits = address >> LevelOf(index)};
  }
  int UnpackAt(uint64_t index, const CompactSpan& span, CompactEntry* entries) const {
    const int level = LevelOf(index);
    return Line::Unpack(LineAt(index), FormatOf(index), level, index, span, entries);
  }
  void PackAt(uint64_t index, const CompactSpan& span, const CompactEntry* entries, int count) {
    Line::Pack(LineAt(index), FormatOf(index), LevelOf(index), span, entries, count);
  }
  // Before a line takes entries of other lines, or of its own in another format.
  void NoteRises(const CompactEntry* entries, int count, uint64_t index) {
    for (int i = 0; i < count; ++i) NoteRise(entries[i], index);
  }
  void NoteRise(const CompactEntry& entry, uint64_t index) {
    const int level = LevelOf(index);
    const int kept = level + std::clamp(entry.known - level, 0, FormatOf(index).known_bits());
    if (__builtin_expect(kept >= entry.known, 1)) return;
    risen_[CompactPlaceOf(entry.epoch)] += Line::RateOfKnown(kept) - Line::RateOfKnown(entry.known);
  }
  // Before line `index` loses an entry, or renews one.
  void KeepForCopy(uint64_t index) {
    if (__builtin_expect(!copy_.expired(), 0)) Keep(index);
  }
  [[gnu::noinline]] void Keep(uint64_t index) {
    if (const std::shared_ptr<CompactCopy> copy = copy_.lock()) copy->Keep(index, LineAt(index));
  }
  bool HasRoom(uint64_t index, const CompactSpan& span) const {
    return Line::Live(LineAt(index), span) < FormatOf(index).slots;
  }

  void Resize(uint64_t lines);
  void SetLines(uint64_t lines);
  void EndSweep();
  void CountSlots();
  [[gnu::noinline]] bool HasMemoryFor(int64_t needed);
  bool IsSound(uint64_t index) const;
  template <typename Self, typename Fields>
  static void TransferFields(Self& self, int64_t& lines, const CompactSpan& span, Fields& fields);
  int MergedEntries(uint64_t last, uint64_t into, const CompactSpan& span, CompactEntry* merged) const;
  int MoveAway(CompactEntry* entries, int count, int wanted, const CompactSpan& span, int* moved);
  bool ToOtherLine(CompactEntry* entry, uint64_t* index) const;
  void InsertInOrder(uint64_t index, const CompactEntry& entry, const CompactSpan& span);
  void MoveTo(uint64_t index, const CompactEntry& entry, const CompactSpan& span);
  bool MoveOne(uint64_t index, const CompactSpan& span);
  bool MoveOneTo(bool split_lines, uint64_t index, const CompactSpan& span);
  Renewal RenewIn(uint64_t address, Tag tag, const CompactSpan& span, int64_t* epoch);
  int FindStashed(IdHash id, const CompactSpan& span) const;
  bool Unstash(const Stashed& id, const CompactSpan& span);

  const CompactFormats formats_;
  LineMemory memory_;
  uint64_t lines_ = 0;
  uint64_t low_mask_ = 0;  // 2^level_ - 1
  uint64_t split_ = 0;     // lines below it, and from 2^level_ on, are of level_ + 1
  int level_ = 0;
  int64_t slots_ = 0;
  double entry_rate_ = 0;
  int64_t keep_bytes_ = 0;
  uint64_t swept_ = 0;
  // Lines below swept_lines_ have the slots of the second pair, the others of the first; of a pair, split
  // lines have the second. If no line is split, that is not used.
  std::array<std::array<int, 2>, 2> slots_of_ = {};
  std::array<CompactFormat, 4> regions_ = {};
  std::array<double, 4> rates_ = {};
  int rate_level_ = -1;  // for which the two above are
  bool sweeping_ = false;
  uint64_t swept_lines_ = 0;
  int next_stashed_ = 0;
  int stashed_ = 0;
  std::array<Stashed, kMostStashed> stash_;
  CompactRates risen_ = {};
  std::weak_ptr<CompactCopy> copy_;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_TABLE_H_
