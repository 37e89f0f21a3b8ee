// Where the bits of an id are in a Bloom filter of m bits.
#ifndef LETHE_SRC_PUBLISHED_BIT_POSITIONS_H_
#define LETHE_SRC_PUBLISHED_BIT_POSITIONS_H_

#include <bit>
#include <cstdint>

#include "lethe/event.h"

namespace lethe {

// x * n / 2^64: takes a uniform 64-bit word to a uniform index below n by its high bits, without a
// division.
inline uint64_t ScaleDown(uint64_t x, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * n) >> 64);
}

// The positions of one id, by double hashing over its 128 bits: position i is the high half of
// (a + i b) m. With the step constant, an id whose b is close to a small fraction of 2^64 would have all
// its bits in one place or two, and one id in some m would be a false positive however many bits are
// asked for; so the step itself moves by a second one, c, made of b's other half ("enhanced double
// hashing", Dillinger and Manolios): a + i b + i (i - 1) / 2 c.
class BitPositions {
 public:
  BitPositions(IdHash id, uint64_t bits)
      : bits_(bits), word_(id.a), step_(id.b | 1), step_of_step_(std::rotl(id.b, 32) | 1) {}

  uint64_t Next() {
    const uint64_t position = ScaleDown(word_, bits_);
    word_ += step_;
    step_ += step_of_step_;
    return position;
  }

 private:
  const uint64_t bits_;
  uint64_t word_;
  uint64_t step_;
  const uint64_t step_of_step_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_BIT_POSITIONS_H_
