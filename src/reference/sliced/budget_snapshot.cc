// The budget in a snapshot. The field list below is the format.
#include <algorithm>
#include <iterator>
#include <type_traits>

#include "src/adapt/step_reasons.h"
#include "src/reference/sliced/budget.h"
#include "src/snapshot/fields.h"

namespace lethe {
namespace {

constexpr int64_t kMostLines = int64_t{1} << 40;
constexpr double kMostLoad = 1e12;

}  // namespace

template <typename Self, typename Fields>
void Budget::Transfer(Self& self, Fields& fields) {
  fields.Int(self.options_.lines, 1, kMostLines);
  fields.Int(self.level_, 0, kMaxLevels - 1);
  for (auto& interval : self.ring_) {
    for (auto& ids : interval.ids_at) fields.Count(ids);
    fields.Count(interval.ids);
    fields.Time(interval.start_ms);
    // What is kept counts as inserted then: a snapshot has no field for it.
    int64_t end_ms = std::max(interval.end_ms, interval.kept_ms);
    fields.Time(end_ms);
    if constexpr (!std::is_const_v<Self>) interval.end_ms = end_ms;
  }
  fields.Int(self.oldest_, 1, kMostSnapshotCount);
  fields.Int(self.current_, 1, kMostSnapshotCount);
  const auto columns = static_cast<size_t>(self.options_.columns);
  TransferList(self.loads_at_refresh_, columns, fields,
               [&](auto& load) { fields.Float(load, 0, kMostLoad); });
  fields.Int(self.dirty_, 0, self.options_.cell_columns);
  fields.Time(self.first_ms_);
  fields.Time(self.now_ms_);
  fields.Float(self.load_, 0, kMostLoad);
  Arrivals::Transfer(self.arrivals_, fields);
  TransferList(self.expected_, columns, fields, [&](auto& ids) { fields.Float(ids, 0, 1e30); });
  fields.Count(self.inserts_since_forecast_);
  fields.Int(self.unfold_wanted_, 0, 1);
  fields.Int(self.fold_wanted_, 0, 1);
  fields.Float(self.interval_cap_, 0, kMostLoad);
  fields.Int(self.refused_in_interval_, 0, 1);
  fields.Int(self.growth_refused_, 0, 1);
  fields.Int(self.pass_, 0, static_cast<int>(Pass::kFold));
  fields.Int(self.dirty_in_pass_, 0, self.options_.cell_columns);
  fields.Count(self.refreshes_);
  fields.Count(self.limit_hits_);
  StepLog::Transfer(self.steps_, fields);
}

void Budget::Save(FieldWriter* fields) const { Transfer(*this, *fields); }

bool Budget::Restore(int64_t now_ms, FieldReader* fields) {
  Transfer(*this, *fields);
  if (!fields->ok() || !IsSound() || now_ms_ > now_ms) return false;
  lines_ = options_.lines << level_;
  SetNextEvent();
  return true;
}

// The checks that the other functions rely on; the saved state is not trusted.
bool Budget::IsSound() const {
  // Time has begun, or it has not; kNoStreamTime is the lowest of all times.
  if ((first_ms_ == kNoStreamTime) != (now_ms_ == kNoStreamTime) || first_ms_ > now_ms_) return false;
  const auto is_timed = [](const Interval& interval) { return interval.start_ms != kNoStreamTime; };
  for (const Interval& interval : ring_) {
    if (is_timed(interval) != (interval.end_ms != kNoStreamTime)) return false;
    if (interval.start_ms > interval.end_ms || interval.end_ms > now_ms_) return false;
  }
  if (oldest_ > current_ || current_ - oldest_ > options_.columns) return false;
  for (int64_t i = oldest_; i <= current_; ++i) {
    const bool must_be = now_ms_ != kNoStreamTime && (i < current_ || At(i).ids > 0);
    if (must_be && !is_timed(At(i))) return false;
  }
  if (clean_columns() < 0 || options_.lines > kMostLines >> level_) return false;
  if (pass_ != Pass::kNone && dirty_in_pass_ > dirty_) return false;
  const bool unfolds = pass_ == Pass::kUnfold || unfold_wanted_;
  if (unfolds && level_ + 1 >= kMaxLevels) return false;
  if (fold_wanted_ && level_ == 0) return false;
  return steps_.IsSound();
}

}  // namespace lethe
