#include "src/filter/compact_lines.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "src/assertion.h"

namespace lethe {
namespace {

// Memory is taken by the page while the table is small, then by a 64th of it, and from kCompactHugeFrom on by
// huge pages, which are a 16th of it or less.
//
// Another thread fills the next huge page when the lines come as near to it as this.
constexpr int64_t kAhead = LineMemory::kChunkBytes / 4;
// Kept above that before memory is given back: a 32nd, so that a table at rest neither grows nor shrinks.
constexpr int64_t kKeptPart = 32;
constexpr uint64_t kLinesInPage = 64;

// So that the first huge page is filled ahead, too.
bool TakesHugePages(int64_t needed) { return needed + needed / 64 + kAhead >= kCompactHugeFrom; }

int64_t BytesToTake(int64_t needed) {
  if (!TakesHugePages(needed)) return LineMemory::WholePagesFor(needed + needed / 64);
  return (needed + kAhead + LineMemory::kChunkBytes - 1) / LineMemory::kChunkBytes * LineMemory::kChunkBytes;
}

}  // namespace

CompactLines::CompactLines(const CompactFormats& formats, LineMemory memory)
    : formats_(formats), memory_(std::move(memory)) {
  const int slots = formats_.settled_slots[kCompactLeastLevel];
  slots_of_ = {{{slots, slots}, {slots, slots}}};
  SetLines(uint64_t{1} << kCompactLeastLevel);
  SetFormats();
}

void CompactLines::Resize(uint64_t lines) {
  LETHE_DEBUG_ASSERT(memory_.bytes() >= static_cast<int64_t>(lines) * kCompactLineBytes);
  const int level = 63 - std::countl_zero(lines);
  const int before = level_;
  for (auto& slots : slots_of_) {
    if (level > level_) slots[0] = slots[1];
    if (level < level_) slots = {formats_.settled_slots[static_cast<size_t>(level)], slots[0]};
  }
  SetLines(lines);
  if (level != before) SetFormats();
  if (swept_lines_ >= lines_) EndSweep();
}

void CompactLines::SetLines(uint64_t lines) {
  lines_ = lines;
  level_ = 63 - std::countl_zero(lines);
  low_mask_ = (uint64_t{1} << level_) - 1;
  split_ = lines - (low_mask_ + 1);
  const uint64_t pages = (lines + kLinesInPage - 1) / kLinesInPage;
  if (pages == keep_pages_) return;
  keep_pages_ = pages;
  const int64_t needed = static_cast<int64_t>(pages * kLinesInPage) * kCompactLineBytes;
  // Nothing below the smallest table would make it grow and shrink in turn.
  const bool is_least = lines <= uint64_t{1} << kCompactLeastLevel;
  const int64_t kept = is_least ? 0 : std::max(LineMemory::WholePagesFor(1), needed / kKeptPart);
  keep_bytes_ = BytesToTake(needed) + kept;
}

void CompactLines::SetFormats() {
  for (size_t region = 0; region < regions_.size(); ++region) {
    const int slots = slots_of_[region / 2][region % 2];
    const int level = level_ + static_cast<int>(region % 2);
    regions_[region] = formats_.Of(slots, level);
    regions_[region].weight = static_cast<uint8_t>(2 * slots + static_cast<int>(region % 2));
    rates_[region] = formats_.RateOf(slots, level);
  }
  CountSlots();
}

void CompactLines::SetSplitSlots(int slots) {
  for (auto& slots_of : slots_of_) slots_of[1] = slots;
  SetFormats();
}

void CompactLines::CountSlots() {
  const uint64_t swept_split =
      std::min(swept_lines_, split_) + (swept_lines_ > low_mask_ ? swept_lines_ - low_mask_ - 1 : 0);
  const uint64_t lines[] = {low_mask_ + 1 - split_ - (swept_lines_ - swept_split), 2 * split_ - swept_split,
                            swept_lines_ - swept_split, swept_split};
  slots_ = 0;
  double rates = 0;
  for (size_t region = 0; region < regions_.size(); ++region) {
    const auto slots = static_cast<int64_t>(lines[region]) * regions_[region].slots;
    slots_ += slots;
    rates += static_cast<double>(slots) * rates_[region];
  }
  entry_rate_ = rates / static_cast<double>(slots_);
}

bool CompactLines::BeginSweep(int slots, int split_slots) {
  const auto [present, split_present] = slots_of_[0];
  if (split_ == 0) split_slots = split_present;  // of no line
  if (slots < present || split_slots < split_present) return false;
  if (slots == present && split_slots == split_present) return false;
  slots_of_[1] = {slots, split_slots};
  sweeping_ = true;
  SetFormats();
  return true;
}

void CompactLines::EndSweep() {
  if (sweeping_) slots_of_[0] = slots_of_[1];
  sweeping_ = false;
  swept_lines_ = 0;
  SetFormats();
}

bool CompactLines::HasMemoryFor(int64_t needed) {
  const int64_t before = memory_.bytes();
  if (needed + (TakesHugePages(needed) ? kAhead : 0) <= before) return true;
  if (lines_ >= uint64_t{1} << kCompactMostLevel) return false;
  if (!TakesHugePages(needed) && TakesHugePages(needed + kAhead)) {
    memory_.ExpectPrepare();  // before the first huge page, in one of the calls that take small ones
  }
  if (!memory_.GrowOrMove(BytesToTake(needed))) return memory_.GrowOrMove(needed);
  memory_.Prepare(before);
  return true;
}

void CompactLines::GiveBack(int64_t most_bytes) {
  if (!HasExcess()) return;
  const int64_t needed = BytesToTake(static_cast<int64_t>(lines_) * kCompactLineBytes);
  int64_t kept = std::max(needed, LineMemory::WholePagesFor(memory_.bytes() - most_bytes));
  if (memory_.bytes() > kCompactHugeFrom) {
    kept = std::max(
        needed, std::min(kept, (memory_.bytes() - 1) / LineMemory::kChunkBytes * LineMemory::kChunkBytes));
  }
  memory_.Shrink(kept);
  LETHE_DEBUG_ASSERT(memory_.bytes() >= static_cast<int64_t>(lines_) * kCompactLineBytes);
}

std::shared_ptr<CompactCopy> CompactLines::BeginCopy() {
  if (const std::shared_ptr<CompactCopy> before = copy_.lock()) before->Break();
  auto copy = std::make_shared<CompactCopy>(lines_);
  copy_ = copy;
  return copy;
}

template <typename Self, typename Fields>
void CompactLines::TransferFields(Self& self, int64_t& lines, const CompactSpan& span, Fields& fields) {
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
    fields.Int(stashed.tag, 0, self.formats_.wide ? UINT16_MAX : UINT8_MAX);
  }
}

void CompactLines::Save(const CompactSpan& span, FieldWriter* fields) const {
  int64_t lines = static_cast<int64_t>(lines_);
  TransferFields(*this, lines, span, *fields);
}

int64_t CompactLines::Restore(const CompactSpan& span, FieldReader* fields) {
  int64_t lines = 0;
  TransferFields(*this, lines, span, *fields);
  for (size_t split = 0; split < 2; ++split) {
    if (sweeping_ && slots_of_[1][split] < slots_of_[0][split]) return 0;
  }
  return fields->ok() ? lines : 0;
}

bool CompactLines::MakeRoomFor(int64_t lines, int64_t memory_bytes) {
  const int64_t needed = lines * kCompactLineBytes;
  if (!memory_.GrowOrMove(std::max(needed, memory_bytes))) return false;
  if (TakesHugePages(needed)) memory_.Prepare(0);
  SetLines(static_cast<uint64_t>(lines));
  SetFormats();
  return true;
}

}  // namespace lethe
