#include "src/reference/sliced/budget.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "src/adapt/step_log.h"
#include "src/adapt/step_reasons.h"

namespace lethe {
namespace {

// Intervals that the horizon is cut into at least. More would waste columns when it is quiet.
constexpr int kFewestIntervals = 4;
// Intervals that are remembered besides those of the live columns.
constexpr size_t kMoreInRing = 2;
// Forecasts in an interval.
constexpr double kForecastsPerInterval = 10;
// Ids that a halved filter must have room for, over those that are expected. Each part more is memory that is
// kept over twice what is needed; with a 50th, a steady load between two sizes was folded and unfolded once
// in four horizons at most, and with none three times.
constexpr double kFoldMargin = 1.02;
// Of the cap: where intervals end that are meant to be folded, once or several times.
constexpr double kFoldReadyLoad = 0.49;
constexpr int kFoldsAhead = 4;
// How far over the cap intervals go at the memory limit, if they may, and how finely that is searched.
constexpr double kMostOverload = 100;
constexpr double kOverloadStep = 1.05;
// What is counted from zero on, so that the first of a kind is seen as an increase.
constexpr StepCount kCountedSteps[] = {
    {AdaptationStep::Kind::kRefresh, kFull},
    {AdaptationStep::Kind::kRefresh, kOld},
    {AdaptationStep::Kind::kUnfold, kShortOfColumns},
    {AdaptationStep::Kind::kFold, kHalfIsEnough},
    {AdaptationStep::Kind::kUnfoldRefused, kNoRoomToGrow},
    {AdaptationStep::Kind::kExceedFpp, kOverloaded},
    {AdaptationStep::Kind::kShortenWindow, kOldestDropped},
};
// A doubling must be over soon, since until then ids go in at the old density.
constexpr double kUnfoldsPerInterval = 32;
constexpr double kFoldsPerInterval = 32;

}  // namespace

Budget::Budget(const Options& options)
    : options_(options),
      longest_interval_ms_(
          std::max<int64_t>(1, options.horizon_ms / std::min(kFewestIntervals, options.columns - 2))),
      ring_(static_cast<size_t>(options.columns) + kMoreInRing),
      lines_(options.lines),
      arrivals_(options.horizon_ms),
      interval_cap_(options.cap),
      steps_(kSteps, kCountedSteps) {
  const auto columns = static_cast<size_t>(options.columns);
  expected_.reserve(columns);
  loads_at_refresh_.reserve(columns);
  SetNextEvent();
}

int64_t Budget::HeapBytes(int columns) {
  const auto count = static_cast<size_t>(columns);
  return static_cast<int64_t>((count + kMoreInRing) * sizeof(Interval) + 2 * count * sizeof(double)) +
         StepLog::HeapBytes(kSteps, std::size(kCountedSteps));
}

void Budget::SetCap(double cap) {
  interval_cap_ *= cap / options_.cap;  // as far under or over it as before, until the next forecast
  options_.cap = cap;
  Forecast();
  fold_wanted_ = fold_wanted_ && CanFold();
  EndIntervalIfDue();
  SetNextEvent();
}

void Budget::AdvanceTo(int64_t now_ms) {
  if (now_ms <= now_ms_) return;
  SetTime(now_ms);
  EndIntervalIfDue();
  Expire();
  SetNextEvent();
}

// Before anything may end: what was inserted lies in the columns of the interval that is current yet.
void Budget::AddInserts(int64_t count, int64_t now_ms) {
  if (now_ms > now_ms_) SetTime(now_ms);
  Count(count);
  if (static_cast<double>(inserts_since_forecast_) * kForecastsPerInterval >= InsertsPerInterval()) {
    Forecast();
  }
  EndIntervalIfDue();
  Expire();
  SetNextEvent();
}

void Budget::SetTime(int64_t now_ms) {
  if (now_ms_ == kNoStreamTime) {
    first_ms_ = now_ms;
    // What came before time began counts as having come now, which keeps it long enough.
    for (int64_t i = oldest_; i <= current_; ++i) {
      if (At(i).ids > 0) At(i).start_ms = At(i).end_ms = now_ms;
    }
  }
  now_ms_ = now_ms;
}

void Budget::Count(int64_t count) {
  if (count == 0) return;
  Interval& interval = At(current_);
  if (interval.ids == 0) interval.start_ms = now_ms_;
  interval.ids += count;
  interval.ids_at[static_cast<size_t>(level_)] += count;
  interval.end_ms = now_ms_;
  const double over = kOverloadStep * options_.cap;
  const bool was_over = load_ >= over;
  load_ += static_cast<double>(count) / static_cast<double>(lines_);
  if (!was_over && load_ >= over && growth_refused_ &&
      options_.at_memory_limit == AtMemoryLimit::kExceedFpp) {
    ++limit_hits_;
    Record(AdaptationStep::Kind::kExceedFpp, kOverloaded);
  }
  arrivals_.Add(count, now_ms_);
  inserts_since_forecast_ += count;
}

Budget::Pass Budget::Wanted() const {
  if (unfold_wanted_ && (pass_ == Pass::kNone || pass_ == Pass::kSweep)) return Pass::kUnfold;
  if (pass_ != Pass::kNone) return Pass::kNone;
  // Not for want of a column that may be live, which a sweep does not bring: a quiet filter would do nothing
  // but sweep, and never be folded.
  if (unused_columns() == 0 && dirty_ > 0) return Pass::kSweep;
  return fold_wanted_ ? Pass::kFold : Pass::kNone;
}

void Budget::PassStarted(Pass pass) {
  pass_ = pass;
  dirty_in_pass_ = dirty_;
  if (pass == Pass::kUnfold) {
    unfold_wanted_ = false;
    growth_refused_ = false;
    Record(AdaptationStep::Kind::kUnfold, kShortOfColumns);
  }
  if (pass == Pass::kFold) {
    fold_wanted_ = false;
    for (Interval& interval : ring_) {
      interval.ids_at[static_cast<size_t>(level_) - 1] += interval.ids_at[static_cast<size_t>(level_)];
      interval.ids_at[static_cast<size_t>(level_)] = 0;
    }
    --level_;
    lines_ /= 2;
    load_ = Load(At(current_));
    Record(AdaptationStep::Kind::kFold, kHalfIsEnough);
  }
}

void Budget::PassEnded() {
  dirty_ -= dirty_in_pass_;
  const Pass ended = pass_;
  pass_ = Pass::kNone;
  if (ended == Pass::kUnfold) {
    ++level_;
    lines_ *= 2;
  }
  if (ended != Pass::kSweep) {
    Forecast();
    fold_wanted_ = ended == Pass::kFold && CanFold();
  }
  EndIntervalIfDue();
  SetNextEvent();
}

void Budget::UnfoldRefused() {
  unfold_wanted_ = false;
  growth_refused_ = true;
  if (std::exchange(grows_to_keep_, false)) {
    Expire();
    SetNextEvent();
    return;
  }
  if (!refused_in_interval_) Record(AdaptationStep::Kind::kUnfoldRefused, kNoRoomToGrow);
  refused_in_interval_ = true;
  if (options_.at_memory_limit == AtMemoryLimit::kShortenWindow) return;
  // A replay begins with a burst: all ids whose copies were under way come at once. A forecast from it is too
  // high, and an overload that is spread for it exceeds the target without need.
  if (!arrivals_.LooksBackTwice(static_cast<double>(options_.horizon_ms))) return;
  // Spread evenly, what is too much costs least: a fifth more in every interval is some four times the
  // target, but all of it in the last one is a filter that takes everything for a duplicate.
  interval_cap_ = options_.cap;
  while (interval_cap_ < kMostOverload * options_.cap && Short(lines_, load_, interval_cap_, 1)) {
    interval_cap_ *= kOverloadStep;
  }
}

int64_t Budget::InsertsPerStep() const {
  const double inserts = std::min(interval_cap_, options_.cap) * static_cast<double>(lines_);
  return std::clamp<int64_t>(static_cast<int64_t>(inserts / 64), 1, 16);
}

int64_t Budget::LinesPerInsert(Pass pass) const {
  double per_interval = 1.25 / kSpare;  // in time, with a little over
  if (pass == Pass::kUnfold) per_interval = kUnfoldsPerInterval;
  if (pass == Pass::kFold) per_interval = kFoldsPerInterval;
  return static_cast<int64_t>(std::ceil(per_interval / options_.cap));
}

void Budget::Describe(int64_t now_ms, FilterStatus* status) const {
  status->past_generations = live_columns() - 2;
  status->bits_per_generation = lines_ * (512 / options_.cell_columns);
  status->lines = lines_;
  status->pass = pass_;
  status->refreshes = refreshes_;
  status->limit_hits = limit_hits_;
  status->ids = 0;
  for (int64_t i = oldest_; i <= current_; ++i) status->ids += At(i).ids;
  if (refreshes_ > 0 && now_ms_ != kNoStreamTime) {
    const Interval& full = At(current_ - 1);
    status->refresh_period = absl::Milliseconds(full.end_ms - full.start_ms);
  }
  // All since the start is covered if no interval was dropped.
  const int64_t since = oldest_ > 1 ? At(oldest_ - 1).end_ms : first_ms_;
  if (since != kNoStreamTime) status->window = absl::Milliseconds(now_ms - since);
  steps_.Describe(status);
}

std::vector<GenerationStatus> Budget::Generations(int64_t now_ms) const {
  const auto age = [now_ms](int64_t time_ms) {
    return time_ms == kNoStreamTime ? absl::ZeroDuration() : absl::Milliseconds(now_ms - time_ms);
  };
  std::vector<GenerationStatus> generations;
  // Column i holds interval i - 1, whose future it was, and interval i.
  for (int64_t i = current_ + 1; i >= oldest_; --i) {
    const Interval& older = At(i - 1);
    const Interval& newer = i <= current_ && At(i).ids > 0 ? At(i) : older;
    const int64_t ids = older.ids + (&newer == &older ? 0 : newer.ids);
    const Interval& first = older.ids > 0 ? older : newer;
    generations.push_back({.ids = ids, .oldest = age(first.start_ms), .newest = age(newer.end_ms)});
  }
  return generations;
}

std::vector<double> Budget::Loads() const {
  std::vector<double> loads;
  TakeLoads(&loads);
  return loads;
}

void Budget::TakeLoads(std::vector<double>* loads) const {
  loads->clear();
  for (int64_t i = oldest_ - 1; i <= current_; ++i) loads->push_back(Load(At(i)));
}

double Budget::Load(const Interval& interval) const {
  double load = 0;
  for (int level = 0; level <= level_; ++level) {
    load += static_cast<double>(interval.ids_at[static_cast<size_t>(level)]) / LinesAt(level);
  }
  return load;
}

double Budget::LoadIfFolded(const Interval& interval) const {
  return Load(interval) + static_cast<double>(interval.ids_at[static_cast<size_t>(level_)]) / LinesAt(level_);
}

int64_t Budget::ExpiryOf(int64_t sequence) const { return At(sequence).end_ms + options_.horizon_ms; }

int64_t Budget::KeptUntil(int64_t sequence) const {
  return std::max(At(sequence).kept_ms, At(sequence).end_ms) + options_.horizon_ms;
}

void Budget::Keep(int age, int64_t now_ms) {
  Interval& interval = At(current_ - age);
  if (interval.end_ms != kNoStreamTime) interval.kept_ms = std::max(interval.kept_ms, now_ms);
}

void Budget::Expire() {
  if (now_ms_ == kNoStreamTime) return;
  bool expired = false;
  // Where there is no room to grow, the last free column is taken from what is only kept.
  while (oldest_ < current_ && ExpiryOf(oldest_) < now_ms_ &&
         (KeptUntil(oldest_) < now_ms_ || (growth_refused_ && free_columns() == 0))) {
    DropOldest();
    expired = true;
  }
  if (expired) fold_wanted_ = !unfold_wanted_ && CanFold();
}

void Budget::DropOldest() {
  ++oldest_;
  ++dirty_;
}

void Budget::EndIntervalIfDue() {
  const Interval& interval = At(current_);
  if (interval.ids == 0) return;
  const double cap = options_.cap;
  // Before it is over its cap, not behind it: of the smallest filters an id more is a fiftieth of an
  // interval, which at 1e-12 is half as much again of false positives.
  const bool full = load_ + 1 / static_cast<double>(lines_) > interval_cap_;
  const bool old = interval.start_ms != kNoStreamTime && now_ms_ - interval.start_ms >= longest_interval_ms_;
  if ((full || old) && clean_columns() > 0) {
    Refresh(full ? kFull : kOld);
  } else if (load_ >= (1 - kSpare) * cap && free_columns() == 0) {
    AtCapWithoutColumn();
  }
}

void Budget::Refresh(absl::string_view reason) {
  TakeLoads(&loads_at_refresh_);
  ++current_;
  At(current_) = Interval{};
  load_ = 0;
  refused_in_interval_ = false;
  ++refreshes_;
  Record(AdaptationStep::Kind::kRefresh, reason);
  fold_wanted_ = !unfold_wanted_ && CanFold();
}

// The interval is full, but for what it takes to sweep a column, and no column is coming.
void Budget::AtCapWithoutColumn() {
  if (!growth_refused_) {
    // More lines thin what is still to come. Before the cap an expiry may yet be in time.
    if (load_ >= options_.cap && pass_ != Pass::kUnfold) unfold_wanted_ = true;
    return;
  }
  if (options_.at_memory_limit == AtMemoryLimit::kShortenWindow) {
    if (oldest_ == current_) return;
    DropOldest();
    ++limit_hits_;
    Record(AdaptationStep::Kind::kShortenWindow, kOldestDropped);
  }
}

void Budget::Forecast() {
  inserts_since_forecast_ = 0;
  if (pass_ == Pass::kUnfold) return;  // asked again when it has ended
  ExpectAtExpiries(&Budget::ExpiryOf);
  bool is_short = Short(lines_, load_, options_.cap, 1);
  grows_to_keep_ = false;
  if (!is_short && !growth_refused_) {
    ExpectAtExpiries(&Budget::KeptUntil);
    is_short = grows_to_keep_ = Short(lines_, load_, options_.cap, 1);
  }
  unfold_wanted_ = is_short && level_ + 1 < kMaxLevels;
  if (is_short) {
    fold_wanted_ = false;
    // At the limit the overload stays as it was until the growth is refused again.
    if (!growth_refused_) interval_cap_ = options_.cap;
    return;
  }
  growth_refused_ = false;
  interval_cap_ = options_.cap;
  double finer = kFoldReadyLoad * options_.cap;
  for (int folds = 0; folds < std::min(level_, kFoldsAhead); ++folds, finer /= 2) {
    if (Short(lines_, load_, finer, kFoldMargin)) break;
    interval_cap_ = finer;
  }
}

void Budget::ExpectAtExpiries(int64_t (Budget::*expiry_of)(int64_t) const) {
  expected_.clear();
  for (int64_t i = oldest_; i <= current_; ++i) {
    const bool is_known = i < current_ && now_ms_ != kNoStreamTime;
    const int64_t expiry =
        is_known ? std::max<int64_t>(0, (this->*expiry_of)(i)-now_ms_) : options_.horizon_ms;
    expected_.push_back(arrivals_.Expected(static_cast<double>(expiry)));
  }
}

// Whether at the k-th expiry from now, and when its column is swept, more columns would have been wanted
// than the free ones and those that expired before.
bool Budget::Short(int64_t lines, double load, double cap, double expected_factor) const {
  const double room = std::max(0.0, cap - load);
  double columns = free_columns();
  for (const double expected : expected_) {
    const double inserts = expected_factor * expected / static_cast<double>(lines);
    if ((inserts - room) / cap + kSpare > columns) return true;
    ++columns;
  }
  return false;
}

bool Budget::CanFold() {
  if (level_ == 0) return false;
  for (int64_t i = oldest_ - 1; i <= current_; ++i) {
    if (LoadIfFolded(At(i)) > options_.cap) return false;
  }
  ExpectAtExpiries(&Budget::KeptUntil);
  return !Short(lines_ / 2, LoadIfFolded(At(current_)), options_.cap, kFoldMargin);
}

void Budget::SetNextEvent() {
  if (now_ms_ == kNoStreamTime) {
    next_event_ms_ = kNoStreamTime;
    return;
  }
  next_event_ms_ = oldest_ < current_ ? KeptUntil(oldest_) + 1 : kNever;
  if (At(current_).ids > 0 && clean_columns() > 0) {
    next_event_ms_ = std::min(next_event_ms_, At(current_).start_ms + longest_interval_ms_);
  }
}

void Budget::Record(AdaptationStep::Kind kind, absl::string_view reason) {
  steps_.Record({kind, now_ms_, lines_ * (512 / options_.cell_columns), reason});
}

}  // namespace lethe
