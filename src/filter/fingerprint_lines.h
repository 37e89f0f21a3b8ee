// What a processor does with lines of fingerprints: 64 bytes, 16 entries at once.
#ifndef LETHE_SRC_FILTER_FINGERPRINT_LINES_H_
#define LETHE_SRC_FILTER_FINGERPRINT_LINES_H_

#include <cstdint>

namespace lethe {

// A line is 16 entries of 32 bits, aligned to 64 bytes. An entry is a fingerprint in its high 28 bits and
// a tag in its low 4; tag 0 is an empty entry. Sets of tags are words, bit by bit; `live` never has bit 0.
inline constexpr int kEntriesInLine = 16;
inline constexpr uint32_t kTagMask = 15;

// Bits 0 to 15 are about the entries of the first line, 16 to 31 about those of the second.
struct TwoLines {
  uint32_t hits = 0;  // has a live tag and the fingerprint
  uint32_t free = 0;  // has no live tag

  friend bool operator==(TwoLines x, TwoLines y) { return x.hits == y.hits && x.free == y.free; }
};

struct LineOperations {
  // The fingerprint's low 4 bits are 0.
  TwoLines (*scan)(const uint32_t* first, const uint32_t* second, uint32_t fingerprint, uint32_t live);
  // Empties the entries of `count` lines that have no live tag.
  void (*clear_dead)(uint32_t* lines, int64_t count, uint32_t live);
};

// For any processor; and the fastest that the one at hand has. Both do the same.
const LineOperations& PortableLineOperations();
const LineOperations& FastestLineOperations();

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_FINGERPRINT_LINES_H_
