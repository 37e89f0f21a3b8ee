// What two random lines of memory take.
#ifndef LETHE_TESTS_BENCH_RIVALS_TWO_LINES_H_
#define LETHE_TESTS_BENCH_RIVALS_TWO_LINES_H_

#include <cstdint>
#include <utility>

#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/published/bit_positions.h"
#include "tests/bench/ring_status.h"

namespace lethe::bench {

// No filter: for each id a word of two lines is read, and one of them is written. It remembers nothing.
class TwoLines final : public EachIdFilter<TwoLines> {
 public:
  TwoLines(LineMemory memory, int64_t horizon_ms)
      : memory_(std::move(memory)),
        words_(static_cast<uint64_t*>(memory_.data())),
        count_(static_cast<uint64_t>(memory_.bytes()) / sizeof(uint64_t)),
        clock_(horizon_ms) {}

  void AdvanceTo(int64_t stream_time_ms) override { clock_.AdvanceTo(stream_time_ms); }
  FilterStatus Status() const override { return RingStatus(clock_, 1, 0, memory_.bytes()); }

 private:
  friend class EachIdFilter<TwoLines>;

  uint64_t* At(uint64_t hash) const { return words_ + ScaleDown(hash, count_); }
  void PrefetchId(IdHash id) const {
    __builtin_prefetch(At(id.a), 1);
    __builtin_prefetch(At(id.b), 1);
  }
  bool ContainsId(IdHash id) const { return (*At(id.a) ^ *At(id.b)) == (id.a | 1); }
  void InsertId(IdHash id) { *At(id.a) = id.b & ~uint64_t{1}; }  // never what ContainsId() looks for

  LineMemory memory_;
  uint64_t* const words_;
  const uint64_t count_;
  StreamClock clock_;
};

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RIVALS_TWO_LINES_H_
