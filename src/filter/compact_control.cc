#include "src/filter/compact_control.h"

#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/adapt/step_reasons.h"
#include "src/assertion.h"
#include "src/filter/compact_estimate.h"
#include "src/filter/compact_formats.h"
#include "src/filter/stream_clock.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

// The table shrinks under this load, and grows over kCompactFullLoad. If they were closer, it would do both
// in turn as epochs expire.
constexpr double kSlackLoad = 0.795;
// Under this load it shrinks as fast as calls may; above, by one line for so many inserts. In time each line
// of the table is due kPassesInHorizon times a horizon, and that is worth some inserts.
constexpr double kLooseLoad = 0.625;
constexpr double kGrowingLooseLoad = 0.5;  // while it has grown lately
constexpr int64_t kInsertsPerMerge = 12;
constexpr int64_t kInsertsPerLineDue = 6;
constexpr double kPassesInHorizon = 16;
// The load up to which it fills where no memory is left.
constexpr double kLimitLoad = 0.9;

// The most work of one call: some microseconds.
constexpr int kSplitsPerCall = 8;
// Lines that are counted together; tables of few lines would grow or shrink by too much.
constexpr int kSplitsAtOnce = 4;
constexpr int kMergesAtOnce = 16;
constexpr int64_t kFewLines = 1024;
constexpr int64_t kMergeWorkPerCall = 480;
// Where time demands more; beyond the second, which takes tens of microseconds, as much as time has to.
constexpr int64_t kMergeWorkPerLineDue = 12;
constexpr int64_t kMuchMergeWork = 8 * kMergeWorkPerCall;
constexpr int64_t kLeastMergeWorkPerLineDue = 3;
constexpr int64_t kGiveBackPerCall = int64_t{32} << 10;

// Lines that are not yet split in this round fill up first. While there are more ids than there were, one
// insert in so many may find both of its lines full before the table grows at a lower load. Each that does
// takes as long as eight others.
constexpr int64_t kInsertsPerOverflow = 64;
constexpr int64_t kPressureToGrow = 16 * kInsertsPerOverflow;

// A table that has grown goes back to settled formats once these take so much of the target, which is what a
// full one takes, and leave enough for the next doubling.
constexpr double kSettledFpp = 0.5;
constexpr double kSettledShare = 0.93;
// The target's part that doublings may take, and what the next one may take of the rest: at most this, or a
// share that is the smaller, the more of them will follow. All bits that an early one saves are of a small
// table, and what it spends of the rate stays for a horizon.
constexpr double kGrowthTarget = 0.9;
constexpr double kMostGrowthShare = 0.9;
constexpr double kGrowthShare = 1.1;
// A table holds the ids of so long under a steady load.
constexpr double kHeldHorizons = 1 + 1.0 / CompactEpochs::kInHorizon;
// A table that will have more than so many times its ids is not settled.
constexpr double kLittleGrowth = 1.11;
constexpr double kLimitShare = 0.95;
constexpr int64_t kInsertsPerSweptLine = 2;
constexpr int64_t kLinesSweptAtLimit = 32;

// A snapshot may claim so much memory beyond twice the lines, which the filter had not given back yet.
constexpr int64_t kMostSpareBytes = int64_t{4} << 20;

// At the memory limit epochs also end with a share of the slots, so that one can go at a time.
constexpr int64_t kEpochsAtLimit = 16;
// The latest steps that are kept, and the counted kinds.
constexpr size_t kSteps = 16;
constexpr StepCount kCountedSteps[] = {
    {AdaptationStep::Kind::kRefresh, kShareReached},
    {AdaptationStep::Kind::kRefresh, kLongest},
    {AdaptationStep::Kind::kRefresh, kFull},
    {AdaptationStep::Kind::kUnfold, kMoreIds},
    {AdaptationStep::Kind::kFold, kFewerIds},
    {AdaptationStep::Kind::kUnfoldRefused, kNoRoomToGrow},
    {AdaptationStep::Kind::kShortenWindow, kOldestDropped},
};
// More stashed ids than these slow lookups down.
constexpr int kMostStashedAtLimit = 16;
// The next attempt to drain the stash comes so many inserts after one that found no room, which takes some
// microseconds.
constexpr int64_t kInsertsPerVainDrain = 32;

}  // namespace

absl::StatusOr<CompactMemory> TakeCompactMemory(MemoryBudget* budget, int64_t own_bytes) {
  absl::StatusOr<LineMemory> lines = LineMemory::Create(budget, kCompactLineBytes << kCompactLeastLevel,
                                                        LineMemory::kFirstRoomBytes, kCompactHugeFrom);
  if (!lines.ok()) return lines.status();
  Reservation own(budget);
  if (!own.Grow(own_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory limit of ", budget->limit_bytes(),
                     " bytes has no room for a filter: raise it, or open fewer partitions"));
  }
  return CompactMemory{*std::move(lines), std::move(own)};
}

CompactControl::CompactControl(const FilterOptions& options, Reservation own)
    : budget_(options.memory),
      epochs_(WholeMilliseconds(options.horizon)),
      target_fpp_(options.target_fpp),
      own_(std::move(own)),
      steps_(kSteps, kCountedSteps) {
  budget_->AddUser();
}

CompactControl::~CompactControl() { budget_->RemoveUser(); }

void CompactControl::Control(CompactLines* table) {
  table_ = table;
  NoteSize();
}

int64_t CompactControl::HeapBytes() { return StepLog::HeapBytes(kSteps, std::size(kCountedSteps)); }

FilterStatus CompactControl::Figures() const {
  FilterStatus status;
  GetFigures(&status, /*with_generations=*/true);
  return status;
}

class CompactControl::Looker : public EngineFilter::Sample {
 public:
  Looker(const CompactControl* filter, int64_t most_lines) : filter_(filter), sample_(most_lines) {}
  bool Look() override { return sample_.Look(*filter_->table_, filter_->epochs_.span()); }
  void Describe(FilterStatus* status) const override {
    const CompactEstimate estimate = sample_.Estimate();
    status->fpp.estimated = estimate.fpp;
    status->fpp.deviation = estimate.deviation;
  }

 private:
  const CompactControl* const filter_;
  CompactSample sample_;
};

std::unique_ptr<EngineFilter::Sample> CompactControl::BeginSample(int64_t most_lines) const {
  return std::make_unique<Looker>(this, most_lines);
}

void CompactControl::NoteEpoch() {
  if (epochs_.live() > 1) {
    const CompactEpochs::Epoch& ended = epochs_[epochs_.span().newest - 1];
    const bool is_long = epochs_.now_ms() - ended.first_ms >= epochs_.longest_ms();
    const bool is_full = ended.ids >= most_ids_in_epoch_;
    Record(AdaptationStep::Kind::kRefresh, is_long ? kLongest : is_full ? kFull : kShareReached);
  }
  LETHE_DEBUG_ASSERT(epochs_.ids() <= table_->slots() + CompactLines::kMostStashed);
  peak_ids_ = std::max(epochs_.ids(), peak_ids_ - peak_ids_ / 64);
  merge_failed_at_ = INT64_MAX;
  table_->SweepStamps(epochs_.span());
  SweepIfSettled();
  NoteSize();
}

int64_t CompactControl::GenerationBits() const {
  return table_->lines() * 8 * kCompactLineBytes / std::max(1, epochs_.live());
}

int64_t CompactControl::MemoryAboveNeed() const {
  const double ids_per_line =
      kCompactFullLoad * static_cast<double>(table_->slots()) / static_cast<double>(table_->lines());
  const auto lines = static_cast<int64_t>(static_cast<double>(epochs_.ids()) / ids_per_line);
  const int64_t least = int64_t{1} << kCompactLeastLevel;
  return std::max<int64_t>(0, table_->memory_bytes() - std::max(least, lines) * kCompactLineBytes);
}

void CompactControl::Record(AdaptationStep::Kind kind, absl::string_view reason) {
  steps_.Record({kind, epochs_.now_ms(), GenerationBits(), reason});
}

void CompactControl::Work(int64_t lines_due) {
  if (budget_->IsOverdrawn()) {
    NoteSize();  // it may shrink now
    Yield();
  }
  if (table_->stashed() > 0 && (inserts_ >= drain_at_ || lines_due > 0)) DrainStash();
  if (epochs_.ids() > grow_over_ids_) {
    Grow();
  } else if (epochs_.ids() < shrink_under_ids_) {
    Shrink(lines_due);
  }
  if (table_->IsSweeping()) Sweep(lines_due + (inserts_ % kInsertsPerSweptLine == 0 ? 1 : 0));
  if (table_->HasExcess() && !table_->IsBeingCopied())
    table_->GiveBack(std::max(kGiveBackPerCall, lines_due * kCompactLineBytes));
  NoteDue();
}

void CompactControl::NoteDue() {
  const bool is_due = epochs_.ids() < shrink_under_ids_ || table_->stashed() > 0 || table_->HasExcess() ||
                      table_->IsSweeping();
  due_over_ids_ = is_due ? -1 : grow_over_ids_;
}

void CompactControl::Grow() {
  for (int i = 0; i < kSplitsPerCall && epochs_.ids() > grow_over_ids_; i += kSplitsAtOnce) {
    if (Split(table_->lines() < kFewLines ? 1 : kSplitsAtOnce)) continue;
    // Another filter may give memory back: ask again when a small part more is filled.
    grow_over_ids_ = epochs_.ids() + table_->slots() / 256;
    return;
  }
}

void CompactControl::MakeRoom() {
  while (epochs_.ids() >= limit_ids_) MakeSomeRoom();
}

void CompactControl::MakeSomeRoom() {
  if (!Split(1) && !SweepAtLimit()) ForgetAtLimit();
}

void CompactControl::Sweep(int64_t lines) {
  if (table_->IsBeingCopied() || lines == 0) return;
  table_->Sweep(epochs_.span(), lines);
  NoteSize();
}

double CompactControl::RateWith(int slots, int split_slots) const {
  const CompactFormats& formats = table_->formats();
  const int level = table_->level();
  const double split = table_->split_part();
  const double unsplit_slots = (1 - split) * slots;
  const double rates = unsplit_slots * formats.RateOf(slots, level) +
                       2 * split * split_slots * formats.RateOf(split_slots, level + 1);
  return rates / (unsplit_slots + 2 * split * split_slots);
}

double CompactControl::MostFppWith(int slots, int split_slots) const {
  const double lost = RateWith(slots, split_slots) - table_->entry_rate();
  return epochs_.Fpp(table_->risen()) + std::max(0.0, lost) * static_cast<double>(epochs_.ids());
}

int CompactControl::SettledSlots(bool split) const {
  return table_->formats().settled_slots[static_cast<size_t>(table_->level()) + (split ? 1 : 0)];
}

double CompactControl::GrowthToCome() const {
  const CompactSpan& span = epochs_.span();
  const int64_t since = std::max(span.oldest, span.newest - 1);
  int64_t ids = 0;
  for (int64_t number = since; number <= span.newest; ++number) ids += epochs_[number].ids;
  if (ids == 0) return 1;
  const auto passed_ms =
      static_cast<double>(std::max<int64_t>(1, epochs_.now_ms() - epochs_[since].first_ms));
  const double to_come_by_ms =
      static_cast<double>(ids) * kHeldHorizons * static_cast<double>(epochs_.horizon_ms());
  return std::max(1.0, to_come_by_ms / (passed_ms * static_cast<double>(epochs_.ids())));
}

void CompactControl::SweepIfSettled() {
  if (table_->IsSweeping() || GrowthToCome() > kLittleGrowth) return;
  const int slots = SettledSlots(false);
  const int split_slots = SettledSlots(true);
  // At least the rate then, which is at most twice this: each epoch has its own or that of the formats.
  const CompactLoad load = {.fpp = epochs_.Fpp(table_->risen(), RateWith(slots, split_slots)),
                            .level = table_->level(),
                            .split = table_->split_part(),
                            .slots = slots};
  if (load.fpp > kSettledFpp * target_fpp_) return;
  const int found = CompactSlotsFor(table_->formats(), load, target_fpp_, kSettledShare, split_slots);
  if (found + 1 >= split_slots) table_->BeginSweep(slots, found);
}

bool CompactControl::SweepAtLimit() {
  if (table_->IsBeingCopied()) return false;
  for (int fewer = 0; !table_->IsSweeping(); ++fewer) {
    const int slots = std::max(SettledSlots(false) - fewer, table_->slots_of(false));
    const int split_slots = std::max(SettledSlots(true) - fewer, table_->slots_of(true));
    if (MostFppWith(slots, split_slots) > kLimitShare * target_fpp_) {
      if (slots == table_->slots_of(false) && split_slots == table_->slots_of(true)) return false;
      continue;
    }
    if (!table_->BeginSweep(slots, split_slots)) return false;
  }
  Sweep(kLinesSweptAtLimit);
  return true;
}

int CompactControl::SlotsToGrow() const {
  const CompactLoad load = {.fpp = epochs_.Fpp(table_->risen()),
                            .level = table_->level(),
                            .split = 0,
                            .slots = table_->slots_of(/*split=*/false)};
  const int most = table_->formats().settled_slots[static_cast<size_t>(load.level) + 1];
  const double share = std::min(kMostGrowthShare, kGrowthShare / (1 + std::log2(GrowthToCome())));
  return CompactSlotsFor(table_->formats(), load, kGrowthTarget * target_fpp_, share, most);
}

bool CompactControl::Split(int most) {
  const int64_t bytes = table_->memory_bytes();
  if (table_->Split(epochs_.span(), table_->BeginsDoubling() ? SlotsToGrow() : 0, most) == 0) {
    most_ids_in_epoch_ = EpochIdsAtLimit();
    if (!steps_.IsLast(AdaptationStep::Kind::kUnfoldRefused)) {
      Record(AdaptationStep::Kind::kUnfoldRefused, kNoRoomToGrow);
    }
    return false;
  }
  if (table_->HasDropped()) CountDropped();
  NoteSize();
  if (table_->memory_bytes() != bytes) NoteLimit();
  return true;
}

void CompactControl::CountDropped() {
  const CompactCounts dropped = table_->TakeDropped();
  for (int64_t epoch = epochs_.span().oldest; epoch <= epochs_.span().newest; ++epoch) {
    lost_ids_ += epochs_.Drop(epoch, dropped[CompactPlaceOf(epoch)]);
  }
}

void CompactControl::DrainStash() {
  const int stashed = table_->stashed();
  table_->DrainStash(epochs_.span());
  if (table_->stashed() == stashed) drain_at_ = inserts_ + kInsertsPerVainDrain;
  // By chance ids are stashed in tables that are nearly full, or grow. What is stashed at a lower load will
  // hardly find room in a larger table, either.
  for (int i = 0; i < table_->stashed() / 4 && i < kSplitsPerCall && LoadIsOver(kSlackLoad); ++i) {
    if (Split(1)) continue;
    if (table_->stashed() > kMostStashedAtLimit && epochs_.live() > 1 && IsFull() && !SweepAtLimit()) {
      ForgetAtLimit();
    }
    return;
  }
}

void CompactControl::Shrink(int64_t lines_due) {
  if (table_->IsBeingCopied()) return;
  const bool is_loose =
      static_cast<double>(epochs_.ids()) < kLooseLoad * static_cast<double>(table_->slots()) ||
      budget_->IsOverdrawn();
  merged_at_ = std::max<int64_t>(0, merged_at_ - lines_due * kInsertsPerLineDue);
  int64_t most = INT64_MAX;
  if (!is_loose) {
    most = std::min(1 + lines_due * kInsertsPerLineDue / kInsertsPerMerge,
                    (inserts_ - merged_at_) / kInsertsPerMerge);
    if (epochs_.begun() < no_shrink_before_ || most == 0) return;
  }
  merged_at_ = inserts_;
  int64_t work = std::max(
      kMergeWorkPerCall,
      std::min(kMergeWorkPerLineDue * lines_due, kMuchMergeWork + kLeastMergeWorkPerLineDue * lines_due));
  while (most > 0 && work > 0 && epochs_.ids() < shrink_under_ids_) {
    const int64_t at_once = std::min<int64_t>(most, table_->lines() < kFewLines ? 1 : kMergesAtOnce);
    const int merged = table_->Merge(epochs_.span(), static_cast<int>(at_once), &work);
    if (merged == 0) merge_failed_at_ = epochs_.ids() - epochs_.ids() / 64 - 1;
    most -= merged;
    NoteSize();
  }
}

void CompactControl::NotePressure() {
  pressure_ = std::max<int64_t>(pressure_ - (inserts_ - overflow_at_), 0) + kInsertsPerOverflow;
  pressure_ = std::min(pressure_, 2 * kPressureToGrow);
  overflow_at_ = inserts_;
  if (pressure_ <= kPressureToGrow || epochs_.ids() <= peak_ids_ || GrowthToCome() <= kLittleGrowth) return;
  if (!LoadIsOver(kLooseLoad)) return;  // in a table like that not by chance
  no_shrink_before_ = epochs_.begun() + 2;
  Split(3);
}

void CompactControl::ForgetAtLimit() {
  ++limit_hits_;
  most_ids_in_epoch_ = EpochIdsAtLimit();
  if (epochs_.live() == 1 && epochs_.BeginIfDue(0)) table_->SweepStamps(epochs_.span());
  Record(AdaptationStep::Kind::kShortenWindow, kOldestDropped);
  epochs_.ForgetOldest();
  NoteSize();
}

void CompactControl::Yield() {
  if (table_->memory_bytes() <= budget_->EvenPart() || epochs_.ids() < shrink_under_ids_) return;
  if (epochs_.live() > 1) {
    ForgetAtLimit();
  } else {
    most_ids_in_epoch_ = EpochIdsAtLimit();
  }
}

int64_t CompactControl::EpochIdsAtLimit() const {
  const auto bytes = static_cast<double>(table_->memory_bytes());
  const double most = 1 + static_cast<double>(budget_->free_bytes()) / bytes;
  return std::max<int64_t>(
      1, static_cast<int64_t>(most * static_cast<double>(table_->slots())) / kEpochsAtLimit);
}

void CompactControl::NoteSize() {
  epochs_.SetRate(table_->entry_rate());
  if (__builtin_expect(table_->level() != recorded_level_, 0)) {
    const bool is_larger = table_->level() > recorded_level_;
    Record(is_larger ? AdaptationStep::Kind::kUnfold : AdaptationStep::Kind::kFold,
           is_larger ? kMoreIds : kFewerIds);
    recorded_level_ = table_->level();
  }
  const auto slots = static_cast<double>(table_->slots());
  grow_over_ids_ = static_cast<int64_t>(kCompactFullLoad * slots);
  limit_ids_ = static_cast<int64_t>(kLimitLoad * slots);
  const bool is_least = table_->lines() <= int64_t{1} << kCompactLeastLevel;
  // Shrink() is not called for each insert while it would do nothing.
  const bool waits = epochs_.begun() < no_shrink_before_ && !budget_->IsOverdrawn();
  const double load = waits ? kGrowingLooseLoad : kSlackLoad;
  shrink_under_ids_ = is_least ? 0 : std::min(static_cast<int64_t>(load * slots), merge_failed_at_);
  NoteDue();
}

void CompactControl::NoteLimit() {
  most_ids_in_epoch_ = budget_->free_bytes() < table_->memory_bytes() ? EpochIdsAtLimit() : INT64_MAX;
}

int64_t CompactControl::LinesDue(int64_t now_ms, int64_t before_ms) const {
  if (before_ms == kNoStreamTime) return 0;
  const double horizons = static_cast<double>(now_ms - before_ms) / static_cast<double>(epochs_.horizon_ms());
  const int64_t lines = table_->memory_bytes() / kCompactLineBytes;
  return static_cast<int64_t>(static_cast<double>(lines) * std::min(kPassesInHorizon * horizons, 1.0));
}

void CompactControl::GetFigures(FilterStatus* into, bool with_generations) const {
  FilterStatus& status = *into;
  status.shape.past_generations = std::max(0, epochs_.live() - 1);
  status.shape.refresh_period = epochs_.RefreshPeriod();
  status.shape.bits_per_generation = GenerationBits();
  steps_.Describe(&status);
  status.shape.bits_per_id = table_->fingerprint_bits();
  status.shape.lines = table_->lines();
  status.ids = epochs_.ids();
  status.window = epochs_.Window();
  status.fpp.modelled = epochs_.Fpp(table_->risen());
  status.fpp.at_interval_end = status.fpp.modelled;  // nothing waits for the end of an interval
  status.fpp.target = target_fpp_;
  status.memory_bytes = table_->memory_bytes() + own_.bytes();
  status.memory_above_need_bytes = MemoryAboveNeed();
  status.refreshes = epochs_.begun();
  status.limit_hits = limit_hits_;
  status.lost_ids = lost_ids_;
  const auto fill = [this](const CompactEpochs::Epoch& epoch) {
    return static_cast<double>(epoch.ids) / static_cast<double>(table_->slots());
  };
  const CompactSpan& span = epochs_.span();
  status.present_fill = epochs_.live() > 0 ? fill(epochs_[span.newest]) : 0;
  status.generations.clear();
  for (int64_t number = span.newest; with_generations && number >= span.oldest; --number) {
    const CompactEpochs::Epoch& epoch = epochs_[number];
    const auto ago = [&](int64_t time_ms) { return absl::Milliseconds(epochs_.now_ms() - time_ms); };
    status.generations.push_back(
        {.ids = epoch.ids, .oldest = ago(epoch.first_ms), .newest = ago(epoch.last_ms), .fill = fill(epoch)});
  }
}

template <typename Self, typename Fields>
void CompactControl::Transfer(Self& self, int64_t& memory_bytes, Fields& fields) {
  fields.Count(memory_bytes);
  fields.Int(self.grow_over_ids_, 0, INT64_MAX);
  fields.Int(self.merge_failed_at_, -1, INT64_MAX);
  fields.Int(self.most_ids_in_epoch_, 1, INT64_MAX);
  fields.Count(self.inserts_);
  fields.Int(self.merged_at_, 0, self.inserts_);
  fields.Int(self.overflow_at_, 0, self.inserts_);
  fields.Count(self.drain_at_);
  fields.Int(self.pressure_, 0, 2 * kPressureToGrow);
  fields.Count(self.peak_ids_);
  fields.Count(self.no_shrink_before_);
  fields.Count(self.limit_hits_);
  fields.Count(self.lost_ids_);
  StepLog::Transfer<kStepReasons>(self.steps_, fields);
}

absl::StatusOr<FilterImage> CompactControl::BeginCopy() const {
  FieldWriter fields;
  epochs_.Save(&fields);
  table_->Save(epochs_.span(), &fields);
  const auto lines_bytes = static_cast<int64_t>(table_->memory().size());
  int64_t memory_bytes = std::min(table_->memory_bytes(), 2 * lines_bytes + kMostSpareBytes);
  Transfer(*this, memory_bytes, fields);
  if (!fields.ok()) return absl::InternalError("compact filter: its state is inconsistent");
  return FilterImage{fields.bytes(), {table_->memory()}, ImageEpoch(), table_->BeginCopy()};
}

bool CompactControl::CopyMemory(const FilterImage& image, absl::Span<const char> part, char* to) const {
  if (ImageEpoch() != image.epoch) return false;
  const auto index = static_cast<uint64_t>(part.data() - image.memory.front().data()) / kCompactLineBytes;
  // The lines may have moved since.
  const absl::Span<const char> lines = table_->memory().subspan(index * kCompactLineBytes, part.size());
  return static_cast<CompactCopy*>(image.copy.get())->Copy(index, lines, to);
}

absl::StatusOr<std::vector<absl::Span<char>>> CompactControl::Restore(absl::string_view state,
                                                                      int64_t bytes) {
  FieldReader fields(state);
  const bool has_epochs = epochs_.Restore(&fields);
  const int64_t lines = table_->Restore(epochs_.span(), &fields);
  int64_t memory_bytes = 0;
  Transfer(*this, memory_bytes, fields);
  if (!has_epochs || !fields.Ended() || !steps_.IsSound() || bytes != lines * kCompactLineBytes ||
      memory_bytes > 2 * bytes + kMostSpareBytes) {
    return absl::DataLossError("the saved state of a compact filter is inconsistent");
  }
  if (!table_->MakeRoomFor(lines, memory_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("the filter needs ", std::max(bytes, memory_bytes),
                                                     " bytes, and of the memory limit of ",
                                                     budget_->limit_bytes(), " only ", budget_->free_bytes(),
                                                     " are left: raise it, or open fewer partitions"));
  }
  if (epochs_.ids() > table_->slots() + CompactLines::kMostStashed) {
    return absl::DataLossError("the saved state of a compact filter claims more ids than its lines can hold");
  }
  const int64_t grow_over_ids = grow_over_ids_;
  recorded_level_ = table_->level();
  NoteSize();
  grow_over_ids_ = std::min(grow_over_ids, limit_ids_);
  NoteDue();
  const absl::Span<const char> memory = table_->memory();
  return std::vector<absl::Span<char>>{{const_cast<char*>(memory.data()), memory.size()}};
}

bool CompactControl::Restored() {
  CompactHeld held;
  const CompactSpan span = epochs_.span();
  if (!table_->CheckLines(span, &held)) return false;
  if (epochs_.live() == 0) return true;
  const int64_t counted = epochs_[span.newest].ids;
  if (held.ids_of_newest > counted) epochs_.AddUncounted(held.ids_of_newest - counted);
  for (int64_t epoch = span.oldest; epoch <= span.newest; ++epoch) {
    epochs_.SetFpp(epoch, held.fpp[static_cast<size_t>(epoch - span.oldest)]);
  }
  return true;
}

}  // namespace lethe
