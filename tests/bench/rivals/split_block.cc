#include "tests/bench/rivals/split_block.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace lethe::bench {
namespace {

// Odd multipliers, one for each word: of even generations (Parquet's own) and of odd ones.
alignas(32) constexpr uint32_t kSalt[2][8] = {
    {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31},
    {0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1, 0xd3a2646d, 0xfd7046c5, 0xb55a4f09}};

SplitBlock Mask(uint32_t key, int parity) {
  SplitBlock mask;
  for (int i = 0; i < 8; ++i) mask.words[i] = 1u << (key * kSalt[parity][i] >> 27);
  return mask;
}

uint32_t FindPortable(const SplitBlock* blocks, uint32_t key) {
  const SplitBlock masks[2] = {Mask(key, 0), Mask(key, 1)};
  uint32_t found = 0;
  for (int g = 0; g < kSplitGenerations; ++g) {
    uint32_t missing = 0;
    for (int i = 0; i < 8; ++i) missing |= masks[g % 2].words[i] & ~blocks[g].words[i];
    found |= (missing == 0 ? 1u : 0u) << g;
  }
  return found;
}

void SetPortable(SplitBlock* blocks, uint32_t key, int one, int other) {
  for (const int g : {one, other}) {
    const SplitBlock mask = Mask(key, g % 2);
    for (int i = 0; i < 8; ++i) blocks[g].words[i] |= mask.words[i];
  }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) inline __m256i MaskAvx2(uint32_t key, int parity) {
  const __m256i salt = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSalt[parity]));
  const __m256i product = _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(key)), salt);
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
}

__attribute__((target("avx2"))) uint32_t FindAvx2(const SplitBlock* blocks, uint32_t key) {
  const __m256i even = MaskAvx2(key, 0);
  const __m256i odd = MaskAvx2(key, 1);
  const auto* const at = reinterpret_cast<const __m256i*>(blocks);
  uint32_t found = 0;
  for (int g = 0; g < kSplitGenerations; g += 2) {
    found |= static_cast<uint32_t>(_mm256_testc_si256(_mm256_load_si256(at + g), even)) << g;
    found |= static_cast<uint32_t>(_mm256_testc_si256(_mm256_load_si256(at + g + 1), odd)) << (g + 1);
  }
  return found;
}

__attribute__((target("avx2"))) void SetAvx2(SplitBlock* blocks, uint32_t key, int one, int other) {
  auto* const at = reinterpret_cast<__m256i*>(blocks);
  for (const int g : {one, other}) {
    _mm256_store_si256(at + g, _mm256_or_si256(_mm256_load_si256(at + g), MaskAvx2(key, g % 2)));
  }
}
#endif

}  // namespace

SplitOperations PortableSplitOperations() { return {.find = FindPortable, .set = SetPortable}; }

SplitOperations FastestSplitOperations() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return {.find = FindAvx2, .set = SetAvx2};
#endif
  return PortableSplitOperations();
}

}  // namespace lethe::bench
