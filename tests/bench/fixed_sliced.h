// The sliced layout by itself, of a size that is given: for other numbers of generations and other shapes
// than lethe uses.
#ifndef LETHE_TESTS_BENCH_FIXED_SLICED_H_
#define LETHE_TESTS_BENCH_FIXED_SLICED_H_

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// A forgetful Bloom filter with strict pairs on SlicedLines or ShapedLines, with one generation per bit of a
// cell. The horizon is G - 2 intervals; a refresh sweeps the oldest column at once (which is not timed
// apart).
//
// Thread safety: as Filter.
template <typename Lines>
class FixedSliced final : public EachIdFilter<FixedSliced<Lines>> {
 public:
  using Cell = std::remove_const_t<decltype(Lines::kEvenColumns)>;

  FixedSliced(LineMemory memory, int64_t lines, int64_t horizon_ms)
      : memory_(std::move(memory)),
        lines_(memory_.data(), lines),
        clock_((horizon_ms + Lines::kColumns - 3) / (Lines::kColumns - 2)) {
    TakeColumns();
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      future_ = (future_ + 1) % Lines::kColumns;
      lines_.BeginSweep(Column(future_));
      lines_.Advance(lines_.lines());
      TakeColumns();
      ++refreshes_;
    }
  }

  FilterStatus Status() const override {
    return RingStatus(clock_, Lines::kColumns - 2, refreshes_, memory_.bytes());
  }

 private:
  friend class EachIdFilter<FixedSliced>;

  static Cell Column(int i) { return static_cast<Cell>(Cell{1} << i); }

  void TakeColumns() {
    const int present = (future_ + Lines::kColumns - 1) % Lines::kColumns;
    even_ = Column(future_ % 2 == 0 ? future_ : present);
    odd_ = Column(future_ % 2 == 0 ? present : future_);
    // Bit j stands for the pair (j, j - 1): not so for the oldest and the future.
    pairs_ = static_cast<Cell>(~Column((future_ + 1) % Lines::kColumns));
  }

  void PrefetchId(IdHash id) const { lines_.Prefetch(id); }
  bool IsIn(Cell columns) const { return (columns & std::rotl(columns, 1) & pairs_) != 0; }
  bool ContainsId(IdHash id) const { return IsIn(lines_.Columns(id)); }
  void InsertId(IdHash id) { Lines::Set(lines_.Find(id), even_, odd_); }
  bool TestAndInsertId(IdHash id) {
    const typename Lines::Places places = lines_.Find(id);
    if (IsIn(Lines::Columns(places))) return true;
    Lines::Set(places, even_, odd_);
    return false;
  }

  LineMemory memory_;
  Lines lines_;
  StreamClock clock_;
  int future_ = 0;
  Cell pairs_ = 0;
  Cell even_ = 0;
  Cell odd_ = 0;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_FIXED_SLICED_H_
