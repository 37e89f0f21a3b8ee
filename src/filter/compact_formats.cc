#include "src/filter/compact_formats.h"

#include <algorithm>
#include <cmath>

namespace lethe {
namespace {

// So much of the target is for what a table holds that has not grown, the rest for growth.
constexpr double kMostGrowth = 2.2;
// Smaller tables than 2^kCompactSmallLevel have so many bits more, and half a bit for each halving.
constexpr int kSmallBits = 2;
constexpr int kFewestBits = 14;  // fewer would not give a narrow line more slots
constexpr int kMostBits = 64;

template <typename Tag>
int SlotsFor(int bits) {
  return std::min(CompactLine<Tag>::kSlotBits / (bits + 1), CompactLine<Tag>::kMostSlots);
}

// Fingerprints are as wide as the slots leave room for.
template <typename Tag>
CompactFormat FormatFor(int slots) {
  using Line = CompactLine<Tag>;
  const int field_bits = std::min(Line::kSlotBits / slots - Line::kTagBits, Line::kMostFieldBits);
  CompactFormat format;
  format.slots = static_cast<uint8_t>(slots);
  format.weight = static_cast<uint8_t>(2 * slots);
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
  const auto slots_of = [&](int wanted) {
    return formats.wide ? SlotsFor<uint16_t>(wanted) : SlotsFor<uint8_t>(wanted);
  };
  formats.fewest_slots = slots_of(kMostBits);
  for (int slots = formats.fewest_slots; slots <= slots_of(bits); ++slots) {
    formats.of_slots[static_cast<size_t>(slots)] =
        formats.wide ? FormatFor<uint16_t>(slots) : FormatFor<uint8_t>(slots);
  }
  for (int level = 0; level <= kCompactMostLevel + 1; ++level) {
    const int halvings = kCompactSmallLevel - level;
    const int more = halvings <= 0 ? 0 : kSmallBits + halvings / 2;
    formats.settled_slots[static_cast<size_t>(level)] =
        static_cast<uint8_t>(slots_of(std::min(bits + more, kMostBits)));
  }
  return formats;
}

int CompactSlotsFor(const CompactFormats& formats, const CompactLoad& load, double target, double share,
                    int most) {
  const int fewest = std::max(formats.fewest_slots, load.slots * 3 / 4);
  for (int slots = most; slots > fewest; --slots) {
    const double ids = kCompactFullLoad * slots * std::ldexp(1.0, load.level);  // of this doubling
    const double half_of_rest = 0.5 * (1 - load.split) * ids;
    const double spent = load.fpp + half_of_rest * formats.RateOf(load.slots, load.level);
    const double wanted = (half_of_rest + ids) * formats.RateOf(slots, load.level + 1);
    if (wanted <= share * (target - spent)) return slots;
  }
  return fewest;
}

}  // namespace lethe
