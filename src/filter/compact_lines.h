// The lines of a compact filter, whatever their tags are: how many there are, where they lie, and how wide
// their fingerprints are.
#ifndef LETHE_SRC_FILTER_COMPACT_LINES_H_
#define LETHE_SRC_FILTER_COMPACT_LINES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "src/filter/compact_copy.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_line.h"
#include "src/memory/line_memory.h"
#include "src/snapshot/fields.h"

namespace lethe {

// What lines hold: ids of the newest epoch, and the sums of their entries' rates by epoch, the oldest first.
struct CompactHeld {
  int64_t ids_of_newest = 0;
  std::array<double, kCompactMostEpochs> fpp = {};
};

// What a CompactTable is to those that do not know its tags and its processor; what is the same for all is
// here, and so there once. Invariant: there is memory for the lines. Thread safety: none; const methods may
// run together.
class CompactLines {
 public:
  // More ids in the stash would slow lookups down. It is nearly always empty: while splits had memory, no run
  // stashed more than 9.
  static constexpr int kMostStashed = 32;

  // Makes the table larger by up to `most` lines, but not beyond a doubling. Returns how many; 0 if it has no
  // memory. The first line of a doubling decides for all of it how many slots each of the two has that a line
  // becomes. If these are fewer, and an entry has no room in any line (with chosen hashes only), drops it.
  virtual int Split(const CompactSpan& span, int slots, int most) = 0;
  // The dropped entries by epoch, since this was called last.
  bool HasDropped() const { return has_dropped_; }
  CompactCounts TakeDropped() {
    has_dropped_ = false;
    return std::exchange(dropped_, {});
  }
  bool BeginsDoubling() const { return split_ == 0; }
  // Makes it smaller by up to `most` lines, while there is `work` to spend: kWorkOfMove for an entry that has
  // to move, one for any other, and one for two empty lines. Returns how many; fewer if lines have no room
  // for the entries now.
  virtual int Merge(const CompactSpan& span, int most, int64_t* work) = 0;
  static constexpr int64_t kWorkOfMove = 12;
  // Tries to put up to four stashed ids into their lines.
  virtual void DrainStash(const CompactSpan& span) = 0;
  // Begins to give all lines more slots, or as many: those that are not split, and those that are. Their
  // fingerprints become narrower. False if there is nothing to do. Not while one is under way.
  bool BeginSweep(int slots, int split_slots);
  bool IsSweeping() const { return sweeping_; }
  // Goes on with it for so many lines. Not during a copy.
  virtual void Sweep(const CompactSpan& span, int64_t lines) = 0;
  // Renews a part of the lines, in turn: so many that no stamp in a line comes round again.
  virtual void SweepStamps(const CompactSpan& span) = 0;

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
  virtual bool CheckLines(const CompactSpan& span, CompactHeld* held) const = 0;

  // Of the line that an address chooses (CompactLine::SumOfRates).
  virtual double SumOfRates(uint64_t address, const CompactSpan& span) const = 0;
  void PrefetchLine(uint64_t address) const { __builtin_prefetch(LineAt(IndexOf(address))); }

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

 protected:
  struct Stashed {
    uint64_t address;
    int64_t epoch;
    uint16_t tag;
  };

  // `memory` has room for the first lines, which are zero.
  CompactLines(const CompactFormats& formats, LineMemory memory);
  ~CompactLines() = default;

  uint8_t* LineAt(uint64_t index) const {
    return static_cast<uint8_t*>(memory_.data()) + index * kCompactLineBytes;
  }
  // A one if x < y, for numbers of lines. A comparison would become a branch, and half of all ids take it.
  static uint64_t IsLess(uint64_t x, uint64_t y) { return (x - y) >> 63; }
  // All this is of the line that an address chooses. The number of a line is such an address, too.
  bool IsSplit(uint64_t address) const { return IsLess(address & low_mask_, split_) != 0; }
  int LevelOf(uint64_t address) const {
    return level_ + static_cast<int>(IsLess(address & low_mask_, split_));
  }
  uint64_t IndexOf(uint64_t address) const { return address & ((uint64_t{1} << LevelOf(address)) - 1); }
  const CompactFormat& FormatOf(uint64_t index) const {
    return regions_[2 * IsLess(index, swept_lines_) + IsLess(index & low_mask_, split_)];
  }
  // Before line `index` loses an entry, or renews one.
  void KeepForCopy(uint64_t index) {
    if (__builtin_expect(!copy_.expired(), 0)) Keep(index);
  }
  [[gnu::noinline]] void Keep(uint64_t index) {
    if (const std::shared_ptr<CompactCopy> copy = copy_.lock()) copy->Keep(index, LineAt(index));
  }

  // From one line more or less than now. CountSlots() comes after it, before anything else is asked.
  void Resize(uint64_t lines);
  void EndSweep();
  // Before the first line of a doubling.
  void SetSplitSlots(int slots);
  void CountSlots();
  [[gnu::noinline]] bool HasMemoryFor(int64_t needed);

  const CompactFormats formats_;
  LineMemory memory_;
  uint64_t lines_ = 0;
  uint64_t low_mask_ = 0;  // 2^level_ - 1
  uint64_t split_ = 0;     // lines below it, and from 2^level_ on, are of level_ + 1
  int level_ = 0;
  int64_t slots_ = 0;
  double entry_rate_ = 0;
  int64_t keep_bytes_ = 0;
  uint64_t keep_pages_ = 0;  // of lines, for which that is
  uint64_t swept_ = 0;
  // Lines below swept_lines_ have the slots of the second pair, the others of the first; of a pair, split
  // lines have the second. If no line is split, that is not used.
  std::array<std::array<int, 2>, 2> slots_of_ = {};
  std::array<CompactFormat, 4> regions_ = {};
  std::array<double, 4> rates_ = {};
  bool sweeping_ = false;
  uint64_t swept_lines_ = 0;
  int next_stashed_ = 0;
  int stashed_ = 0;
  std::array<Stashed, kMostStashed> stash_;
  bool has_dropped_ = false;
  CompactCounts dropped_ = {};
  CompactRates risen_ = {};
  std::weak_ptr<CompactCopy> copy_;

 private:
  void SetLines(uint64_t lines);
  void SetFormats();
  template <typename Self, typename Fields>
  static void TransferFields(Self& self, int64_t& lines, const CompactSpan& span, Fields& fields);
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_LINES_H_
