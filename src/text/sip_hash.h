// SipHash: a pseudo-random function of bytes with a key of 128 bits (Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", INDOCRYPT 2012; the output of 128 bits is that of the authors' reference code).
#ifndef LETHE_SRC_TEXT_SIP_HASH_H_
#define LETHE_SRC_TEXT_SIP_HASH_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "lethe/event.h"

namespace lethe {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

// With `kPerWord` rounds for each eight bytes and `kAtEnd` for each half of the output: 2 and 4 is the
// authors' first choice, 1 and 3 what they propose for tables. No package has the latter with 128 bits, and
// the packages that would do take half as long again for ids (tests/bench/hash_bench.cc).
//
// Forced inline: it is compiled to be fast for those that hash each id.
template <int kPerWord, int kAtEnd>
class SipHash {
 public:
  [[gnu::always_inline]] static inline IdHash Of(absl::string_view bytes, HashKey key) {
    SipHash state(key, /*wide=*/0xee);
    state.Absorb(bytes);
    state.v2_ ^= 0xee;
    const uint64_t a = state.Squeeze();
    state.v1_ ^= 0xdd;
    return {.a = a, .b = state.Squeeze()};
  }

  // The same function with 64 bits, whose outputs are unrelated to those.
  [[gnu::always_inline]] static inline uint64_t Of64(absl::string_view bytes, HashKey key) {
    SipHash state(key, /*wide=*/0);
    state.Absorb(bytes);
    state.v2_ ^= 0xff;
    return state.Squeeze();
  }

 private:
  [[gnu::always_inline]] inline SipHash(HashKey key, uint64_t wide)
      : v0_(key.low ^ 0x736f6d6570736575),
        v1_(key.high ^ 0x646f72616e646f6d ^ wide),
        v2_(key.low ^ 0x6c7967656e657261),
        v3_(key.high ^ 0x7465646279746573) {}

  template <int kRounds>
  [[gnu::always_inline]] inline void Mix() {
    for (int i = 0; i < kRounds; ++i) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  [[gnu::always_inline]] inline void AbsorbWord(uint64_t word) {
    v3_ ^= word;
    Mix<kPerWord>();
    v0_ ^= word;
  }

  template <typename Word>
  [[gnu::always_inline]] static inline uint64_t Load(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }

  // The words, then one of the bytes that are left and, in its highest byte, the length.
  [[gnu::always_inline]] inline void Absorb(absl::string_view bytes) {
    const char* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; left -= 8, at += 8) AbsorbWord(Load<uint64_t>(at));
    uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
    // Two loads that overlap, or three bytes of which some are the same, in place of a loop.
    if (left >= 4) {
      last |= Load<uint32_t>(at) | Load<uint32_t>(at + left - 4) << (8 * (left - 4));
    } else if (left > 0) {
      last |= Load<uint8_t>(at) | Load<uint8_t>(at + left / 2) << (8 * (left / 2)) |
              Load<uint8_t>(at + left - 1) << (8 * (left - 1));
    }
    AbsorbWord(last);
  }

  [[gnu::always_inline]] inline uint64_t Squeeze() {
    Mix<kAtEnd>();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace lethe

#endif  // LETHE_SRC_TEXT_SIP_HASH_H_
