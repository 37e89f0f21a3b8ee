// How wide the fingerprints of a compact filter are.
#ifndef LETHE_SRC_FILTER_COMPACT_FORMATS_H_
#define LETHE_SRC_FILTER_COMPACT_FORMATS_H_

#include <array>
#include <cmath>
#include <cstddef>

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

// Tables of so many bytes and more take their memory by huge pages.
inline constexpr int64_t kCompactHugeFrom = int64_t{32} << 20;

struct CompactFormats {
  bool wide = false;  // tags of 16 bits
  int fingerprint_bits = 0;
  std::array<CompactFormat, kCompactMostLevel + 1> of_level = {};

  const CompactFormat& operator[](int level) const { return of_level[static_cast<size_t>(level)]; }
  // The probability that an id that was never inserted equals an entry with all of its bits: that the entry
  // is in one of the id's two lines, of 2^level, and that the bits are the same.
  double rate_of(int level) const { return std::ldexp(1.0, 1 - level - fingerprint_bits_of(level)); }
  int fingerprint_bits_of(int level) const { return (*this)[level].known_bits() + (wide ? 16 : 8); }
};

// The narrowest fingerprints whose false-positive probability stays under the target. A lookup meets two
// lines of `slots` entries at kCompactFullLoad, and each equals the id's fingerprint of f bits with the
// probability 2^-f. Entries lose a bit with each doubling of the table, so a table that grows from nothing
// within one horizon has up to 2.2 times that rate: tables of fewer than 2^20 lines have half a bit more for
// each halving, and the sum of that series is 1.2.
CompactFormats CompactFormatsFor(double target_fpp);

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_FORMATS_H_
