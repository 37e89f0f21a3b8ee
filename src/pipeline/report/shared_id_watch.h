// Finds ids that are none: a constant or a default, which many different events share.
#ifndef LETHE_SRC_PIPELINE_REPORT_SHARED_ID_WATCH_H_
#define LETHE_SRC_PIPELINE_REPORT_SHARED_ID_WATCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lethe/event.h"

namespace lethe {

// Watches the duplicates of one partition. An id is shared once kEnough duplicates of it in a row of its own
// differ in key or value from the one before, and they are at least half of its duplicates. Copies that a
// client or a retry loop sends are equal, and never make it so, however many there are.
//
// The ids that repeat most are known: in each of 16 sets of 4 places, the id with the lowest count makes room
// and leaves its count behind (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k
// Elements in Data Streams", ICDT 2005). So an id of more than a quarter of its set's duplicates is always
// found, and what is counted of it is never too much. 4 KiB, allocated with the first duplicate.
//
// Not thread-safe: it belongs to the lane of its partition.
class SharedIdWatch {
 public:
  static constexpr int64_t kEnough = 100;

  // Two events that differ and have one id.
  struct Pair {
    int64_t first_offset = 0;
    int64_t second_offset = 0;
  };

  // For each duplicate, with a hash of its key and value. If its id is shared, and it differs from the one
  // before: that one and this. A record that is judged again, after an abort, changes nothing.
  std::optional<Pair> Add(IdHash id, uint64_t content, int64_t offset);

 private:
  static constexpr size_t kSets = 16;
  static constexpr size_t kWays = 4;

  struct Place {
    uint64_t id = 0;
    uint64_t content = 0;  // of the last
    int64_t count = 0;     // at most so many duplicates
    int64_t own = 0;       // since it has the place
    int64_t differing = 0;
    int64_t offset = -1;   // of the last
    bool differs = false;  // the last, from the one before it
  };

  std::vector<Place> places_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_SHARED_ID_WATCH_H_
