#include "src/filter/fingerprint_lines.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lethe {
namespace {

TwoLines ScanPortable(const uint32_t* first, const uint32_t* second, uint32_t fingerprint, uint32_t live) {
  TwoLines found;
  for (int i = 0; i < kEntriesInLine; ++i) {
    const uint32_t live_first = live >> (first[i] & kTagMask) & 1;
    const uint32_t live_second = live >> (second[i] & kTagMask) & 1;
    const uint32_t hit_first = (first[i] & ~kTagMask) == fingerprint ? live_first : 0;
    const uint32_t hit_second = (second[i] & ~kTagMask) == fingerprint ? live_second : 0;
    found.hits |= hit_first << i | hit_second << (i + kEntriesInLine);
    found.free |= (live_first ^ 1) << i | (live_second ^ 1) << (i + kEntriesInLine);
  }
  return found;
}

void ClearDeadPortable(uint32_t* lines, int64_t count, uint32_t live) {
  for (int64_t i = 0; i < count * kEntriesInLine; ++i) {
    if ((live >> (lines[i] & kTagMask) & 1) == 0) lines[i] = 0;
  }
}

#if defined(__x86_64__)

// All ones in the entries that have a live tag.
__attribute__((target("avx2"))) inline __m256i LiveEntries(__m256i entries, __m256i live) {
  const __m256i tags = _mm256_and_si256(entries, _mm256_set1_epi32(static_cast<int>(kTagMask)));
  return _mm256_srai_epi32(_mm256_slli_epi32(_mm256_srlv_epi32(live, tags), 31), 31);
}

__attribute__((target("avx2"))) TwoLines ScanAvx2(const uint32_t* first, const uint32_t* second,
                                                  uint32_t fingerprint, uint32_t live) {
  const __m256i wanted = _mm256_set1_epi32(static_cast<int>(fingerprint));
  const __m256i live_tags = _mm256_set1_epi32(static_cast<int>(live));
  const __m256i tag_mask = _mm256_set1_epi32(static_cast<int>(kTagMask));
  const uint32_t* const halves[4] = {first, first + 8, second, second + 8};
  TwoLines found;
  for (int i = 0; i < 4; ++i) {
    const __m256i entries = _mm256_load_si256(reinterpret_cast<const __m256i*>(halves[i]));
    const __m256i alive = LiveEntries(entries, live_tags);
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_andnot_si256(tag_mask, entries), wanted);
    const auto bits = [](__m256i lanes) __attribute__((target("avx2"))) {
      return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
    };
    found.hits |= bits(_mm256_and_si256(equal, alive)) << (8 * i);
    found.free |= (bits(alive) ^ 0xff) << (8 * i);
  }
  return found;
}

__attribute__((target("avx2"))) void ClearDeadAvx2(uint32_t* lines, int64_t count, uint32_t live) {
  const __m256i live_tags = _mm256_set1_epi32(static_cast<int>(live));
  auto* entries = reinterpret_cast<__m256i*>(lines);
  for (int64_t i = 0; i < 2 * count; ++i) {
    const __m256i before = _mm256_load_si256(entries + i);
    _mm256_store_si256(entries + i, _mm256_and_si256(before, LiveEntries(before, live_tags)));
  }
}

#endif

}  // namespace

const LineOperations& PortableLineOperations() {
  static constexpr LineOperations kOperations = {.scan = ScanPortable, .clear_dead = ClearDeadPortable};
  return kOperations;
}

const LineOperations& FastestLineOperations() {
#if defined(__x86_64__)
  static constexpr LineOperations kAvx2 = {.scan = ScanAvx2, .clear_dead = ClearDeadAvx2};
  if (__builtin_cpu_supports("avx2") != 0) return kAvx2;
#endif
  return PortableLineOperations();
}

}  // namespace lethe
