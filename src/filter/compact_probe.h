// Looking for a fingerprint in the two lines of an id.
#ifndef LETHE_SRC_FILTER_COMPACT_PROBE_H_
#define LETHE_SRC_FILTER_COMPACT_PROBE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/filter/compact_line.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lethe {

// One of the lines of an id, and the id's address bits above the line's level.
struct CompactPlace {
  uint8_t* line = nullptr;
  const CompactFormat* format = nullptr;
  uint64_t address_bits = 0;
};

// The result of a probe.
struct CompactSide {
  CompactPlace place;
  uint64_t meta_word = 0;
  int64_t weight = 0;  // twice the room, and one more if the line's format says so
  int64_t dead = 0;    // entries

  bool is_full() const { return weight <= 1; }
  int live() const { return (place.format->weight - static_cast<int>(weight)) / 2; }
};

struct CompactFound {
  bool contained = false;
  std::array<CompactSide, 2> sides;
};

// The instructions that a probe uses: one set for any processor, and one for AVX2. Both give the same
// answers. Run() calls a loop that is inlined into it, and so is compiled for this processor, with all
// functions that are forced inline. RunWhole() does so with all that the loop calls and whose source is
// there.

struct AnyProcessor {
  template <typename Loop>
  static void Run(const Loop& loop) {
    loop();
  }
  static void Leave() {}
  template <typename Work>
  static auto RunWhole(const Work& work) {
    return work();
  }

  // Bit i is set if a tag that begins at byte i of the line is the same.
  template <typename Tag>
  static uint64_t SameTag(const CompactPlace& place, Tag tag) {
    uint64_t same = 0;
    for (int slot = 0; slot < place.format->slots; ++slot) {
      const bool is_same = CompactLine<Tag>::GetTag(place.line, slot) == tag;
      same |= static_cast<uint64_t>(is_same) << (static_cast<size_t>(slot) * sizeof(Tag));
    }
    return same;
  }

  template <typename Tag>
  static int EntriesBefore(uint64_t mask, int epochs) {
    return CompactLine<Tag>::EntriesBefore(mask, epochs);
  }
};

#if defined(__x86_64__)

#define LETHE_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

struct Avx2Processor {
  template <typename Loop>
  LETHE_AVX2 static void Run(const Loop& loop) {
    loop();
  }
  // Comes first in functions that a loop calls. GCC 12 leaves this instruction out before some calls in
  // loops, and then instructions of SSE wait for the lines that were compared last.
  LETHE_AVX2 static void Leave() { _mm256_zeroupper(); }
  template <typename Work>
  [[gnu::flatten]] LETHE_AVX2 static auto RunWhole(const Work& work) {
    Leave();
    return work();
  }

  template <typename Tag>
  LETHE_AVX2 static inline uint64_t SameTag(const CompactPlace& place, Tag tag) {
    const auto* const halves = reinterpret_cast<const __m256i*>(place.line);
    __m256i low = _mm256_load_si256(halves);
    __m256i high = _mm256_load_si256(halves + 1);
    if constexpr (sizeof(Tag) == 2) {
      const __m256i wanted = _mm256_set1_epi16(static_cast<int16_t>(tag));
      low = _mm256_cmpeq_epi16(low, wanted);
      high = _mm256_cmpeq_epi16(high, wanted);
    } else {
      const __m256i wanted = _mm256_set1_epi8(static_cast<char>(tag));
      low = _mm256_cmpeq_epi8(low, wanted);
      high = _mm256_cmpeq_epi8(high, wanted);
    }
    const auto in_low = static_cast<uint32_t>(_mm256_movemask_epi8(low));
    const auto in_high = static_cast<uint32_t>(_mm256_movemask_epi8(high));
    return (in_low | static_cast<uint64_t>(in_high) << 32) & place.format->tag_lanes;
  }

  // Without a branch. One more zero comes first, which is the last one if no epoch is dead; behind all
  // entries there are enough if all are.
  template <typename Tag>
  LETHE_AVX2 static inline int EntriesBefore(uint64_t mask, int epochs) {
    const uint64_t last_zero = _pdep_u64(uint64_t{1} << epochs, ~(mask << 1));
    return static_cast<int>(_tzcnt_u64(last_zero)) - epochs;
  }
};

// Whether the processor at hand has all of them.
bool RunsAvx2();

#endif

// Whether a live entry of the line has the id's fingerprint.
template <typename Processor, typename Tag>
[[gnu::always_inline]] inline bool ProbeLine(const CompactPlace& place, Tag tag, const CompactSpan& span,
                                             CompactSide* side) {
  using Line = CompactLine<Tag>;
  side->place = place;
  side->meta_word = Line::MetaWord(place.line);
  const CompactMeta meta = Line::MetaIn(side->meta_word);
  const int entries = __builtin_popcountll(meta.mask);
  const int dead = Processor::template EntriesBefore<Tag>(meta.mask, Line::DeadEpochs(meta.stamp, span));
  side->weight = place.format->weight - 2 * (entries - dead);
  side->dead = dead;
  uint64_t same_tag = Processor::template SameTag<Tag>(place, tag);
  while (__builtin_expect(same_tag != 0, 0)) {
    const int slot = __builtin_ctzll(same_tag) / static_cast<int>(sizeof(Tag));
    same_tag &= same_tag - 1;
    int entry = slot - static_cast<int>(meta.head);
    if (entry < 0) entry += place.format->slots;
    if (entry < dead || entry >= entries) continue;
    const uint64_t field = Line::GetField(place.line, *place.format, slot);
    const uint64_t known = ~uint64_t{0} >> __builtin_clzll(field) >> 1;
    if (((field ^ place.address_bits) & known) == 0) return true;
  }
  return false;
}

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_PROBE_H_
