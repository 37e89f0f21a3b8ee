// How wide the fingerprints of a compact filter are.
#ifndef LETHE_SRC_FILTER_COMPACT_FORMATS_H_
#define LETHE_SRC_FILTER_COMPACT_FORMATS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "src/filter/compact_line.h"

namespace lethe {

// The lowest target that may be asked for: that of fingerprints of 56 bits, which is practically exact. In
// tables of up to 2^24 lines, 10^8 ids, their addresses of 64 bits hold them.
inline constexpr double kLowestCompactTarget = 1e-15;

// Tables have from 2^kCompactLeastLevel to 2^kCompactMostLevel lines: 4 KiB to 64 GiB.
inline constexpr int kCompactLeastLevel = 6;
inline constexpr int kCompactMostLevel = 30;

// When a table is split. Two-choice hashing finds room in one of the two lines up to some 0.93; the rest is
// for the time in which a part of the lines is split, and for speed: at 0.88 one insert in 14 has to move
// another entry, which takes as long as five inserts, and saves 3 % of memory.
inline constexpr double kCompactFullLoad = 0.85;

inline constexpr int kCompactSmallLevel = 12;

// Tables of so many bytes and more take their memory by huge pages.
inline constexpr int64_t kCompactHugeFrom = int64_t{32} << 20;

// The formats of one target. Those with fewer slots have wider fingerprints.
struct CompactFormats {
  bool wide = false;  // tags of 16 bits
  int fingerprint_bits = 0;
  int fewest_slots = 0;
  std::array<uint8_t, kCompactMostLevel + 2> settled_slots = {};  // by level
  std::array<CompactFormat, CompactLine<uint8_t>::kMostSlots + 1> of_slots = {};

  // That of lines of a level.
  CompactFormat Of(int slots, int level) const {
    CompactFormat format = of_slots[static_cast<size_t>(slots)];
    format.whole_bits = static_cast<uint8_t>(std::min(format.known_bits(), 64 - level));
    return format;
  }
  // The format in a table that has not grown within a horizon.
  CompactFormat operator[](int level) const { return Of(settled_slots[static_cast<size_t>(level)], level); }
  int bits_of(const CompactFormat& format) const { return format.known_bits() + (wide ? 16 : 8); }
  int fingerprint_bits_of(int level) const { return bits_of((*this)[level]); }
  // The probability that an id that was never inserted equals an entry with all of its bits: that the entry
  // is in one of the id's two lines, of 2^level, and that the bits are the same.
  double RateOf(int slots, int level) const { return std::ldexp(1.0, 1 - level - bits_of(Of(slots, level))); }
};

// The narrowest fingerprints whose false-positive probability stays under the target. A lookup meets two
// lines of `slots` entries at kCompactFullLoad, and each equals the id's fingerprint of f bits with the
// probability 2^-f. What is left of the target is for growth: an entry keeps its rate while the table
// doubles, so those of before come on top (CompactGrowth). Tables under 2^kCompactSmallLevel lines, which
// cost little, have wider ones at once.
CompactFormats CompactFormatsFor(double target_fpp);

// What the rate of a table is made of, to choose the formats of its lines by.
struct CompactLoad {
  double fpp = 0;  // of what it holds
  int level = 0;
  double split = 0;  // the part of its 2^level lines that is split
  int slots = 0;     // of a line that is not
};

// The most slots, up to `most`, of lines that are split now such that the rate stays under `target` however
// far the table grows: until it has doubled, half of what comes goes into lines that are not split yet, half
// into those that are; and half of the next doubling goes into these again. They may take `share` of what is
// left of the target, later doublings the rest. Not under three quarters of `load.slots`: half of a line has
// to have room there.
int CompactSlotsFor(const CompactFormats& formats, const CompactLoad& load, double target, double share,
                    int most);

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_FORMATS_H_
