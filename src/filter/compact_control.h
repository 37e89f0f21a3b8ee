// What a compact filter decides, whatever its tags and its processor are: when its table grows and shrinks,
// and when an epoch begins or goes before its time.
#ifndef LETHE_SRC_FILTER_COMPACT_CONTROL_H_
#define LETHE_SRC_FILTER_COMPACT_CONTROL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/adapt/step_log.h"
#include "src/filter/compact_epochs.h"
#include "src/filter/compact_lines.h"
#include "src/filter/engine_filter.h"
#include "src/memory/line_memory.h"
#include "src/memory/reservation.h"

namespace lethe {

// The memory of a new filter: that of its first lines, and its own.
struct CompactMemory {
  LineMemory lines;
  Reservation own;
};
// ResourceExhausted if the budget has no room for both.
absl::StatusOr<CompactMemory> TakeCompactMemory(MemoryBudget* budget, int64_t own_bytes);

// Invariant: the lines hold the ids of epochs_, and memory that was taken beyond them is given back by
// Work(). Thread safety: as Filter.
class CompactControl : public EngineFilter {
 public:
  FilterStatus Figures() const override;
  void GetFigures(FilterStatus* into, bool with_generations) const override;
  std::unique_ptr<EngineFilter::Sample> BeginSample(int64_t most_lines) const override;

  absl::StatusOr<FilterImage> BeginCopy() const override;
  bool CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const override;
  // Insertions add entries, which an image may have or not; CompactCopy is for entries that leave a line. An
  // epoch that begins or dies changes what the lines mean, and so does the first time.
  int64_t ImageEpoch() const override {
    return epochs_.span().newest + epochs_.span().oldest + (epochs_.now_ms() == kNoStreamTime ? 0 : 1);
  }
  absl::StatusOr<std::vector<absl::Span<char>>> Restore(absl::string_view state, int64_t bytes) override;
  bool Restored() override;

 protected:
  // Comes before all others: the table is of who derives from this.
  void Control(CompactLines* table);
  CompactControl(const FilterOptions& options, Reservation own);
  ~CompactControl() override;
  // Besides the object itself.
  static int64_t HeapBytes();

  void NoteEpoch();
  // A generation's share of the table.
  int64_t GenerationBits() const;
  // The need is the lines of a table that these ids fill until it has to grow.
  int64_t MemoryAboveNeed() const;
  void Record(AdaptationStep::Kind kind, absl::string_view reason);
  // Does a part of the due work, for some microseconds; shrinks by more lines if time demands it.
  void Work(int64_t lines_due);
  void Grow();
  // Expired entries are already removed: asks for memory once more, then shortens the window.
  void MakeRoom();
  void MakeSomeRoom();
  // Whether the table grows, as far as there is memory.
  bool IsFull() const { return LoadIsOver(kCompactFullLoad); }
  bool LoadIsOver(double load) const {
    return static_cast<double>(epochs_.ids()) > load * static_cast<double>(table_->slots());
  }
  void Sweep(int64_t lines);
  // The rate of an entry if the table's lines had so many slots.
  double RateWith(int slots, int split_slots) const;
  // At most the rate of all ids then: each entry loses what the formats do, though some lost it before.
  double MostFppWith(int slots, int split_slots) const;
  int SettledSlots(bool split) const;
  // If ids keep coming as since the beginning of the last epoch but one: how many times the present ids the
  // table will hold, at least 1.
  double GrowthToCome() const;
  void SweepIfSettled();
  // Where the table cannot grow, what was kept for growth makes room, as far as the target allows.
  bool SweepAtLimit();
  // The slots of lines that are split from now on.
  int SlotsToGrow() const;
  // By up to so many lines. False if it did not grow.
  bool Split(int most);
  // As long as ids are stashed, the table grows at any load at which it would not shrink.
  void DrainStash();
  // The entries that a split had no room for.
  void CountDropped();
  void Shrink(int64_t lines_due);
  // Overflows that are frequent make the table grow before it is full.
  void NotePressure();
  // The oldest epoch makes room.
  void ForgetAtLimit();
  // Others need memory: gives back, an epoch at a time, if it holds more than an even part.
  void Yield();
  // A share of the slots at the limit. With a share of the present slots, a growing table would soon have the
  // most epochs that are possible, and no other could begin in time.
  int64_t EpochIdsAtLimit() const;
  // The thresholds that the hot path looks at.
  void NoteSize();
  // After what may have made work for Work(), or ended it.
  void NoteDue();
  // A filter that may come to its limit before it has doubled must have more than one epoch to forget.
  void NoteLimit();
  // In proportion to the time that has passed: all lines that there is memory for, some times a
  // horizon.
  int64_t LinesDue(int64_t now_ms, int64_t before_ms) const;

  MemoryBudget* const budget_;
  // What the hot path looks at.
  CompactEpochs epochs_;
  int64_t due_over_ids_ = -1;  // with more ids there is work
  int64_t grow_over_ids_ = 0;
  int64_t limit_ids_ = 0;
  int64_t shrink_under_ids_ = 0;
  int64_t merge_failed_at_ = INT64_MAX;  // no merge is tried with more ids
  int64_t most_ids_in_epoch_ = INT64_MAX;
  int64_t inserts_ = 0;
  int64_t lost_ids_ = 0;

 private:
  class Looker;
  template <typename Self, typename Fields>
  static void Transfer(Self& self, int64_t& memory_bytes, Fields& fields);

  CompactLines* table_ = nullptr;
  const double target_fpp_;
  const Reservation own_;
  StepLog steps_;
  int recorded_level_ = kCompactLeastLevel;
  int64_t merged_at_ = 0;    // in inserts
  int64_t overflow_at_ = 0;  // likewise
  int64_t drain_at_ = 0;     // likewise
  int64_t pressure_ = 0;
  int64_t peak_ids_ = 0;
  int64_t no_shrink_before_ = 0;  // in epochs begun
  int64_t limit_hits_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_CONTROL_H_
