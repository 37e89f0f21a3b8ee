// A compact table in a snapshot: its fields, its lines, and their checks.
#include <bit>
#include <cmath>

#include "src/filter/compact_table.h"

namespace lethe {

template <typename Tag, typename Processor>
std::shared_ptr<CompactCopy> CompactTable<Tag, Processor>::BeginCopy() {
  if (const std::shared_ptr<CompactCopy> before = copy_.lock()) before->Break();
  auto copy = std::make_shared<CompactCopy>(lines_);
  copy_ = copy;
  return copy;
}

template <typename Tag, typename Processor>
template <typename Self, typename Fields>
void CompactTable<Tag, Processor>::TransferFields(Self& self, int64_t& lines, const CompactSpan& span,
                                                  Fields& fields) {
  int64_t fingerprint_bits = self.formats_.fingerprint_bits;
  fields.Int(fingerprint_bits, fingerprint_bits, fingerprint_bits);
  fields.Int(lines, int64_t{1} << kCompactLeastLevel, int64_t{1} << kCompactMostLevel);
  // Lines are swept for more slots, or as many.
  for (size_t split = 0; split < 2; ++split) {
    const int most = self.formats_.settled_slots[kCompactMostLevel];
    fields.Int(self.slots_of_[0][split], self.formats_.fewest_slots, most);
    fields.Int(self.slots_of_[1][split], self.formats_.fewest_slots, most);
  }
  fields.Int(self.sweeping_, 0, 1);
  fields.Int(self.swept_lines_, 0, self.sweeping_ ? lines - 1 : 0);
  fields.Int(self.swept_, 0, int64_t{1} << kCompactMostLevel);
  fields.Int(self.next_stashed_, 0, kMostStashed);
  fields.Int(self.stashed_, 0, kMostStashed);
  for (int i = 0; i < self.stashed_; ++i) {
    auto& stashed = self.stash_[static_cast<size_t>(i)];
    fields.Word(stashed.address);
    fields.Int(stashed.epoch, 0, span.newest);
    fields.Int(stashed.tag, 0, static_cast<Tag>(~Tag{0}));
  }
}

template <typename Tag, typename Processor>
void CompactTable<Tag, Processor>::Save(const CompactSpan& span, FieldWriter* fields) const {
  int64_t lines = static_cast<int64_t>(lines_);
  TransferFields(*this, lines, span, *fields);
}

template <typename Tag, typename Processor>
int64_t CompactTable<Tag, Processor>::Restore(const CompactSpan& span, FieldReader* fields) {
  int64_t lines = 0;
  TransferFields(*this, lines, span, *fields);
  for (size_t split = 0; split < 2; ++split) {
    if (sweeping_ && slots_of_[1][split] < slots_of_[0][split]) return 0;
  }
  return fields->ok() ? lines : 0;
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::MakeRoomFor(int64_t lines, int64_t memory_bytes) {
  const int64_t needed = lines * kCompactLineBytes;
  if (!memory_.GrowOrMove(std::max(needed, memory_bytes))) return false;
  SetLines(static_cast<uint64_t>(lines));
  return true;
}

// All entries of the mask are looked at, also those of epochs that are dead now: stamps come round.
template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::IsSound(uint64_t index) const {
  const CompactFormat& format = FormatOf(index);
  const uint8_t* const line = LineAt(index);
  const CompactMeta meta = Line::MetaOf(line);
  const int entries = std::popcount(meta.mask);
  if (entries > format.slots || meta.head >= format.slots) return false;
  if (static_cast<int>(std::bit_width(meta.mask)) > Line::kEpochsBefore + entries) return false;
  for (int i = 0; i < entries; ++i) {
    const int slot = (static_cast<int>(meta.head) + i) % format.slots;
    const uint64_t field = Line::GetField(line, format, slot);
    if (field == 0 || LevelOf(index) + static_cast<int>(std::bit_width(field)) - 1 > 64) return false;
  }
  return true;
}

template <typename Tag, typename Processor>
bool CompactTable<Tag, Processor>::CheckLines(const CompactSpan& span, CompactHeld* held) const {
  *held = CompactHeld();
  CompactEntry entries[Line::kMostSlots];
  for (uint64_t index = 0; index < lines_; ++index) {
    if (!IsSound(index)) return false;
    const int count = UnpackAt(index, span, entries);
    for (int i = 0; i < count; ++i) {
      held->ids_of_newest += entries[i].epoch == span.newest ? 1 : 0;
      held->fpp[static_cast<size_t>(entries[i].epoch - span.oldest)] +=
          std::ldexp(1.0, 1 - entries[i].known - Line::kTagBits);
    }
  }
  for (int i = 0; i < stashed_; ++i) {
    held->ids_of_newest += stash_[static_cast<size_t>(i)].epoch == span.newest ? 1 : 0;
  }
  return true;
}

template std::shared_ptr<CompactCopy> CompactTable<uint8_t, AnyProcessor>::BeginCopy();
template void CompactTable<uint8_t, AnyProcessor>::Save(const CompactSpan&, FieldWriter*) const;
template int64_t CompactTable<uint8_t, AnyProcessor>::Restore(const CompactSpan&, FieldReader*);
template bool CompactTable<uint8_t, AnyProcessor>::MakeRoomFor(int64_t, int64_t);
template bool CompactTable<uint8_t, AnyProcessor>::CheckLines(const CompactSpan&, CompactHeld*) const;
template std::shared_ptr<CompactCopy> CompactTable<uint16_t, AnyProcessor>::BeginCopy();
template void CompactTable<uint16_t, AnyProcessor>::Save(const CompactSpan&, FieldWriter*) const;
template int64_t CompactTable<uint16_t, AnyProcessor>::Restore(const CompactSpan&, FieldReader*);
template bool CompactTable<uint16_t, AnyProcessor>::MakeRoomFor(int64_t, int64_t);
template bool CompactTable<uint16_t, AnyProcessor>::CheckLines(const CompactSpan&, CompactHeld*) const;

#if defined(__x86_64__)
template std::shared_ptr<CompactCopy> CompactTable<uint8_t, Avx2Processor>::BeginCopy();
template void CompactTable<uint8_t, Avx2Processor>::Save(const CompactSpan&, FieldWriter*) const;
template int64_t CompactTable<uint8_t, Avx2Processor>::Restore(const CompactSpan&, FieldReader*);
template bool CompactTable<uint8_t, Avx2Processor>::MakeRoomFor(int64_t, int64_t);
template bool CompactTable<uint8_t, Avx2Processor>::CheckLines(const CompactSpan&, CompactHeld*) const;
template std::shared_ptr<CompactCopy> CompactTable<uint16_t, Avx2Processor>::BeginCopy();
template void CompactTable<uint16_t, Avx2Processor>::Save(const CompactSpan&, FieldWriter*) const;
template int64_t CompactTable<uint16_t, Avx2Processor>::Restore(const CompactSpan&, FieldReader*);
template bool CompactTable<uint16_t, Avx2Processor>::MakeRoomFor(int64_t, int64_t);
template bool CompactTable<uint16_t, Avx2Processor>::CheckLines(const CompactSpan&, CompactHeld*) const;
#endif

}  // namespace lethe
