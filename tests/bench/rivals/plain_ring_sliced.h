// A ring of plain Bloom filters in lethe's sliced layout: what pairs of generations cost or gain.
#ifndef LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_SLICED_H_
#define LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_SLICED_H_

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/reference/bit_positions.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// 16 generations, each a bit of a 16-bit cell. An id is in one generation, with four cells in each of its
// lines: as many as the sliced filter uses, which has two of them for each of two generations. The four are
// in a quarter of the line each. The oldest column is swept a few lines with each insertion in the last
// sixteenth of an interval, so 14 15/16 intervals are guaranteed: the horizon.
//
// Thread safety: as Filter.
template <int kLinesPerId>
class PlainRingSliced final : public EachIdFilter<PlainRingSliced<kLinesPerId>> {
 public:
  static constexpr int kGenerations = 16;
  static constexpr double kIntervalsInHorizon = kGenerations - 1.0625;

  PlainRingSliced(LineMemory memory, int64_t lines, int64_t horizon_ms, double window_ids)
      : memory_(std::move(memory)),
        lines_(static_cast<uint64_t>(lines)),
        clock_(static_cast<int64_t>(static_cast<double>(horizon_ms) / kIntervalsInHorizon) + 1),
        sweep_from_ms_(clock_.interval_ms() / 16 * 15),
        // Twice as fast as it must be, since insertions are not quite evenly spread.
        sweep_lines_(
            1 + static_cast<uint64_t>(32 * static_cast<double>(lines) / (window_ids / kIntervalsInHorizon))) {
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    if (stream_time_ms <= clock_.now_ms()) return;
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      if (swept_ < lines_) Sweep(lines_);
      newest_ = (newest_ + 1) % kGenerations;
      swept_ = lines_;
      live_ = static_cast<uint16_t>(~0u);
      retired_ = false;
      ++refreshes_;
    }
    if (!retired_ && clock_.interval_end_ms() - clock_.now_ms() < clock_.interval_ms() - sweep_from_ms_) {
      retired_ = true;
      swept_ = 0;
      live_ = static_cast<uint16_t>(~Oldest());
    }
  }

  FilterStatus Status() const override {
    return RingStatus(clock_, kGenerations - 2, refreshes_, memory_.bytes());
  }

 private:
  friend class EachIdFilter<PlainRingSliced>;
  using Cells = std::array<uint16_t*, 4 * kLinesPerId>;

  uint16_t* Line(uint64_t word) const {
    return static_cast<uint16_t*>(memory_.data()) + ScaleDown(word, lines_) * 32;
  }
  static uint64_t Word(IdHash id, int i) { return id.a + std::rotl(id.b, 11 * i); }

  void PrefetchId(IdHash id) const {
    for (int i = 0; i < kLinesPerId; ++i) __builtin_prefetch(Line(Word(id, i)), 1, 3);
  }

  Cells Find(IdHash id) const {
    Cells cells;
    for (int i = 0; i < kLinesPerId; ++i) {
      const uint64_t word = Word(id, i);
      uint16_t* const line = Line(word);
      const uint64_t bits = word * 0x9E3779B97F4A7C15u;
      for (int j = 0; j < 4; ++j) {
        cells[static_cast<size_t>(4 * i + j)] = line + 8 * j + (bits >> (52 + 3 * j) & 7);
      }
    }
    return cells;
  }

  bool IsIn(const Cells& cells) const {
    uint16_t columns = live_;
    for (const uint16_t* cell : cells) columns &= *cell;
    return columns != 0;
  }

  bool ContainsId(IdHash id) const { return IsIn(Find(id)); }
  void InsertId(IdHash id) { Set(Find(id)); }
  bool TestAndInsertId(IdHash id) {
    const Cells cells = Find(id);
    if (IsIn(cells)) return true;
    Set(cells);
    return false;
  }

  void Set(const Cells& cells) {
    const auto column = static_cast<uint16_t>(1u << newest_);
    for (uint16_t* cell : cells) *cell |= column;
    if (swept_ < lines_) Sweep(sweep_lines_);
  }

  uint16_t Oldest() const { return static_cast<uint16_t>(1u << ((newest_ + 1) % kGenerations)); }

  void Sweep(uint64_t lines) {
    const uint64_t keep = static_cast<uint16_t>(~Oldest()) * uint64_t{0x0001000100010001};
    auto* const words = static_cast<uint64_t*>(memory_.data());
    for (; lines > 0 && swept_ < lines_; --lines, ++swept_) {
      for (uint64_t i = 0; i < 8; ++i) words[8 * swept_ + i] &= keep;
    }
  }

  LineMemory memory_;
  const uint64_t lines_;
  StreamClock clock_;
  const int64_t sweep_from_ms_;
  const uint64_t sweep_lines_;
  int newest_ = 0;
  uint64_t swept_ = ~uint64_t{0};
  uint16_t live_ = static_cast<uint16_t>(~0u);
  bool retired_ = false;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_SLICED_H_
