// A line of the compact filter: 64 bytes of fingerprints in the order of their epochs.
#ifndef LETHE_SRC_FILTER_COMPACT_LINE_H_
#define LETHE_SRC_FILTER_COMPACT_LINE_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/assertion.h"

namespace lethe {

inline constexpr int64_t kCompactLineBytes = 64;
// So many epochs are live at a time; a line can tell them apart.
inline constexpr int kCompactMostEpochs = 20;

// Rates by epoch, of which the live ones have places of their own.
inline constexpr size_t kCompactPlaces = 32;
static_assert(kCompactMostEpochs < static_cast<int>(kCompactPlaces));
using CompactRates = std::array<double, kCompactPlaces>;
using CompactCounts = std::array<int64_t, kCompactPlaces>;
inline size_t CompactPlaceOf(int64_t epoch) { return static_cast<size_t>(epoch) % kCompactPlaces; }

// How the slots of a line are laid out. It depends on the line's level, the number of address bits that
// choose the line.
struct CompactFormat {
  uint8_t slots = 0;
  uint8_t field_bits = 0;    // of one field, its marker included
  uint16_t first_field = 0;  // the bit where the fields begin
  uint8_t whole_bits = 0;    // of the address that a new entry's field holds
  uint8_t weight = 0;        // twice the slots, and one more if the line is to win where two have equal room
  uint64_t field_mask = 0;
  uint64_t tag_lanes = 0;  // bit i: a tag begins at byte i

  int known_bits() const { return field_bits - 1; }
};

// The live epochs, by number; none if the oldest is above the newest.
struct CompactSpan {
  int64_t oldest = 1;
  int64_t newest = 0;
};

// A fingerprint outside of a line: its tag, and the lowest `known` bits of an address.
struct CompactEntry {
  uint64_t address;
  int64_t epoch;
  uint8_t known;
  uint16_t tag;
};

// A line's description of its slots. They are a ring in the order of epochs that begins at `head`. In the
// mask, from the lowest bit up, a one is an entry and a zero the end of an epoch. kEpochsBefore zeros are
// below the entries of the epoch `stamp` (which is kept modulo kStamps).
struct CompactMeta {
  uint64_t mask = 0;
  uint32_t stamp = 0;
  uint32_t head = 0;
};

// Two layouts: with tags of 16 bits and up to 17 slots, and with tags of 8 bits and up to 29 slots. Bits of a
// line, from the lowest: the tags, the fields, the mask, the head, the stamp.
//
// A field holds the address bits above the line's level, as many as are known, below a one. So it says itself
// how many it holds, and loses its lowest bit when its line is split.
//
// Invariant of a line: the mask has at most as many ones as there are slots, the head is a slot, and no
// field in use is zero. Lines of zeros are empty lines.
template <typename Tag>
struct CompactLine {
  static constexpr bool kWide = sizeof(Tag) == 2;
  static constexpr int kTagBits = 8 * sizeof(Tag);
  static constexpr int kSlotBits = kWide ? 459 : 448;
  static constexpr int kMostSlots = kWide ? 17 : 29;
  static constexpr int kMostFieldBits = 57;  // as many as one load at any bit can read
  static constexpr int kEpochsBefore = kCompactMostEpochs - 1;
  static constexpr int kMaskBits = kWide ? 36 : 48;
  static constexpr int kHeadBits = 5;
  static constexpr int kStampBits = kWide ? 12 : 11;
  static constexpr int64_t kStamps = int64_t{1} << kStampBits;
  static constexpr int kMetaShift = 64 - kMaskBits - kHeadBits - kStampBits;
  // An entry of the newest epoch in the last slot has the mask's highest bit.
  static_assert(kMostSlots + kEpochsBefore == kMaskBits && kMetaShift >= 0);
  static_assert(kSlotBits <= 512 - 64 + kMetaShift);

  static Tag TagOf(uint64_t b) { return static_cast<Tag>(b >> (64 - kTagBits)); }

  static uint64_t Load(const uint8_t* at) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    return word;
  }
  static void Store(uint8_t* at, uint64_t word) { std::memcpy(at, &word, sizeof(word)); }

  static uint64_t MetaWord(const uint8_t* line) { return Load(line + 56); }
  static CompactMeta MetaOf(const uint8_t* line) { return MetaIn(MetaWord(line)); }
  static CompactMeta MetaIn(uint64_t meta_word) {
    const uint64_t word = meta_word >> kMetaShift;
    return {.mask = word & ((uint64_t{1} << kMaskBits) - 1),
            .stamp = static_cast<uint32_t>(word >> (kMaskBits + kHeadBits)),
            .head = static_cast<uint32_t>(word >> kMaskBits & ((1U << kHeadBits) - 1))};
  }
  static void SetMeta(uint8_t* line, const CompactMeta& meta) { SetMeta(line, MetaWord(line), meta); }
  // The same if the present entry is known.
  static void SetMeta(uint8_t* line, uint64_t meta_word, const CompactMeta& meta) {
    LETHE_DEBUG_ASSERT(std::popcount(meta.mask) <= kMostSlots && meta.head < kMostSlots);
    const uint64_t word = meta.mask | static_cast<uint64_t>(meta.head) << kMaskBits |
                          static_cast<uint64_t>(meta.stamp) << (kMaskBits + kHeadBits);
    const uint64_t fields = meta_word & ((uint64_t{1} << kMetaShift) - 1);
    Store(line + 56, fields | word << kMetaShift);
  }
  static uint32_t StampOf(int64_t epoch) { return static_cast<uint32_t>(epoch & (kStamps - 1)); }

  static uint64_t GetField(const uint8_t* line, const CompactFormat& format, int slot) {
    const auto at = static_cast<uint32_t>(format.first_field + slot * format.field_bits);
    return Load(line + at / 8) >> (at % 8) & format.field_mask;
  }
  static void SetField(uint8_t* line, const CompactFormat& format, int slot, uint64_t field) {
    const auto at = static_cast<uint32_t>(format.first_field + slot * format.field_bits);
    const uint64_t others = Load(line + at / 8) & ~(format.field_mask << (at % 8));
    Store(line + at / 8, others | field << (at % 8));
  }
  static uint64_t FieldOf(const CompactFormat& format, int level, uint64_t address, int known) {
    const int valid = std::clamp(known - level, 0, format.known_bits());
    const uint64_t marker = uint64_t{1} << valid;
    return marker | ((address >> level) & (marker - 1));
  }
  static Tag GetTag(const uint8_t* line, int slot) {
    Tag tag;
    std::memcpy(&tag, line + static_cast<size_t>(slot) * sizeof(Tag), sizeof(Tag));
    return tag;
  }
  static void SetTag(uint8_t* line, int slot, Tag tag) {
    std::memcpy(line + static_cast<size_t>(slot) * sizeof(Tag), &tag, sizeof(Tag));
  }

  static void CopySlot(uint8_t* line, const CompactFormat& format, int from, int to) {
    SetTag(line, to, GetTag(line, from));
    SetField(line, format, to, GetField(line, format, from));
  }

  // How many of the mask's lowest zeros end epochs that are dead; kEpochsBefore + 1 if all are.
  static int DeadEpochs(uint32_t stamp, const CompactSpan& span) {
    const auto age = static_cast<int64_t>(StampOf(span.newest - stamp));
    return static_cast<int>(
        std::min<int64_t>(age + kEpochsBefore - (span.newest - span.oldest), kEpochsBefore + 1));
  }
  // How many entries are before the `epochs`-th zero.
  static int EntriesBefore(uint64_t mask, int epochs) {
    if (epochs == 0) return 0;
    if (epochs > kEpochsBefore) return __builtin_popcountll(mask);
    // Most often none is dead.
    if ((mask & ((uint64_t{1} << epochs) - 1)) == 0) return 0;
    uint64_t zeros = ~mask;
    for (int i = 1; i < epochs; ++i) zeros &= zeros - 1;
    return __builtin_ctzll(zeros) - (epochs - 1);
  }

  [[gnu::always_inline]] static int Dead(const uint8_t* line, const CompactSpan& span) {
    const CompactMeta meta = MetaOf(line);
    return EntriesBefore(meta.mask, DeadEpochs(meta.stamp, span));
  }
  [[gnu::always_inline]] static int Live(const uint8_t* line, const CompactSpan& span) {
    const CompactMeta meta = MetaOf(line);
    return __builtin_popcountll(meta.mask) - EntriesBefore(meta.mask, DeadEpochs(meta.stamp, span));
  }

  // Takes dead entries out of the meta, and sets its stamp to the newest epoch.
  [[gnu::always_inline]] static void Renew(const CompactFormat& format, const CompactSpan& span,
                                           CompactMeta* meta) {
    Renew(format, span, EntriesBefore(meta->mask, DeadEpochs(meta->stamp, span)), meta);
  }
  // The same if it is known how many are dead.
  [[gnu::always_inline]] static void Renew(const CompactFormat& format, const CompactSpan& span, int dead,
                                           CompactMeta* meta) {
    const int dead_epochs = DeadEpochs(meta->stamp, span);
    if (dead_epochs == 0) return;
    const uint32_t stamp = StampOf(span.newest);
    if (dead_epochs > kEpochsBefore) {
      *meta = {.mask = 0, .stamp = stamp, .head = 0};
      return;
    }
    const auto age = static_cast<int>(StampOf(span.newest - meta->stamp));
    meta->mask = (meta->mask >> (dead_epochs - 1 + dead)) << (dead_epochs - 1) >> age;
    meta->stamp = stamp;
    meta->head += static_cast<uint32_t>(dead);
    if (meta->head >= format.slots) meta->head -= format.slots;
  }
  [[gnu::always_inline]] static void Renew(uint8_t* line, const CompactFormat& format,
                                           const CompactSpan& span) {
    CompactMeta meta = MetaOf(line);
    Renew(format, span, &meta);
    SetMeta(line, meta);
  }

  // Adds an entry of the newest epoch whose whole address is known; `address_bits` are those above the line's
  // level. The line has room, as many live and dead entries as are given, and this word of meta.
  [[gnu::always_inline]] static void Append(uint8_t* line, const CompactFormat& format, uint64_t meta_word,
                                            const CompactSpan& span, int live, int dead,
                                            uint64_t address_bits, Tag tag) {
    CompactMeta meta = MetaIn(meta_word);
    Renew(format, span, dead, &meta);
    const int slot = SlotOf(format, meta, live);
    meta.mask |= uint64_t{1} << (live + kEpochsBefore);
    const uint64_t marker = uint64_t{1} << format.whole_bits;
    SetTag(line, slot, tag);
    SetField(line, format, slot, marker | (address_bits & (marker - 1)));
    // Of all fields only the last one shares that word. A load of it would wait for a store nearby.
    const bool is_last = slot == format.slots - 1;
    SetMeta(line, __builtin_expect(is_last, 0) ? MetaWord(line) : meta_word, meta);
  }

  // The probability that an id that was never inserted equals an entry of which so many bits are known, and
  // whose line is one of two for each.
  static double RateOfKnown(int known) {
    return std::bit_cast<double>(static_cast<uint64_t>(1023 + 1 - known - kTagBits) << 52);
  }

  // The sum over the live entries of 2^-(t + v), with tags of t bits and v known bits above the line's level.
  static double SumOfRates(const uint8_t* line, const CompactFormat& format, const CompactSpan& span) {
    const CompactMeta meta = MetaOf(line);
    const int entries = __builtin_popcountll(meta.mask);
    double sum = 0;
    for (int i = EntriesBefore(meta.mask, DeadEpochs(meta.stamp, span)); i < entries; ++i) {
      const uint64_t field = GetField(line, format, SlotOf(format, meta, i));
      sum += RateOfKnown(64 - __builtin_clzll(field));
    }
    return sum;
  }

  // The slot of an entry, counted from the oldest, which is 0.
  static int SlotOf(const CompactFormat& format, const CompactMeta& meta, int entry) {
    const int slot = static_cast<int>(meta.head) + entry;
    return slot < format.slots ? slot : slot - format.slots;
  }
  // The contents of a slot, except its epoch.
  static CompactEntry EntryAt(const uint8_t* line, const CompactFormat& format, int level, uint64_t index,
                              int slot) {
    return EntryOf(GetField(line, format, slot), GetTag(line, slot), level, index);
  }
  static CompactEntry EntryOf(uint64_t field, Tag tag, int level, uint64_t index) {
    const int valid = 63 - __builtin_clzll(field);
    return {.address = index | (field ^ uint64_t{1} << valid) << level,
            .epoch = 0,
            .known = static_cast<uint8_t>(level + valid),
            .tag = tag};
  }
  // The same for an entry of a line whose meta is renewed; `one` is its bit in the mask.
  static int64_t EpochOf(const CompactSpan& span, int entry, uint64_t one) {
    return span.newest - kEpochsBefore + __builtin_ctzll(one) - entry;
  }

  // Takes the entry out that has this bit of the mask. The meta is renewed, and is written.
  [[gnu::always_inline]] static void Remove(uint8_t* line, const CompactFormat& format, CompactMeta meta,
                                            int entry, uint64_t one) {
    const int entries = __builtin_popcountll(meta.mask);
    meta.mask = (meta.mask & (one - 1)) | (meta.mask >> 1 & ~(one - 1));
    if (entry < entries / 2) {
      for (int i = entry; i > 0; --i) {
        CopySlot(line, format, SlotOf(format, meta, i - 1), SlotOf(format, meta, i));
      }
      meta.head = static_cast<uint32_t>(SlotOf(format, meta, 1));
    } else {
      for (int i = entry + 1; i < entries; ++i) {
        CopySlot(line, format, SlotOf(format, meta, i), SlotOf(format, meta, i - 1));
      }
    }
    SetMeta(line, meta);
  }

  // Adds an entry behind those of its epoch and before. The line has room.
  [[gnu::always_inline]] static void Insert(uint8_t* line, const CompactFormat& format, int level,
                                            const CompactSpan& span, const CompactEntry& entry) {
    CompactMeta meta = MetaOf(line);
    Renew(format, span, &meta);
    const int entries = __builtin_popcountll(meta.mask);
    const auto epochs = static_cast<int>(entry.epoch - (span.newest - kEpochsBefore));
    const uint64_t below = (uint64_t{1} << epochs) - 1;
    uint64_t zeros = ~meta.mask;
    if ((meta.mask & below) == 0) {
      zeros &= ~below;
    } else {
      for (int i = 0; i < epochs; ++i) zeros &= zeros - 1;
    }
    const uint64_t one = zeros & -zeros;
    const int before = __builtin_ctzll(one) - epochs;
    meta.mask = (meta.mask & (one - 1)) | one | (meta.mask & ~(one - 1)) << 1;
    if (before < entries / 2) {
      const CompactMeta old = meta;
      meta.head = static_cast<uint32_t>(SlotOf(format, old, format.slots - 1));
      for (int i = 0; i < before; ++i) {
        CopySlot(line, format, SlotOf(format, old, i), SlotOf(format, meta, i));
      }
    } else {
      for (int i = entries; i > before; --i) {
        CopySlot(line, format, SlotOf(format, meta, i - 1), SlotOf(format, meta, i));
      }
    }
    SetMeta(line, meta);
    const int slot = SlotOf(format, meta, before);
    SetTag(line, slot, static_cast<Tag>(entry.tag));
    SetField(line, format, slot, FieldOf(format, level, entry.address, entry.known));
  }

  // Live entries in the order of their epochs, for two lines at most. Without initializers: to zero them
  // would take a good part of a split.
  struct Entries {
    int count;
    uint64_t fields[2 * kMostSlots];
    uint8_t epochs[2 * kMostSlots];  // the zeros below, in a mask that is renewed
    Tag tags[2 * kMostSlots];

    static int64_t EpochIn(const CompactSpan& span, int zeros) { return span.newest - kEpochsBefore + zeros; }
    int64_t EpochOf(const CompactSpan& span, int entry) const { return EpochIn(span, epochs[entry]); }
  };

  [[gnu::always_inline]] static void Read(const uint8_t* line, const CompactFormat& format,
                                          const CompactSpan& span, Entries* entries) {
    CompactMeta meta = MetaOf(line);
    Renew(format, span, &meta);
    entries->count = __builtin_popcountll(meta.mask);
    uint64_t rest = meta.mask;
    int slot = static_cast<int>(meta.head);
    for (int i = 0; i < entries->count; ++i, rest &= rest - 1) {
      entries->fields[i] = GetField(line, format, slot);
      entries->epochs[i] = static_cast<uint8_t>(__builtin_ctzll(rest) - i);
      entries->tags[i] = GetTag(line, slot);
      if (++slot == format.slots) slot = 0;
    }
  }

  // Makes a line of those entries that `chosen` has a bit for. Their fields, without so many `more` low bits,
  // are as wide as the line's, or narrower. It only writes: a load of what was written a moment ago in other
  // pieces would wait.
  [[gnu::always_inline]] static void Write(uint8_t* line, const CompactFormat& format,
                                           const CompactSpan& span, const Entries& entries, uint64_t chosen,
                                           int more) {
    std::memset(line, 0, kCompactLineBytes);
    uint64_t mask = 0;
    uint8_t* at = line + format.first_field / 8;
    uint64_t fields = 0;  // what is not yet in whole bytes before `at`
    int bits = 0;         // of it
    int slot = 0;
    for (; chosen != 0; chosen &= chosen - 1, ++slot) {
      const int i = __builtin_ctzll(chosen);
      SetTag(line, slot, entries.tags[i]);
      fields |= entries.fields[i] >> more << bits;
      Store(at, fields);
      bits += format.field_bits;
      at += bits / 8;
      const int half_shift = bits / 8 * 4;  // a shift by 64 is none
      fields = fields >> half_shift >> half_shift;
      bits %= 8;
      mask |= uint64_t{1} << (entries.epochs[i] + slot);
    }
    // A load of the last word, which few lines have a field in, would wait for the stores.
    const bool is_in_word = format.first_field + slot * format.field_bits > 8 * 56;
    SetMeta(line, __builtin_expect(is_in_word, 0) ? MetaWord(line) : 0,
            {.mask = mask, .stamp = StampOf(span.newest), .head = 0});
  }
};

}  // namespace lethe

#endif  // LETHE_SRC_FILTER_COMPACT_LINE_H_
