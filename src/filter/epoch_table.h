// A table of fingerprints with epochs: not a Bloom filter, and smaller than one at low targets.
#ifndef LETHE_SRC_FILTER_EPOCH_TABLE_H_
#define LETHE_SRC_FILTER_EPOCH_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/filter/each_id.h"
#include "src/filter/epoch_ring.h"
#include "src/filter/fingerprint_lines.h"
#include "src/filter/id_table.h"
#include "src/filter/line_memory.h"

namespace lethe {

// Each id leaves 28 bits of its hash and the 4-bit tag of its epoch in one of two lines of 16 entries, the
// one with more room. What finds both full, some six in a million at the highest load, goes into an exact
// table beside it: so there is no false negative. A new id is contained if one of the up to 32 entries that
// it is compared with has its fingerprint: at the highest load about once in 10^7. 40 to 80 bits an id.
//
// The lines are in chunks of 256. Both lines of an id are in one chunk, which low bits of its hash choose;
// the fingerprint is the 28 bits from bit w on, w being an offset of the id's epoch. So an entry tells which
// of two chunks it belongs to when its own is split, as long as w is not above the bits that chose it: the
// table grows chunk by chunk, in place, with the ids (as in linear hashing), and shrinks by merging them
// again. Each split takes a bit from the fingerprints of older epochs, as their entries become half as
// dense: the rate stays. Ids of the epoch in which the table grew m-fold have a rate up to m times as high.
//
// Insertions sweep what is forgotten, fast enough at a steady rate. What is left when an epoch begins is
// swept at once, since its tag must be nobody's: all of the table, where the rate has fallen by more than
// half or time has leapt. Whoever comes then waits 11 ms for each 100 MB: 6 to 11 ms with ten million ids, 60
// to 110 with a hundred million.
//
// Keeps Filter's promise; ids are forgotten a 13th of the horizon late at most. At the memory limit, where
// no chunk can be split, the oldest epochs are forgotten before the horizon (limit_hits counts the times).
//
// Invariants: the table has (1 << level_) + split_ chunks, split_ < 1 << level_; those under split_ and
// from 1 << level_ on are chosen by level_ + 1 bits, the others by level_; no live epoch's offset is above
// level_. Every entry whose tag is not live counts as empty, and is made so before its tag comes again.
// Thread safety: as Filter.
class EpochTable final : public EachIdFilter<EpochTable> {
 public:
  // The lowest target that may be asked for: twice the rate at the highest load, for the ids of epochs in
  // which the table grows.
  static constexpr double kLowestTargetFpp = 2e-7;

  // ResourceExhausted if the memory for the first chunks is not there: they are as many as go into
  // FixedShareBytes, by a power of two. `operations` is what works on lines.
  static absl::StatusOr<std::unique_ptr<EpochTable>> Create(
      const FilterOptions& options, const LineOperations& operations = FastestLineOperations());

  void AdvanceTo(int64_t stream_time_ms) override;

  // N is the slices in the horizon, t a slice's length; m and k are 0. fpp_modelled takes all fingerprints
  // for whole, fpp_estimated counts what they really tell.
  FilterStatus Status() const override;

 private:
  friend class EachIdFilter<EpochTable>;

  struct Lines {
    uint32_t* first;
    uint32_t* second;
  };

  EpochTable(const FilterOptions& options, const LineOperations& operations, int level, LineMemory memory);

  bool ContainsId(IdHash id) const;
  void InsertId(IdHash id);
  bool TestAndInsertId(IdHash id);
  void ReplayId(IdHash id);
  void PrefetchId(IdHash id) const;

  Lines LinesOf(IdHash id) const;
  uint32_t* FindEntry(const Lines& lines, IdHash id, TwoLines* newest) const;
  void Put(IdHash id, const Lines& lines, uint32_t free);
  bool Store(IdHash id, const Lines& lines, uint32_t free);

  // What each insertion does for the table as a whole: some sweeping, splitting, merging.
  void Tend();
  void Sweep(int64_t lines);
  void Fit();
  bool Split();
  bool Merge();
  void ForgetAtLimit();
  void BeginEpoch();
  void DropOldest();
  void NoteDeaths();
  void NoteSize();
  int NewOffset() const;

  int64_t chunks() const { return (int64_t{1} << level_) + split_; }
  int64_t ids_when_full() const;
  uint32_t live() const { return static_cast<uint32_t>(epochs_.live()); }
  uint32_t* Chunk(int64_t chunk) const;

  const double target_fpp_;
  const LineOperations operations_;
  const int lowest_level_;
  EpochRing epochs_;
  LineMemory memory_;
  IdTable overflow_;  // by id.a; holds live ids only
  int level_;
  int64_t split_ = 0;
  std::array<int, 16> offset_{};   // by tag
  std::array<int, 16> offsets_{};  // the different ones of live epochs, the current one's first
  int offset_count_ = 1;
  int64_t swept_lines_ = 0;  // lines under it have no dead entries
  int64_t split_at_ids_ = 0;
  int64_t merge_under_ids_ = 0;
  int insertions_to_merge_ = 0;
  int64_t limit_hits_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_EPOCH_TABLE_H_
