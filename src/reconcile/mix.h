// Mixing of 64 bits, the same on every machine: both peers must compute alike.
#ifndef LETHE_SRC_RECONCILE_MIX_H_
#define LETHE_SRC_RECONCILE_MIX_H_

#include <cstdint>

namespace lethe {

// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): a bijection that spreads each bit over all.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace lethe

#endif  // LETHE_SRC_RECONCILE_MIX_H_
