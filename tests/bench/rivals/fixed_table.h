// The lines of the compact filter in a table of fixed size.
#ifndef LETHE_TESTS_BENCH_RIVALS_FIXED_TABLE_H_
#define LETHE_TESTS_BENCH_RIVALS_FIXED_TABLE_H_

#include <cstdint>
#include <utility>

#include "src/filter/compact_epochs.h"
#include "src/filter/compact_formats.h"
#include "src/filter/compact_line.h"
#include "src/filter/compact_probe.h"
#include "src/filter/each_id.h"
#include "src/memory/line_memory.h"
#include "src/published/bit_positions.h"

namespace lethe::bench {

// All lines are chosen by the same bits, and none is ever split: what compact takes beyond this is the price
// of a size that follows the load. An id whose lines are both full moves one entry to its other line; if none
// can move, the id is not inserted. Not for more than CompactLine::kStamps epochs: no line is renewed in
// time.
//
// Thread safety: as Filter.
template <typename Tag, typename Processor>
class FixedTable final : public EachIdFilter<FixedTable<Tag, Processor>> {
 public:
  FixedTable(LineMemory memory, int64_t lines, const CompactFormat& format, int64_t horizon_ms)
      : memory_(std::move(memory)),
        lines_(static_cast<uint64_t>(lines)),
        format_(format),
        epochs_(horizon_ms) {}

  void AdvanceTo(int64_t stream_time_ms) override { epochs_.AdvanceTo(stream_time_ms); }

  FilterStatus Status() const override {
    FilterStatus status;
    status.shape.refresh_period = epochs_.RefreshPeriod();
    status.window = epochs_.Window();
    status.refreshes = epochs_.begun();
    status.memory_bytes = memory_.bytes();
    status.fpp.modelled = static_cast<double>(epochs_.ids()) / static_cast<double>(lines_) *
                          Line::RateOfKnown(format_.known_bits());
    return status;
  }

 private:
  friend class EachIdFilter<FixedTable>;
  using Line = CompactLine<Tag>;

  template <typename Loop>
  static void Run(const Loop& loop) {
    Processor::Run(loop);
  }

  uint8_t* LineAt(uint64_t index) const {
    return static_cast<uint8_t*>(memory_.data()) + index * kCompactLineBytes;
  }
  uint64_t FirstLine(IdHash id) const { return ScaleDown(id.a, lines_); }
  // From either line of an id with that tag.
  uint64_t OtherLine(uint64_t index, Tag tag) const {
    const uint64_t sum = ScaleDown((uint64_t{tag} + 1) * 0x9E3779B97F4A7C15u, lines_);
    return sum >= index ? sum - index : sum + lines_ - index;
  }
  // The address bits of a field are an id's lowest, which have no part in the choice of a line.
  CompactPlace PlaceOf(uint64_t index, IdHash id) const {
    return {.line = LineAt(index), .format = &format_, .address_bits = id.a};
  }

  [[gnu::always_inline]] void PrefetchId(IdHash id) const {
    const uint64_t first = FirstLine(id);
    __builtin_prefetch(LineAt(first), 1);
    __builtin_prefetch(LineAt(OtherLine(first, Line::TagOf(id.b))), 1);
  }
  [[gnu::always_inline]] CompactFound Look(IdHash id) const {
    const Tag tag = Line::TagOf(id.b);
    const uint64_t first = FirstLine(id);
    CompactFound found;
    const bool in_first = ProbeLine<Processor>(PlaceOf(first, id), tag, epochs_.span(), &found.sides[0]);
    const bool in_other =
        ProbeLine<Processor>(PlaceOf(OtherLine(first, tag), id), tag, epochs_.span(), &found.sides[1]);
    found.contained = in_first | in_other;
    return found;
  }
  [[gnu::always_inline]] bool ContainsId(IdHash id) const { return Look(id).contained; }

  [[gnu::always_inline]] bool TestAndInsertId(IdHash id) {
    epochs_.BeginIfDue(INT64_MAX);
    CompactFound found = Look(id);
    if (found.contained) return true;
    Add(id, found);
    return false;
  }
  [[gnu::always_inline]] void InsertId(IdHash id) { TestAndInsertId(id); }

  [[gnu::always_inline]] void Add(IdHash id, const CompactFound& found) {
    const CompactSide* side = &found.sides[found.sides[1].weight > found.sides[0].weight ? 1 : 0];
    CompactSide freed;
    if (__builtin_expect(side->is_full(), 0)) {
      if (!MoveOne(id, found, &freed)) return;
      side = &freed;
    }
    Line::Append(side->place.line, format_, side->meta_word, epochs_.span(), side->live(),
                 static_cast<int>(side->dead), id.a, Line::TagOf(id.b));
    epochs_.Add();
  }

  [[gnu::noinline]] bool MoveOne(IdHash id, const CompactFound& found, CompactSide* freed) {
    Processor::Leave();
    const CompactSpan& span = epochs_.span();
    for (const CompactSide& side : found.sides) {
      uint8_t* const line = side.place.line;
      const auto index = static_cast<uint64_t>(line - LineAt(0)) / kCompactLineBytes;
      Line::Renew(line, format_, span);
      const CompactMeta meta = Line::MetaOf(line);
      int entry = 0;
      for (uint64_t ones = meta.mask; ones != 0; ones &= ones - 1, ++entry) {
        const uint64_t one = ones & -ones;
        CompactEntry moved = Line::EntryAt(line, format_, 0, 0, Line::SlotOf(format_, meta, entry));
        uint8_t* const other = LineAt(OtherLine(index, static_cast<Tag>(moved.tag)));
        if (Line::Live(other, span) == format_.slots) continue;
        moved.epoch = Line::EpochOf(span, entry, one);
        Line::Insert(other, format_, 0, span, moved);
        Line::Remove(line, format_, meta, entry, one);
        ProbeLine<Processor>(side.place, Line::TagOf(id.b), span, freed);
        return true;
      }
    }
    return false;
  }

  LineMemory memory_;
  const uint64_t lines_;
  const CompactFormat format_;
  CompactEpochs epochs_;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_FIXED_TABLE_H_
