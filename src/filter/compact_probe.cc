#include "src/filter/compact_probe.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace lethe {
namespace {

// Whether a live entry matches; `same_tag` has a bit for each slot with the tag, `kStep` bits apart.
template <typename Tag, int kStep>
[[gnu::always_inline]] inline bool Matches(const CompactPlace& place, const CompactMeta& meta, int entries,
                                           int dead, uint64_t same_tag) {
  while (__builtin_expect(same_tag != 0, 0)) {
    const int slot = __builtin_ctzll(same_tag) / kStep;
    same_tag &= same_tag - 1;
    int entry = slot - static_cast<int>(meta.head);
    if (entry < 0) entry += place.format->slots;
    if (entry < dead || entry >= entries) continue;
    const uint64_t field = CompactLine<Tag>::GetField(place.line, *place.format, slot);
    const uint64_t known = ~uint64_t{0} >> __builtin_clzll(field) >> 1;
    if (((field ^ place.address_bits) & known) == 0) return true;
  }
  return false;
}

template <typename Tag>
bool ProbeLinePortable(const CompactPlace& place, Tag tag, const CompactSpan& span, int8_t* room,
                       int8_t* dead_entries) {
  using Line = CompactLine<Tag>;
  const CompactMeta meta = Line::MetaOf(place.line);
  const int entries = __builtin_popcountll(meta.mask);
  const int dead = Line::EntriesBefore(meta.mask, Line::DeadEpochs(meta.stamp, span));
  *room = static_cast<int8_t>(place.format->slots - (entries - dead));
  *dead_entries = static_cast<int8_t>(dead);
  uint64_t same_tag = 0;
  for (int slot = 0; slot < place.format->slots; ++slot) {
    same_tag |= static_cast<uint64_t>(Line::GetTag(place.line, slot) == tag) << slot;
  }
  return Matches<Tag, 1>(place, meta, entries, dead, same_tag);
}

template <typename Tag>
CompactFound ProbePortable(const CompactPlace& first, const CompactPlace& second, Tag tag,
                           const CompactSpan& span) {
  CompactFound found;
  const bool in_first = ProbeLinePortable(first, tag, span, &found.room_first, &found.dead_first);
  const bool in_second = ProbeLinePortable(second, tag, span, &found.room_second, &found.dead_second);
  found.contained = in_first || in_second;
  return found;
}

#if defined(__x86_64__)

#define LETHE_AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

template <typename Tag>
LETHE_AVX2 inline uint64_t SameTag(const CompactPlace& place, Tag tag) {
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

template <typename Tag>
LETHE_AVX2 inline bool ProbeLineAvx2(const CompactPlace& place, Tag tag, const CompactSpan& span,
                                     int8_t* room, int8_t* dead_entries) {
  using Line = CompactLine<Tag>;
  const CompactMeta meta = Line::MetaOf(place.line);
  const auto entries = static_cast<int>(_mm_popcnt_u64(meta.mask));
  const int dead_epochs = Line::DeadEpochs(meta.stamp, span);
  int dead = 0;
  if (dead_epochs > Line::kEpochsBefore) {
    dead = entries;
  } else if (dead_epochs > 0) {
    const uint64_t last_zero = _pdep_u64(uint64_t{1} << (dead_epochs - 1), ~meta.mask);
    dead = static_cast<int>(_tzcnt_u64(last_zero)) - (dead_epochs - 1);
  }
  *room = static_cast<int8_t>(place.format->slots - (entries - dead));
  *dead_entries = static_cast<int8_t>(dead);
  return Matches<Tag, sizeof(Tag)>(place, meta, entries, dead, SameTag(place, tag));
}

template <typename Tag>
LETHE_AVX2 CompactFound ProbeAvx2(const CompactPlace& first, const CompactPlace& second, Tag tag,
                                  const CompactSpan& span) {
  CompactFound found;
  const bool in_first = ProbeLineAvx2(first, tag, span, &found.room_first, &found.dead_first);
  const bool in_second = ProbeLineAvx2(second, tag, span, &found.room_second, &found.dead_second);
  found.contained = in_first | in_second;
  return found;
}

#endif

}  // namespace

template <typename Tag>
CompactProbe<Tag> PortableCompactProbe() {
  return ProbePortable<Tag>;
}

#if defined(__x86_64__)
namespace {

// Clang 14 does not know this one by name: bit 5 of ECX (AMD64 Architecture Programmer's Manual, volume 3).
bool HasLzcnt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1U << 5)) != 0;
}

}  // namespace
#endif

template <typename Tag>
CompactProbe<Tag> FastestCompactProbe() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
      __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("popcnt") != 0 && HasLzcnt()) {
    return ProbeAvx2<Tag>;
  }
#endif
  return PortableCompactProbe<Tag>();
}

template CompactProbe<uint8_t> PortableCompactProbe<uint8_t>();
template CompactProbe<uint16_t> PortableCompactProbe<uint16_t>();
template CompactProbe<uint8_t> FastestCompactProbe<uint8_t>();
template CompactProbe<uint16_t> FastestCompactProbe<uint16_t>();

}  // namespace lethe
