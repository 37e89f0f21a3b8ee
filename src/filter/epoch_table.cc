#include "src/filter/epoch_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "src/filter/fixed_share.h"

namespace lethe {
namespace {

constexpr int kSlices = 13;  // with the current epoch and the one being swept, 15 tags
constexpr int64_t kLinesInChunk = 256;
constexpr int64_t kEntriesInChunk = kLinesInChunk * kEntriesInLine;
constexpr int64_t kChunkBytes = kEntriesInChunk * static_cast<int64_t>(sizeof(uint32_t));
// A table grows to 64 GiB at most. So its chunks are chosen by 22 bits, and a fingerprint, 28 bits of the
// 56 that choose no line, can begin at any of these and outlast all splits.
constexpr int kMostLevel = 22;

// Loads of a chunk that is yet to be split: when the first one is, and when all have been. At 0.8 six ids in
// a million find both of their lines full; at 0.83 it would be 160.
constexpr double kFirstSplitLoad = 0.7;
constexpr double kFullLoad = 0.8;
// Loads that chunks have when merged: that of the last pair, and of the first.
constexpr double kLastMergeLoad = 0.3;
constexpr double kFirstMergeLoad = 0.4;
// How far a fingerprint's offset may be under what the table's size calls for, at a target of 1.
constexpr double kFppWhenFull = 2 * kFullLoad * kEntriesInLine / (1 << 28);

// An insertion sweeps so many lines: enough to be through within an epoch while the rate is steady. What
// is left at its end is swept at once.
constexpr int64_t kLinesPerInsertion = 2;
constexpr int kInsertionsPerMerge = kLinesInChunk / kLinesPerInsertion;

constexpr uint64_t Chooser(IdHash id) { return id.a & ((uint64_t{1} << 56) - 1); }

constexpr uint32_t Fingerprint(IdHash id, int offset) {
  return static_cast<uint32_t>(Chooser(id) >> offset) << 4;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EpochTable>> EpochTable::Create(const FilterOptions& options,
                                                               const LineOperations& operations) {
  const auto share = static_cast<uint64_t>(FixedShareBytes(*options.memory) / kChunkBytes);
  const int level = std::countr_zero(std::bit_floor(share));
  absl::StatusOr<LineMemory> memory =
      LineMemory::Create(options.memory, kChunkBytes << level,
                         std::min(LineMemory::RoomUnder(*options.memory), kChunkBytes << kMostLevel));
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<EpochTable>(new EpochTable(options, operations, level, *std::move(memory)));
}

EpochTable::EpochTable(const FilterOptions& options, const LineOperations& operations, int level,
                       LineMemory memory)
    : target_fpp_(options.target_fpp),
      operations_(operations),
      lowest_level_(level),
      epochs_(options.horizon, kSlices),
      memory_(std::move(memory)),
      overflow_(options.memory),
      level_(level) {
  offset_[static_cast<size_t>(epochs_.current())] = level;
  NoteDeaths();
  NoteSize();
}

uint32_t* EpochTable::Chunk(int64_t chunk) const {
  return static_cast<uint32_t*>(memory_.data()) + chunk * kEntriesInChunk;
}

EpochTable::Lines EpochTable::LinesOf(IdHash id) const {
  const uint64_t whole = uint64_t{1} << level_;
  uint64_t chunk = Chooser(id) & (2 * whole - 1);
  if (chunk >= whole + static_cast<uint64_t>(split_)) chunk -= whole;
  // The lines come from other bits: the first is any, the second any other one.
  const uint64_t first = id.a >> 56;
  const uint64_t second = (first + 1 + ((id.b >> 56) * (kLinesInChunk - 1) >> 8)) % kLinesInChunk;
  uint32_t* const lines = Chunk(static_cast<int64_t>(chunk));
  return {.first = lines + first * kEntriesInLine, .second = lines + second * kEntriesInLine};
}

void EpochTable::PrefetchId(IdHash id) const {
  const Lines lines = LinesOf(id);
  __builtin_prefetch(lines.first, 1);
  __builtin_prefetch(lines.second, 1);
}

// The entry in which the id may be, or nullptr. The scan for the current epoch's offset, which tells the
// free entries too, is left in *newest.
uint32_t* EpochTable::FindEntry(const Lines& lines, IdHash id, TwoLines* newest) const {
  for (int i = 0; i < offset_count_; ++i) {
    const int offset = offsets_[static_cast<size_t>(i)];
    const TwoLines found = operations_.scan(lines.first, lines.second, Fingerprint(id, offset), live());
    if (i == 0) *newest = found;
    for (uint32_t hits = found.hits; hits != 0; hits &= hits - 1) {
      const int at = std::countr_zero(hits);
      uint32_t* const entry = at < kEntriesInLine ? lines.first + at : lines.second + (at - kEntriesInLine);
      if (offset_[*entry & kTagMask] == offset) return entry;
    }
  }
  return nullptr;
}

bool EpochTable::ContainsId(IdHash id) const {
  TwoLines newest;
  return FindEntry(LinesOf(id), id, &newest) != nullptr || overflow_.Find(id.a) != nullptr;
}

bool EpochTable::TestAndInsertId(IdHash id) {
  Tend();
  const Lines lines = LinesOf(id);
  TwoLines newest;
  if (FindEntry(lines, id, &newest) != nullptr || overflow_.Find(id.a) != nullptr) return true;
  Put(id, lines, newest.free);
  return false;
}

void EpochTable::InsertId(IdHash id) {
  Tend();
  const Lines lines = LinesOf(id);
  TwoLines newest;
  uint32_t* const entry = FindEntry(lines, id, &newest);
  const int current = epochs_.current();
  if (entry != nullptr && offset_[*entry & kTagMask] == offset_[static_cast<size_t>(current)]) {
    // The same entry would be made again. Under another offset it might be another id's, and stays.
    epochs_.Count(static_cast<int>(*entry & kTagMask), -1);
    epochs_.Count(current, 1);
    *entry = (*entry & ~kTagMask) | static_cast<uint32_t>(current);
    return;
  }
  if (uint8_t* const tag = overflow_.Find(id.a); tag != nullptr) {
    epochs_.Count(*tag, -1);
    epochs_.Count(current, 1);
    *tag = static_cast<uint8_t>(current);
    return;
  }
  Put(id, lines, newest.free);
}

// An entry that is the id's moves to the current epoch, whatever its offset. It may be another id's, which is
// forgotten then: that is as probable as a false positive.
void EpochTable::ReplayId(IdHash id) {
  TwoLines newest;
  uint32_t* const entry = FindEntry(LinesOf(id), id, &newest);
  if (entry == nullptr) return InsertId(id);
  const int current = epochs_.current();
  epochs_.Count(static_cast<int>(*entry & kTagMask), -1);
  epochs_.Count(current, 1);
  *entry = Fingerprint(id, offset_[static_cast<size_t>(current)]) | static_cast<uint32_t>(current);
}

void EpochTable::Put(IdHash id, const Lines& lines, uint32_t free) {
  while (!Store(id, lines, free)) {
    // The lines are full and the overflow finds no memory: forgetting makes entries free.
    ++limit_hits_;
    DropOldest();
    free = operations_.scan(lines.first, lines.second, 0, live()).free;
  }
  epochs_.Count(epochs_.current(), 1);
}

bool EpochTable::Store(IdHash id, const Lines& lines, uint32_t free) {
  const int current = epochs_.current();
  if (free == 0) return overflow_.Insert(id.a, static_cast<uint8_t>(current));
  const uint32_t in_first = free & 0xffff;
  const uint32_t in_second = free >> kEntriesInLine;
  const bool first = std::popcount(in_first) >= std::popcount(in_second);
  uint32_t* const line = first ? lines.first : lines.second;
  line[std::countr_zero(first ? in_first : in_second)] =
      Fingerprint(id, offset_[static_cast<size_t>(current)]) | static_cast<uint32_t>(current);
  return true;
}

void EpochTable::Tend() {
  if (swept_lines_ < chunks() * kLinesInChunk) Sweep(kLinesPerInsertion);
  if (epochs_.ids() >= split_at_ids_) {
    Fit();
  } else if (epochs_.ids() < merge_under_ids_ && --insertions_to_merge_ <= 0) {
    insertions_to_merge_ = kInsertionsPerMerge;
    Merge();
  }
}

void EpochTable::Sweep(int64_t lines) {
  const int64_t count = std::min(lines, chunks() * kLinesInChunk - swept_lines_);
  operations_.clear_dead(Chunk(0) + swept_lines_ * kEntriesInLine, count, live());
  swept_lines_ += count;
}

void EpochTable::Fit() {
  while (epochs_.ids() >= split_at_ids_) {
    if (Split()) continue;
    ++limit_hits_;
    ForgetAtLimit();
  }
}

int64_t EpochTable::ids_when_full() const {
  return static_cast<int64_t>(kFullLoad * static_cast<double>(kEntriesInChunk << level_));
}

// No chunk could be split. Epochs end when they hold a slice of what there is room for, so that the oldest
// can go one by one; and one goes when there is no room for the next id.
void EpochTable::ForgetAtLimit() {
  const int64_t full = ids_when_full();
  const int64_t epoch = std::max<int64_t>(1, full / kSlices);
  if (epochs_.ids_of(epochs_.current()) >= epoch && epochs_.live_count() <= kSlices) BeginEpoch();
  while (epochs_.ids() >= full) DropOldest();
  // Another filter may give memory back: that is asked for again a part of an epoch later.
  split_at_ids_ = std::min(full, epochs_.ids() + std::max<int64_t>(1, epoch / 4));
}

bool EpochTable::Split() {
  if (level_ == kMostLevel || !memory_.Grow((chunks() + 1) * kChunkBytes)) return false;
  uint32_t* const from = Chunk(split_);
  uint32_t* const to = Chunk(chunks());
  for (int64_t i = 0; i < kEntriesInChunk; ++i) {
    const uint32_t entry = std::exchange(from[i], 0);
    to[i] = 0;
    const uint32_t tag = entry & kTagMask;
    if ((live() >> tag & 1) == 0) continue;
    // The chooser's bit at level_, which is in the fingerprint, parts the two.
    const bool moves = (entry >> (4 + level_ - offset_[tag]) & 1) != 0;
    (moves ? to : from)[i] = entry;
  }
  const bool swept = swept_lines_ == chunks() * kLinesInChunk;  // the new chunk has no dead entries either
  if (++split_ == int64_t{1} << level_) {
    ++level_;
    split_ = 0;
  }
  if (swept) swept_lines_ = chunks() * kLinesInChunk;
  NoteSize();
  return true;
}

// Puts the last chunk's entries back where they came from. False if an epoch's fingerprints do not tell
// any more where they belong, or a line has no room for them.
bool EpochTable::Merge() {
  const int level = split_ > 0 ? level_ : level_ - 1;
  if (level < lowest_level_ ||
      *std::max_element(offsets_.begin(), offsets_.begin() + offset_count_) > level) {
    return false;
  }
  uint32_t* const last = Chunk(chunks() - 1);
  uint32_t* const into = Chunk(chunks() - 1 - (int64_t{1} << level));
  operations_.clear_dead(last, kLinesInChunk, live());
  operations_.clear_dead(into, kLinesInChunk, live());
  const auto is_free = [](uint32_t entry) { return entry == 0; };
  for (int64_t i = 0; i < kEntriesInChunk; i += kEntriesInLine) {
    if (std::count_if(last + i, last + i + kEntriesInLine, is_free) +
            std::count_if(into + i, into + i + kEntriesInLine, is_free) <
        kEntriesInLine) {
      return false;
    }
  }
  for (int64_t i = 0; i < kEntriesInChunk; i += kEntriesInLine) {
    uint32_t* free = into + i;
    for (int64_t j = i; j < i + kEntriesInLine; ++j) {
      if (last[j] == 0) continue;
      free = std::find_if(free, into + i + kEntriesInLine, is_free);
      *free = last[j];
    }
  }
  if (split_ == 0) split_ = int64_t{1} << --level_;
  --split_;
  memory_.Shrink(chunks() * kChunkBytes);
  swept_lines_ = std::min(swept_lines_, chunks() * kLinesInChunk);
  NoteSize();
  return true;
}

// Sets when the table is split and merged next: spread over a range of loads, chunk by chunk, so that all
// chunks of a level are split before those that are not yet become too full.
void EpochTable::NoteSize() {
  const auto entries = static_cast<double>(kEntriesInChunk << level_);
  const double done = std::ldexp(static_cast<double>(split_), -level_);
  split_at_ids_ = static_cast<int64_t>((kFirstSplitLoad + (kFullLoad - kFirstSplitLoad) * done) * entries);
  const double merge_load =
      split_ > 0 ? kLastMergeLoad + (kFirstMergeLoad - kLastMergeLoad) * done : kFirstMergeLoad / 2;
  merge_under_ids_ = split_ > 0 || level_ > lowest_level_ ? static_cast<int64_t>(merge_load * entries) : 0;
}

void EpochTable::BeginEpoch() {
  Sweep(chunks() * kLinesInChunk);  // its tag must be nobody's
  epochs_.Begin();
  offset_[static_cast<size_t>(epochs_.current())] = NewOffset();
  NoteDeaths();
}

void EpochTable::DropOldest() {
  if (epochs_.live_count() == 1) BeginEpoch();
  epochs_.DropOldest();
  NoteDeaths();
}

void EpochTable::NoteDeaths() {
  swept_lines_ = 0;
  overflow_.KeepOnly(IdTable::TagSet(epochs_.live()));
  offsets_[0] = offset_[static_cast<size_t>(epochs_.current())];
  offset_count_ = 1;
  for (int tag = 1; tag <= kSlices + 2; ++tag) {
    const int offset = offset_[static_cast<size_t>(tag)];
    const auto end = offsets_.begin() + offset_count_;
    if ((live() >> tag & 1) != 0 && std::find(offsets_.begin(), end, offset) == end) {
      offsets_[static_cast<size_t>(offset_count_++)] = offset;
    }
  }
}

// As high as can be, for the rate; lower where the table has become too large for its ids, since it cannot
// shrink under the offsets of live epochs; but not so low that the ids of a table filled anew would exceed
// the target.
int EpochTable::NewOffset() const {
  const double wanted_chunks =
      static_cast<double>(epochs_.ids()) / (kFirstMergeLoad * static_cast<double>(kEntriesInChunk));
  const int wanted = wanted_chunks < 1 ? 0 : static_cast<int>(std::log2(wanted_chunks));
  const int slack = static_cast<int>(std::log2(target_fpp_ / kFppWhenFull));
  return std::min(level_, std::max({wanted, level_ - slack, lowest_level_}));
}

void EpochTable::AdvanceTo(int64_t stream_time_ms) {
  if (epochs_.AdvanceTo(stream_time_ms)) BeginEpoch();
}

FilterStatus EpochTable::Status() const {
  // An id of a level's chunk meets two lines of a 256th of its chunk's ids, whatever the level: with each
  // bit that chooses the chunk their number halves, and so does what a fingerprint still tells.
  const double met = 2.0 / static_cast<double>(kLinesInChunk);
  FilterStatus status;
  for (int tag = 1; tag <= kSlices + 2; ++tag) {
    if ((live() >> tag & 1) == 0) continue;
    const int known = 28 + offset_[static_cast<size_t>(tag)];
    status.fpp_estimated += std::ldexp(met * static_cast<double>(epochs_.ids_of(tag)), -known);
  }
  status.past_generations = kSlices;
  status.refresh_period = epochs_.slice();
  status.ids = epochs_.ids();
  status.window = epochs_.Window();
  status.fpp_modelled = std::ldexp(met * static_cast<double>(status.ids), -28 - level_);
  status.fpp_target = target_fpp_;
  status.memory_bytes = memory_.bytes() + overflow_.memory_bytes();
  status.refreshes = epochs_.begun();
  status.limit_hits = limit_hits_;
  return status;
}

}  // namespace lethe
