#include "src/reconcile/key_ranges.h"

#include <algorithm>
#include <cstring>

#include "src/reconcile/mix.h"

namespace lethe {

int KeyRanges::BitsFor(uint64_t keys) {
  int bits = 0;
  while (bits < 12 && keys >> (bits + 6) > 0) ++bits;
  return bits;
}

KeyRanges::KeyRanges(int bits, const std::vector<uint64_t>& keys) : bits_(bits), sums_(size_t{1} << bits) {
  for (const uint64_t key : keys) {
    RangeSum& range = sums_[RangeOf(key)];
    range.sum += Mix(key);
    ++range.count;
  }
}

std::string KeyRanges::ToBytes(const std::vector<bool>& of) const {
  std::string bytes;
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (!of[i]) continue;
    const auto count = static_cast<uint32_t>(sums_[i].count);
    bytes.append(reinterpret_cast<const char*>(&sums_[i].sum), sizeof sums_[i].sum);
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
  }
  return bytes;
}

bool KeyRanges::Differing(absl::string_view bytes, const std::vector<bool>& of, std::vector<bool>& differing,
                          uint64_t& peer_keys) const {
  const auto ranges = static_cast<size_t>(std::count(of.begin(), of.end(), true));
  if (bytes.size() != ranges * kBytesOfRange) return false;
  differing.assign(sums_.size(), false);
  peer_keys = 0;
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (!of[i]) continue;
    uint64_t sum = 0;
    uint32_t count = 0;
    std::memcpy(&sum, bytes.data(), sizeof sum);
    std::memcpy(&count, bytes.data() + sizeof sum, sizeof count);
    bytes.remove_prefix(kBytesOfRange);
    if (sum == sums_[i].sum && count == static_cast<uint32_t>(sums_[i].count)) continue;
    differing[i] = true;
    peer_keys += count;
  }
  return true;
}

}  // namespace lethe
