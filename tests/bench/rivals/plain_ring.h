// A ring of plain Bloom filters, each an array of its own: the usual way to forget with Bloom filters.
#ifndef LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_H_
#define LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/reference/arrays/bit_positions.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// An id sets k bits of the newest of 16 generations, and is looked for in all, from the newest on. The
// horizon is 15 intervals; a refresh clears an array at once. All use the same positions.
//
// Thread safety: as Filter.
class PlainRing final : public EachIdFilter<PlainRing> {
 public:
  static constexpr int kGenerations = 16;

  // Memory is kGenerations x `bits` bits, `bits` being a multiple of 64.
  PlainRing(LineMemory memory, int64_t bits, int hashes, int64_t horizon_ms)
      : memory_(std::move(memory)),
        words_(static_cast<uint64_t*>(memory_.data())),
        bits_(static_cast<uint64_t>(bits)),
        hashes_(hashes),
        clock_((horizon_ms + kGenerations - 2) / (kGenerations - 1)) {}

  void AdvanceTo(int64_t stream_time_ms) override {
    for (uint64_t due = clock_.AdvanceTo(stream_time_ms); due > 0; --due) {
      newest_ = (newest_ + 1) % kGenerations;
      std::memset(Generation(newest_), 0, bits_ / 8);
      ++refreshes_;
    }
  }

  FilterStatus Status() const override {
    return RingStatus(clock_, kGenerations - 1, refreshes_, memory_.bytes());
  }

 private:
  friend class EachIdFilter<PlainRing>;

  uint64_t* Generation(uint64_t slot) const { return words_ + slot * (bits_ / 64); }

  void PrefetchId(IdHash id) const {
    // The first bit of each generation: half of the look-ups end there.
    const uint64_t first = BitPositions(id, bits_).Next();
    for (uint64_t slot = 0; slot < kGenerations; ++slot) __builtin_prefetch(Generation(slot) + first / 64);
  }

  bool ContainsId(IdHash id) const {
    for (uint64_t age = 0; age < kGenerations; ++age) {
      if (IsIn(Generation((newest_ + kGenerations - age) % kGenerations), id)) return true;
    }
    return false;
  }

  bool IsIn(const uint64_t* words, IdHash id) const {
    BitPositions positions(id, bits_);
    for (int i = 0; i < hashes_; ++i) {
      const uint64_t position = positions.Next();
      if ((words[position / 64] >> (position % 64) & 1) == 0) return false;
    }
    return true;
  }

  void InsertId(IdHash id) {
    uint64_t* const words = Generation(newest_);
    BitPositions positions(id, bits_);
    for (int i = 0; i < hashes_; ++i) {
      const uint64_t position = positions.Next();
      words[position / 64] |= uint64_t{1} << (position % 64);
    }
  }

  LineMemory memory_;
  uint64_t* const words_;
  const uint64_t bits_;
  const int hashes_;
  StreamClock clock_;
  uint64_t newest_ = 0;
  int64_t refreshes_ = 0;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_PLAIN_RING_H_
