// What a rival says of itself: as much as is measured.
#ifndef LETHE_TESTS_BENCH_RING_STATUS_H_
#define LETHE_TESTS_BENCH_RING_STATUS_H_

#include <cstdint>

#include "lethe/filter.h"
#include "src/filter/stream_clock.h"

namespace lethe::bench {

// A ring that keeps so many intervals before the current one, and has begun a new one `refreshes` times.
inline FilterStatus RingStatus(const StreamClock& clock, int64_t intervals, int64_t refreshes,
                               int64_t memory_bytes) {
  FilterStatus status;
  status.shape.refresh_period = absl::Milliseconds(clock.interval_ms());
  status.window = clock.Since(intervals);
  status.refreshes = refreshes;
  status.memory_bytes = memory_bytes;
  return status;
}

}  // namespace lethe::bench

#endif  // LETHE_TESTS_BENCH_RING_STATUS_H_
