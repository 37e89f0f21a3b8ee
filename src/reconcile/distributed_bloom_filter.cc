#include "lethe/distributed_bloom_filter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "src/reconcile/mix.h"

namespace lethe {

DistributedBloomFilter::DistributedBloomFilter(uint64_t peer, uint64_t other_peer, uint64_t round,
                                               uint64_t bits, int hashes)
    : bits_(bits | 1), bytes_(static_cast<size_t>(bits_ / 8 + 1), '\0') {
  const uint64_t pair = Mix(peer ^ other_peer) ^ Mix(round);
  for (int i = 0; i < std::clamp(hashes, 1, 16); ++i) {
    seeds_.push_back(Mix(pair + static_cast<uint64_t>(i) * 0xd1342543de82ef95));
  }
}

void DistributedBloomFilter::Insert(uint64_t element) {
  for (const uint64_t seed : seeds_) {
    const uint64_t bit = (element ^ seed) % bits_;
    char& byte = bytes_[static_cast<size_t>(bit / 8)];
    byte = static_cast<char>(byte | 1 << (bit % 8));
  }
}

bool DistributedBloomFilter::Contains(uint64_t element) const {
  return std::all_of(seeds_.begin(), seeds_.end(), [&](uint64_t seed) {
    const uint64_t bit = (element ^ seed) % bits_;
    return (bytes_[static_cast<size_t>(bit / 8)] >> (bit % 8) & 1) != 0;
  });
}

absl::Status DistributedBloomFilter::SetBytes(absl::string_view bytes) {
  if (bytes.size() != bytes_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a Bloom filter of ", bits_, " bits has ", bytes_.size(), " bytes, not ", bytes.size()));
  }
  bytes_.assign(bytes.data(), bytes.size());
  return absl::OkStatus();
}

}  // namespace lethe
