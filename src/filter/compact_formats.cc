#include "src/filter/compact_formats.h"

#include <algorithm>
#include <cmath>

namespace lethe {
namespace {

// Tables of fewer lines than 2^kLargeLevel have half a bit more for each halving.
constexpr int kLargeLevel = 20;
constexpr double kMostGrowth = 2.2;
constexpr int kFewestBits = 14;  // fewer would not give a narrow line more slots
constexpr int kMostBits = 64;

template <typename Tag>
int SlotsFor(int bits) {
  return std::min(CompactLine<Tag>::kSlotBits / (bits + 1), CompactLine<Tag>::kMostSlots);
}

// Of fingerprints with at least so many bits: as many as the slots leave room for.
template <typename Tag>
CompactFormat FormatFor(int bits) {
  using Line = CompactLine<Tag>;
  const int slots = SlotsFor<Tag>(bits);
  const int field_bits = std::min(Line::kSlotBits / slots - Line::kTagBits, Line::kMostFieldBits);
  CompactFormat format;
  format.slots = static_cast<uint8_t>(slots);
  format.field_bits = static_cast<uint8_t>(field_bits);
  format.first_field = static_cast<uint16_t>(slots * Line::kTagBits);
  format.field_mask = (uint64_t{1} << field_bits) - 1;
  for (int slot = 0; slot < slots; ++slot) {
    format.tag_lanes |= uint64_t{1} << (static_cast<size_t>(slot) * sizeof(Tag));
  }
  return format;
}

}  // namespace

CompactFormats CompactFormatsFor(double target_fpp) {
  const auto slots_for = [](int bits) { return std::max(SlotsFor<uint16_t>(bits), SlotsFor<uint8_t>(bits)); };
  int bits = kFewestBits;
  while (bits < kMostBits &&
         std::ldexp(kMostGrowth * 2 * kCompactFullLoad * slots_for(bits), -bits) > target_fpp) {
    ++bits;
  }
  CompactFormats formats;
  formats.fingerprint_bits = bits;
  formats.wide = SlotsFor<uint16_t>(bits) >= SlotsFor<uint8_t>(bits);
  for (int level = 0; level <= kCompactMostLevel; ++level) {
    const int more = std::max(0, kLargeLevel - level) / 2;
    const int wanted = std::min(bits + more, kMostBits);
    formats.of_level[static_cast<size_t>(level)] =
        formats.wide ? FormatFor<uint16_t>(wanted) : FormatFor<uint8_t>(wanted);
    CompactFormat& format = formats.of_level[static_cast<size_t>(level)];
    format.whole_bits = static_cast<uint8_t>(std::min(format.known_bits(), 64 - level));
  }
  return formats;
}

}  // namespace lethe
