// Checksums of a set's ranges: a few bytes show which parts of two sets are equal.
#ifndef LETHE_SRC_RECONCILE_KEY_RANGES_H_
#define LETHE_SRC_RECONCILE_KEY_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lethe {

// A range is the keys that begin with the same bits.
struct RangeSum {
  uint64_t sum = 0;    // of Mix(key)
  uint64_t count = 0;  // of keys
  friend bool operator==(const RangeSum&, const RangeSum&) = default;
};

class KeyRanges {
 public:
  // A power of two up to 4,096: one range for every 64 keys or so.
  static int BitsFor(uint64_t keys);

  KeyRanges(int bits, const std::vector<uint64_t>& keys);

  static size_t RangeOf(uint64_t key, int bits) {
    return bits == 0 ? 0 : static_cast<size_t>(key >> (64 - bits));
  }
  size_t RangeOf(uint64_t key) const { return RangeOf(key, bits_); }
  const std::vector<RangeSum>& sums() const { return sums_; }

  // Little-endian: the sum (8 bytes) and the count (4 bytes, modulo 2^32) of each range in `of`.
  std::string ToBytes(const std::vector<bool>& of) const;
  static constexpr size_t kBytesOfRange = 12;

  // The ranges in `of` that differ from these bytes; `peer_keys` is the number of the peer's keys in them.
  // False if the number of bytes is wrong.
  bool Differing(absl::string_view bytes, const std::vector<bool>& of, std::vector<bool>& differing,
                 uint64_t& peer_keys) const;

 private:
  const int bits_;
  std::vector<RangeSum> sums_;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECONCILE_KEY_RANGES_H_
