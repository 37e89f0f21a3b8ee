// Looking for a fingerprint in the two lines of an id.
#ifndef LETHE_SRC_FILTER_COMPACT_PROBE_H_
#define LETHE_SRC_FILTER_COMPACT_PROBE_H_

#include <cstdint>

#include "src/filter/compact_line.h"

namespace lethe {

// One of the lines, and the id's address bits above the line's level.
struct CompactPlace {
  const uint8_t* line;
  const CompactFormat* format;
  uint64_t address_bits;
};

struct CompactFound {
  bool contained = false;
  // Slots without a live entry in each of the lines, and entries that are dead.
  int8_t room_first = 0;
  int8_t room_second = 0;
  int8_t dead_first = 0;
  int8_t dead_second = 0;

  friend bool operator==(const CompactFound&, const CompactFound&) = default;
};

template <typename Tag>
using CompactProbe = CompactFound (*)(const CompactPlace& first, const CompactPlace& second, Tag tag,
                                      const CompactSpan& span);

// For any processor; and the fastest that the one at hand has. All give the same answers.
template <typename Tag>
CompactProbe<Tag> PortableCompactProbe();
template <typename Tag>
CompactProbe<Tag> FastestCompactProbe();

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_PROBE_H_
