// The lines of a compact filter: a hash table of fingerprints that grows and shrinks by one line.
#ifndef LETHE_SRC_FILTER_COMPACT_TABLE_H_
#define LETHE_SRC_FILTER_COMPACT_TABLE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "lethe/event.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_line.h"
#include "src/filter/compact_lines.h"
#include "src/filter/compact_probe.h"
#include "src/memory/line_memory.h"

namespace lethe {

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
class CompactTable final : public CompactLines {
 public:
  using Line = CompactLine<Tag>;

  // `memory` has room for the first lines, which are zero.
  CompactTable(const CompactFormats& formats, LineMemory memory) : CompactLines(formats, std::move(memory)) {}

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
  // found. Of two with equal room a line that is split wins, since the others are chosen twice as often: so
  // half as many ids find both lines full.
  [[gnu::always_inline]] inline bool Append(IdHash id, const CompactFound& found, const CompactSpan& span) {
    // An index, since half of all branches on it would be mispredicted.
    const CompactSide& side = found.sides[found.sides[1].weight > found.sides[0].weight ? 1 : 0];
    if (__builtin_expect(side.is_full(), 0)) return false;
    Line::Append(side.place.line, *side.place.format, side.meta_word, span, side.live(),
                 static_cast<int>(side.dead), side.place.address_bits, Line::TagOf(id.b));
    return true;
  }

  // The same for an id whose lines are full. False, and nothing is inserted, if the stash is full too.
  bool Squeeze(IdHash id, const CompactSpan& span);

  // What Renew found: an entry like the id's in the newest epoch; one that it has moved there from `epoch`;
  // or none. The entry may be another id's, which must be found as before: so it stays in its line, with the
  // bits that are known of it. Those are the same for both ids, so it goes wherever either is looked for.
  enum class Renewal : uint8_t { kIsNewest, kMoved, kNone };
  [[gnu::noinline]] Renewal Renew(IdHash id, const CompactSpan& span, int64_t* epoch);

  int Split(const CompactSpan& span, int slots, int most) override;
  int Merge(const CompactSpan& span, int most, int64_t* work) override;
  void DrainStash(const CompactSpan& span) override;
  void Sweep(const CompactSpan& span, int64_t lines) override;
  void SweepStamps(const CompactSpan& span) override;
  bool CheckLines(const CompactSpan& span, CompactHeld* held) const override;
  double SumOfRates(uint64_t address, const CompactSpan& span) const override {
    const uint64_t index = IndexOf(address);
    return Line::SumOfRates(LineAt(index), FormatOf(index), span);
  }

 private:
  using Entries = typename Line::Entries;

  // Odd, so that an id's two lines differ.
  static uint64_t Turn(uint64_t tag) {
    const uint64_t product = (tag + 1) * 0x9E3779B97F4A7C15ULL;
    return (product ^ product >> 32) | 1;
  }

  CompactPlace PlaceOf(uint64_t address) const {
    const uint64_t index = IndexOf(address);
    return {.line = LineAt(index), .format = &FormatOf(index), .address_bits = address >> LevelOf(address)};
  }
  // These five are compiled once for all that call them.
  [[gnu::noinline]] void ReadAt(uint64_t index, const CompactSpan& span, Entries* entries) const;
  [[gnu::noinline]] void WriteAt(uint64_t index, const CompactSpan& span, const Entries& entries,
                                 uint64_t chosen, int more);
  [[gnu::noinline]] void InsertInOrder(uint64_t index, const CompactEntry& entry, const CompactSpan& span);
  template <bool kSplitLines>
  [[gnu::noinline]] bool MoveSomeTo(uint64_t index, const CompactSpan& span);
  [[gnu::noinline]] int FindStashed(IdHash id, const CompactSpan& span) const;

  static uint64_t AllOf(const Entries& entries) { return (uint64_t{1} << entries.count) - 1; }
  // Before chosen entries are written to a line: those that have more known bits than it holds lose some.
  void Narrow(uint64_t index, const CompactSpan& span, uint64_t chosen, int more, Entries* entries);
  // The same for an entry of another line.
  void NoteRise(const CompactEntry& entry, uint64_t index) {
    const int level = LevelOf(index);
    const int kept = level + std::clamp(entry.known - level, 0, FormatOf(index).known_bits());
    if (__builtin_expect(kept >= entry.known, 1)) return;
    risen_[CompactPlaceOf(entry.epoch)] += Line::RateOfKnown(kept) - Line::RateOfKnown(entry.known);
  }
  bool HasRoom(uint64_t index, const CompactSpan& span) const {
    return Line::Live(LineAt(index), span) < FormatOf(index).slots;
  }

  bool IsSound(uint64_t index) const;
  void Divide(uint64_t from, const CompactSpan& span, Entries* entries, uint64_t chosen[2]);
  // Of the chosen entries keeps the newest, `most` of them.
  void DropOldest(const Entries& entries, const CompactSpan& span, int most, uint64_t* chosen);
  uint64_t ReadBoth(uint64_t last, uint64_t into, const CompactSpan& span, Entries* merged) const;
  int MoveAway(uint64_t from, const CompactSpan& span, int wanted, const Entries& entries, uint64_t* chosen);
  bool ToOtherLine(CompactEntry* entry, uint64_t* index) const;
  void MoveTo(uint64_t index, const CompactEntry& entry, const CompactSpan& span);
  bool MakeRoomIn(uint64_t index, const CompactSpan& span);
  Renewal RenewIn(uint64_t address, Tag tag, const CompactSpan& span, int64_t* epoch);
  bool Unstash(const Stashed& id, const CompactSpan& span);
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_TABLE_H_
