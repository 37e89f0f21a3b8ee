#include "src/reference/sliced/sliced_fbf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/filter/each_id.h"
#include "src/filter/stream_clock.h"
#include "src/memory/line_memory.h"
#include "src/memory/reservation.h"
#include "src/reference/sliced/budget.h"
#include "src/reference/sliced/sliced_estimate.h"
#include "src/reference/sliced/sliced_lines.h"
#include "src/reference/sliced/sliced_model.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

// Passes are paid for by inserts; but a filter that is full of false positives gets none, and would never
// be swept, and a quiet one would keep its memory. So time takes them further too: a part of the lines
// with each part of the horizon, half as long.
constexpr int64_t kPassPartsByTime = 512;
constexpr int64_t kPassStepsPerHorizon = 1024;
// Where calls come often, each does no more lines of it than these, some ten microseconds' worth.
constexpr int64_t kLinesByTime = 256;
// Inserts of a step are counted in the budget at its end, with the time of that. So that a few ids of a quiet
// stream are not taken for much younger than they are, a step ends at such parts of the horizon at the
// latest.
constexpr int64_t kStepsPerHorizon = 64;
// Lines looked at for Status.
constexpr int64_t kStatusLines = 16384;
// No step has more inserts.
constexpr int64_t kMostStepInserts = 1024;
// Nor has one more lines of a pass to take.
constexpr int64_t kMostStepLines = 1024;
// While lines are copied, steps are shorter, so that each remains some microseconds.
constexpr int64_t kStepPartInCopies = 4;
// Times beyond these are as good as these, and nothing overflows.
constexpr int64_t kEarliestMs = -(int64_t{1} << 60);
constexpr int64_t kLatestMs = int64_t{1} << 60;

// Invariant: every id that was inserted at a time not before now_ minus the horizon is set in two
// neighbouring live columns of lines_ (unless the budget had to shorten the window). The columns that
// pairs_, even_ and odd_ name are those of budget_.
// Thread safety: as Filter's.
template <typename Cell, int kLinesPerId>
class SlicedFbf final : public EachIdFilter<SlicedFbf<Cell, kLinesPerId>> {
 public:
  using Lines = SlicedLines<Cell, kLinesPerId>;

  SlicedFbf(const FilterOptions& options, const SlicedShape& shape, const Budget::Options& budget,
            LineMemory memory, Reservation own)
      : options_(options),
        shape_(shape),
        target_fpp_(options.target_fpp),
        memory_(std::move(memory)),
        own_(std::move(own)),
        lines_(memory_.data(), budget.lines),
        budget_(budget),
        pass_step_ms_(std::max<int64_t>(1, budget.horizon_ms / kPassStepsPerHorizon)),
        longest_step_ms_(std::max<int64_t>(1, budget.horizon_ms / kStepsPerHorizon)) {
    TakeBudget();
    step_inserts_ = inserts_left_ = budget_.InsertsPerStep();
  }

  // Its memory besides the lines.
  static int64_t OwnBytes(const SlicedShape& shape) {
    return static_cast<int64_t>(sizeof(SlicedFbf)) + Budget::HeapBytes(shape.columns);
  }

  void AdvanceTo(int64_t stream_time_ms) override {
    if (stream_time_ms > now_ms_) MoveTo(stream_time_ms);
  }

  FilterStatus Figures() const override {
    FilterStatus status;
    budget_.Describe(now_ms_, &status);
    status.ids += InsertsInStep();
    status.bits_per_id = Lines::kBitsPerId;
    status.fpp_modelled = SlicedFpp(shape_, budget_.Loads());
    status.fpp_at_interval_end = SlicedFpp(shape_, budget_.LoadsAtRefresh());
    status.fpp_target = target_fpp_;
    status.memory_bytes = memory_.bytes() + OwnBytes(shape_);
    status.generations = budget_.Generations(now_ms_);
    // Inserts that are not counted yet are in future and present.
    for (size_t newest = 0; newest < 2; ++newest) status.generations[newest].ids += InsertsInStep();
    return status;
  }

  std::unique_ptr<EngineFilter::Sample> BeginSample(int64_t /*most_lines*/) const override {
    return std::make_unique<Looker>(this);
  }

  bool SetTargetFpp(double target_fpp) override {
    if (SlicedShapeFor(target_fpp).lines_per_id != kLinesPerId) return false;
    const double cap = SlicedCap(shape_, target_fpp);
    EndStep();
    budget_.SetCap(cap);
    target_fpp_ = target_fpp;
    EndStep();  // a step under the new cap
    return true;
  }

  absl::StatusOr<FilterImage> BeginCopy() const override {
    FieldWriter fields;
    int64_t position = lines_.idle() ? 0 : lines_.position();
    Cell clearing = lines_.idle() ? Cell{0} : lines_.clearing();
    Transfer(*this, position, clearing, fields);
    budget_.Save(&fields);
    if (!fields.ok()) return absl::InternalError("sliced filter: its state is inconsistent");
    return FilterImage{
        fields.bytes(),
        {{static_cast<const char*>(memory_.data()), static_cast<size_t>(lines_.bytes_needed())}},
        ImageEpoch()};
  }

  // Insertions only set bits, in columns that the state of an image says are open. A sweep clears columns
  // that are dirty by the same state, so that a restored filter clears them again, and nothing is lost. What
  // the state cannot know is a column that is opened or dropped, and where an unfold or fold has moved lines
  // to.
  int64_t ImageEpoch() const override { return budget_.turns() + moves_; }

  absl::StatusOr<std::vector<absl::Span<char>>> Restore(absl::string_view state, int64_t bytes) override {
    FieldReader fields(state);
    int64_t position = 0;
    Cell clearing = 0;
    Transfer(*this, position, clearing, fields);
    const bool sound = budget_.Restore(now_ms_, &fields) && fields.Ended();
    // A pass that folds goes from twice the lines, one that unfolds to twice the lines.
    const Budget::Pass pass = budget_.running_pass();
    const bool twice = pass == Budget::Pass::kFold || pass == Budget::Pass::kUnfold;
    const int64_t lines = budget_.lines() * (twice ? 2 : 1);
    if (!sound || bytes != lines * Lines::kLineBytes) {
      return absl::DataLossError("the saved state of a sliced filter is inconsistent");
    }
    if (!memory_.Grow(bytes)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the filter needs ", bytes, " bytes, and of the memory limit of ", options_.memory->limit_bytes(),
          " only ", options_.memory->limit_bytes() - options_.memory->used_bytes(),
          " are left: raise it, or open fewer partitions"));
    }
    memory_.Shrink(bytes);
    memory_.Prepare(0);
    lines_ = Lines(memory_.data(), pass == Budget::Pass::kUnfold ? lines / 2 : lines);
    if (pass == Budget::Pass::kSweep) lines_.BeginSweep(clearing);
    if (pass == Budget::Pass::kUnfold) lines_.BeginUnfold(clearing);
    if (pass == Budget::Pass::kFold) lines_.BeginFold(clearing);
    if (!lines_.SkipTo(position)) {
      return absl::DataLossError("the saved state of a sliced filter puts a pass beyond its lines");
    }
    pass_ = pass;
    TakeBudget();
    return std::vector<absl::Span<char>>{{static_cast<char*>(memory_.data()), static_cast<size_t>(bytes)}};
  }

 private:
  friend class EachIdFilter<SlicedFbf>;

  void PrefetchId(IdHash id) const { lines_.Prefetch(id); }
  bool ContainsId(IdHash id) const { return IsIn(lines_.Columns(id)); }
  void InsertId(IdHash id) { Set(lines_.Find(id)); }
  bool TestAndInsertId(IdHash id) {
    const typename Lines::Places places = lines_.Find(id);
    if (IsIn(Lines::Columns(places))) return true;
    Set(places);
    return false;
  }
  void ReplayId(IdHash id) {
    const typename Lines::Places places = lines_.Find(id);
    const Cell columns = Lines::Columns(places);
    if (const Cell pairs = columns & std::rotl(columns, 1) & pairs_; pairs != 0) {
      budget_.Keep(AgeOfNewest(pairs), now_ms_);
    } else {
      Set(places);
    }
  }

  // The state, field by field; that of the budget follows. The columns tell the width of the cells.
  template <typename Self, typename Fields>
  static void Transfer(Self& self, int64_t& position, Cell& clearing, Fields& fields) {
    int64_t columns = self.shape_.columns;
    int64_t lines_per_id = kLinesPerId;
    fields.Int(columns, self.shape_.columns, self.shape_.columns);
    fields.Int(lines_per_id, kLinesPerId, kLinesPerId);
    fields.Time(self.now_ms_);
    fields.Int(self.step_inserts_, 1, kMostStepInserts);
    fields.Int(self.inserts_left_, 1, self.step_inserts_);
    fields.Time(self.next_pass_ms_);
    fields.Count(position);
    if constexpr (sizeof(Cell) == sizeof(uint64_t)) {
      fields.Word(clearing);
    } else {
      fields.Int(clearing, 0, static_cast<Cell>(~Cell{0}));
    }
  }

  // The id is in two neighbouring live columns.
  bool IsIn(Cell columns) const { return (columns & std::rotl(columns, 1) & pairs_) != 0; }

  // Of the intervals of these pairs the newest: how many came after it. The newest pair of all is that of
  // future and present.
  int AgeOfNewest(Cell pairs) const {
    const int above = Lines::kColumns - 1 - budget_.future_column();
    return std::countl_zero(std::rotl(pairs, above));
  }

  void Set(const typename Lines::Places& places) {
    Lines::Set(places, even_, odd_);
    if (--inserts_left_ == 0) EndStep();
  }

  int64_t InsertsInStep() const { return step_inserts_ - inserts_left_; }

  void MoveTo(int64_t stream_time_ms) {
    const int64_t time = std::clamp(stream_time_ms, kEarliestMs, kLatestMs);
    if (time <= now_ms_ || stream_time_ms == kNoStreamTime) return;
    if (time < next_event_ms_) {
      now_ms_ = time;
      return;
    }
    EndStep();
    budget_.AdvanceTo(time);
    now_ms_ = time;
    if (pass_ != Budget::Pass::kNone && time >= next_pass_ms_) {
      AdvancePass(LinesDueByTime(), /*by_time=*/true);
      StartPass();
    }
    TakeBudget();
  }

  // Every few inserts, and when something is due by time: counts the inserts, and continues the pass.
  void EndStep() {
    const int64_t inserts = InsertsInStep();
    budget_.AddInserts(inserts, now_ms_);
    if (pass_ != Budget::Pass::kNone) {
      AdvancePass(inserts * budget_.LinesPerInsert(pass_), /*by_time=*/false);
    }
    StartPass();
    step_inserts_ = inserts_left_ = budget_.InsertsPerStep();
    if (pass_ == Budget::Pass::kUnfold || pass_ == Budget::Pass::kFold) {
      step_inserts_ = inserts_left_ = std::max<int64_t>(1, step_inserts_ / kStepPartInCopies);
    }
    // Wide cells leave a line few of them, so that an interval is short, and passes have more lines to take
    // with each insert.
    if constexpr (Lines::kColumns > 16) {
      if (pass_ != Budget::Pass::kNone) {
        const int64_t most = std::max<int64_t>(1, kMostStepLines / budget_.LinesPerInsert(pass_));
        step_inserts_ = inserts_left_ = std::min(step_inserts_, most);
      }
    }
    TakeBudget();
  }

  // What a pass step by time has, and how long that takes to be due in parts of kLinesByTime.
  int64_t LinesInTimeStep() const { return lines_.lines() / kPassPartsByTime + 1; }
  int64_t PassWaitMs() const {
    const int64_t lines = LinesInTimeStep();
    return std::max<int64_t>(1, pass_step_ms_ / ((lines + kLinesByTime - 1) / kLinesByTime));
  }
  int64_t AfterAWait() const { return now_ms_ == kNoStreamTime ? kNoStreamTime : now_ms_ + PassWaitMs(); }
  // By the time since the pass was last taken further; one step's at most, which is as after a pause.
  int64_t LinesDueByTime() const {
    const int64_t lines = LinesInTimeStep();
    if (next_pass_ms_ == kNoStreamTime) return lines;
    const double elapsed = static_cast<double>(now_ms_ - next_pass_ms_) + static_cast<double>(PassWaitMs());
    const double due = std::ceil(static_cast<double>(lines) * elapsed / static_cast<double>(pass_step_ms_));
    return due < static_cast<double>(lines) ? static_cast<int64_t>(due) : lines;
  }

  // How long time alone takes for so many lines. Those that ids bring put off its turn by no more than this:
  // a few ids, which come often, would put it off for ever.
  int64_t TimeOf(int64_t lines) const {
    return static_cast<int64_t>(static_cast<double>(lines) * static_cast<double>(pass_step_ms_) /
                                static_cast<double>(LinesInTimeStep()));
  }

  void AdvancePass(int64_t lines, bool by_time) {
    next_pass_ms_ = by_time ? AfterAWait() : std::min(AfterAWait(), next_pass_ms_ + TimeOf(lines));
    if (pass_ != Budget::Pass::kSweep) ++moves_;
    if (lines_.Advance(lines)) {
      if (pass_ == Budget::Pass::kFold) memory_.Shrink(lines_.bytes_needed());
      pass_ = Budget::Pass::kNone;
      budget_.PassEnded();
    }
  }

  void StartPass() {
    const Budget::Pass wanted = budget_.Wanted();
    if (wanted == Budget::Pass::kNone) return;
    if (wanted == Budget::Pass::kUnfold) {
      const int64_t used_bytes = options_.memory->used_bytes() + lines_.bytes_needed();
      const bool is_dear = budget_.GrowsToKeep() && used_bytes > options_.memory->limit_bytes() / 2;
      if (is_dear || !memory_.Grow(2 * lines_.bytes_needed())) {
        budget_.UnfoldRefused();
        return;
      }
      memory_.Prepare(lines_.bytes_needed());
    }
    next_pass_ms_ = AfterAWait();
    if (!lines_.idle()) lines_.AbandonSweep();
    budget_.PassStarted(wanted);
    pass_ = wanted;
    if (wanted != Budget::Pass::kSweep) ++moves_;
    const Cell dirty = ColumnsFrom(budget_.first_dirty_column(), budget_.dirty_columns());
    if (wanted == Budget::Pass::kSweep) lines_.BeginSweep(dirty);
    if (wanted == Budget::Pass::kUnfold) lines_.BeginUnfold(dirty);
    if (wanted == Budget::Pass::kFold) lines_.BeginFold(dirty);
  }

  // The bits of `count` columns from `first` on, around the ring.
  static Cell ColumnsFrom(int first, int count) {
    if (count == 0) return 0;
    const Cell low = static_cast<Cell>(static_cast<Cell>(~Cell{0}) >> (Lines::kColumns - count));
    return std::rotl(low, first % Lines::kColumns);
  }

  // At the multiples of its longest: a function of the time alone.
  int64_t EndOfStepBy(int64_t now_ms) const {
    const int64_t passed = now_ms % longest_step_ms_;
    return now_ms - passed + (passed < 0 ? 0 : longest_step_ms_);
  }

  // What the budget says, where the inner loops look.
  void TakeBudget() {
    next_event_ms_ = budget_.next_event_ms();
    if (pass_ != Budget::Pass::kNone) next_event_ms_ = std::min(next_event_ms_, next_pass_ms_);
    if (now_ms_ != kNoStreamTime) next_event_ms_ = std::min(next_event_ms_, EndOfStepBy(now_ms_));
    const int future = budget_.future_column();
    const Cell in_future = ColumnsFrom(future, 1);
    const Cell in_present = ColumnsFrom(future + Lines::kColumns - 1, 1);
    even_ = future % 2 == 0 ? in_future : in_present;
    odd_ = future % 2 == 0 ? in_present : in_future;
    // Column j's bit stands for the pair (j, j - 1); the oldest live column has no older neighbour.
    const int pairs = budget_.live_columns() - 1;
    pairs_ = ColumnsFrom(future + Lines::kColumns - pairs + 1, pairs);
  }

  // Looks at lines, in even steps through the hash space, which meet every line of a small filter once.
  class Looker : public EngineFilter::Sample {
   public:
    explicit Looker(const SlicedFbf* filter) : filter_(filter) { Begin(); }

    bool Look() override {
      // With other columns what was seen is of other generations.
      if (turns_ != filter_->budget_.turns() && beginnings_ < kMostBeginnings) Begin();
      const int64_t end = std::min(samples_, looked_ + kLinesPerLook);
      for (; looked_ < end; ++looked_) {
        const auto line = filter_->lines_.OccupancyAt(static_cast<uint64_t>(looked_) * step_ + step_ / 2);
        estimate_->AddLine(line);
        for (size_t column = 0; column < line.size(); ++column) occupied_[column] += line[column];
      }
      lines_ = filter_->lines_.lines();
      return looked_ == samples_;
    }

    void Describe(FilterStatus* status) const override {
      status->fpp_estimated = estimate_->Fpp();
      status->fpp_estimated_deviation = estimate_->Deviation(lines_);
      auto column = static_cast<size_t>(future_);
      for (GenerationStatus& generation : status->generations) {
        generation.fill =
            static_cast<double>(occupied_[column]) / static_cast<double>(samples_ * Lines::kCells);
        column = (column + Lines::kColumns - 1) % Lines::kColumns;
      }
      status->present_fill = status->generations[1].fill;
    }

   private:
    static constexpr int64_t kLinesPerLook = 32;
    // A filter of which time moves on faster than it can be looked at is described as it was.
    static constexpr int kMostBeginnings = 8;

    void Begin() {
      ++beginnings_;
      turns_ = filter_->budget_.turns();
      future_ = filter_->budget_.future_column();
      estimate_.emplace(filter_->shape_, future_, filter_->budget_.live_columns());
      lines_ = filter_->lines_.lines();
      samples_ = std::min(kStatusLines, lines_);
      step_ = ~uint64_t{0} / static_cast<uint64_t>(samples_);
      looked_ = 0;
      occupied_ = {};
    }

    const SlicedFbf* const filter_;
    int beginnings_ = 0;
    int64_t turns_ = 0;
    int future_ = 0;
    std::optional<SlicedEstimate> estimate_;
    int64_t lines_ = 0;
    int64_t samples_ = 0;
    int64_t looked_ = 0;
    uint64_t step_ = 0;
    std::array<int64_t, Lines::kColumns> occupied_{};
  };

  const FilterOptions options_;
  const SlicedShape shape_;
  double target_fpp_;
  LineMemory memory_;
  const Reservation own_;  // of OwnBytes()
  Lines lines_;
  Budget budget_;
  const int64_t pass_step_ms_;
  const int64_t longest_step_ms_;
  Budget::Pass pass_ = Budget::Pass::kNone;
  int64_t now_ms_ = kNoStreamTime;
  Cell pairs_ = 0;  // bit j: columns j and j - 1 are live
  Cell even_ = 0;   // the even one of future and present
  Cell odd_ = 0;
  int64_t inserts_left_ = 0;  // in this step
  int64_t step_inserts_ = 0;
  int64_t next_event_ms_ = kNoStreamTime;
  int64_t next_pass_ms_ = kNoStreamTime;  // when time alone takes the pass further
  int64_t moves_ = 0;                     // steps of passes that move lines
};

// The lines to begin with: from the fewest to twice as many, such that doublings lead to the whole limit.
int64_t FirstLines(const SlicedShape& shape, int64_t limit_bytes, int64_t line_bytes) {
  const int64_t fewest = FewestSlicedLines(shape);
  int64_t lines = limit_bytes / line_bytes;
  while (lines >= 2 * fewest) lines /= 2;
  return std::max(lines, fewest);
}

template <typename Fbf>
absl::StatusOr<std::unique_ptr<Filter>> Make(const FilterOptions& options, const SlicedShape& shape) {
  constexpr int64_t kLineBytes = Fbf::Lines::kLineBytes;
  const int64_t own_bytes = Fbf::OwnBytes(shape);
  // Memory comes in pages, so what is over the last whole one is of no use.
  const int64_t most_bytes = LineMemory::WholePagesIn(options.memory->limit_bytes() - own_bytes);
  Budget::Options budget;
  budget.horizon_ms = WholeMilliseconds(options.horizon);
  budget.cell_columns = Fbf::Lines::kColumns;
  budget.columns = shape.columns;
  budget.cap = SlicedCap(shape, options.target_fpp);
  budget.at_memory_limit = options.at_memory_limit;
  budget.lines = FirstLines(shape, most_bytes, kLineBytes);
  absl::StatusOr<LineMemory> memory =
      LineMemory::Create(options.memory, budget.lines * kLineBytes, LineMemory::RoomUnder(*options.memory));
  if (!memory.ok()) return memory.status();
  Reservation own(options.memory);
  if (!own.Grow(own_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory limit of ", options.memory->limit_bytes(),
                     " bytes leaves no room for a filter: raise it, or open fewer partitions"));
  }
  return std::make_unique<Fbf>(options, shape, budget, *std::move(memory), std::move(own));
}

SlicedShape ShapeFor(double target_fpp, int past_generations) {
  SlicedShape shape = SlicedShapeFor(target_fpp);
  shape.columns = past_generations + 2;
  return shape;
}

// Calls `visit` with a null pointer to the filter of that shape, for its type.
template <typename Cell, typename Visit>
auto WithLines(const SlicedShape& shape, const Visit& visit) {
  switch (shape.lines_per_id) {
    case 3:
      return visit(static_cast<SlicedFbf<Cell, 3>*>(nullptr));
    case 4:
      return visit(static_cast<SlicedFbf<Cell, 4>*>(nullptr));
    case 5:
      return visit(static_cast<SlicedFbf<Cell, 5>*>(nullptr));
    default:
      return visit(static_cast<SlicedFbf<Cell, 6>*>(nullptr));
  }
}

template <typename Visit>
auto WithType(const SlicedShape& shape, const Visit& visit) {
  switch (shape.cell_columns()) {
    case 8:
      return WithLines<uint8_t>(shape, visit);
    case 16:
      return WithLines<uint16_t>(shape, visit);
    case 32:
      return WithLines<uint32_t>(shape, visit);
    default:
      return WithLines<uint64_t>(shape, visit);
  }
}

}  // namespace

int64_t SmallestSlicedFbfBytes(int past_generations) {
  constexpr int64_t kLineBytes = SlicedLines<uint16_t, 3>::kLineBytes;
  int64_t bytes = 0;
  for (const int lines_per_id : {3, 4, 5, 6}) {
    const SlicedShape shape = {.columns = past_generations + 2, .lines_per_id = lines_per_id};
    const int64_t of_lines = LineMemory::WholePagesFor((2 * FewestSlicedLines(shape) - 1) * kLineBytes);
    bytes = std::max(bytes, WithType(shape, [&](auto* filter) {
                       return of_lines + std::remove_pointer_t<decltype(filter)>::OwnBytes(shape);
                     }));
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<Filter>> NewSlicedFbf(const FilterOptions& options, int past_generations) {
  if (past_generations < 1 || past_generations > kMostPastGenerations) {
    return absl::InvalidArgumentError(
        absl::StrCat("past_generations: ", past_generations, " is not from 1 to ", kMostPastGenerations));
  }
  const SlicedShape shape = ShapeFor(options.target_fpp, past_generations);
  return WithType(
      shape, [&](auto* filter) { return Make<std::remove_pointer_t<decltype(filter)>>(options, shape); });
}

}  // namespace lethe
