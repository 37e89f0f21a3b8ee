// One Bloom filter: m bits, k of them for each id.
#ifndef LETHE_SRC_PUBLISHED_BIT_ARRAY_H_
#define LETHE_SRC_PUBLISHED_BIT_ARRAY_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "lethe/event.h"
#include "src/published/bit_positions.h"

namespace lethe {

// Thread safety: none; const methods may run together.
class BitArray {
 public:
  static constexpr int64_t BytesFor(int64_t bits) { return (bits + 63) / 64 * 8; }

  // All bits are 0, in pages that the system gives when they are first written. Nothing if the system
  // refuses the memory.
  static std::optional<BitArray> Create(int64_t bits, int hashes) {
    BitArray array(bits, hashes);
    if (array.words_ == nullptr) return std::nullopt;
    return array;
  }

  bool Contains(IdHash id) const {
    BitPositions positions(id, bits_);
    for (int i = 0; i < hashes_; ++i) {
      const uint64_t position = positions.Next();
      if ((words_[position / 64] >> (position % 64) & 1) == 0) return false;
    }
    return true;
  }

  // Returns how many of the bits were not set before.
  int Insert(IdHash id) {
    BitPositions positions(id, bits_);
    int fresh = 0;
    for (int i = 0; i < hashes_; ++i) {
      const uint64_t position = positions.Next();
      uint64_t& word = words_[position / 64];
      const uint64_t bit = uint64_t{1} << (position % 64);
      fresh += (word & bit) == 0 ? 1 : 0;
      word |= bit;
    }
    return fresh;
  }

  // The share of the bits that are set, in a sample of some 65,000.
  double Fill() const {
    constexpr size_t kSampledWords = 1024;
    const absl::Span<const uint64_t> all = words();
    const size_t samples = std::min(all.size(), kSampledWords);
    int64_t set = 0;
    for (size_t i = 0; i < samples; ++i) set += std::popcount(all[i * all.size() / samples]);
    return static_cast<double>(set) /
           static_cast<double>(std::min(static_cast<int64_t>(64 * samples), bits()));
  }

  void Clear() { std::memset(words_.get(), 0, static_cast<size_t>(bytes())); }

  int64_t bits() const { return static_cast<int64_t>(bits_); }
  int64_t bytes() const { return BytesFor(bits()); }
  int hashes() const { return hashes_; }
  absl::Span<char> memory() { return {reinterpret_cast<char*>(words_.get()), static_cast<size_t>(bytes())}; }
  absl::Span<const char> memory() const {
    return {reinterpret_cast<const char*>(words_.get()), static_cast<size_t>(bytes())};
  }
  // The bits in their order; those behind the last one are 0.
  absl::Span<const uint64_t> words() const { return {words_.get(), static_cast<size_t>(bytes() / 8)}; }

 private:
  struct Free {
    void operator()(uint64_t* words) const { std::free(words); }
  };

  BitArray(int64_t bits, int hashes)
      : bits_(static_cast<uint64_t>(bits)),
        hashes_(hashes),
        words_(static_cast<uint64_t*>(std::calloc(static_cast<size_t>(BytesFor(bits) / 8), 8))) {}

  uint64_t bits_;
  int hashes_;
  std::unique_ptr<uint64_t[], Free> words_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PUBLISHED_BIT_ARRAY_H_
