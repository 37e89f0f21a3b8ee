#include "src/stage/shard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <new>
#include <utility>

#include "src/adapt/step_log.h"
#include "src/assertion.h"
#include "src/filter/stream_clock.h"

namespace lethe {

namespace {

// Of a partition with more shards than that: the latest of each.
constexpr size_t kMostSteps = 64;

// Pending ids are looked up while so many later ones are on their way from memory.
constexpr size_t kAhead = 8;

}  // namespace

// Cold is small, which plugins want of what is not called for each id.
[[gnu::cold]] Shard::Shard(std::unique_ptr<Filter> filter, const StageOptions& options,
                           MemoryBudget* audit_memory, HashKey key)
    : filter_(std::move(filter)),
      engine_filter_(filter_->AsEngineFilter()),
      renews_(options.renew),
      horizon_ms_(WholeMilliseconds(options.horizon)),
      audit_(options.audit_share, options.horizon, filter_.get(), audit_memory, key, options.renew) {}

void Shard::Judge(const ShardEvents& events, absl::Span<Verdict> verdicts) {
  const Lock lock(this);
  renews_ ? TestAndRenew(events, verdicts) : filter_->TestAndInsert(events.ids, verdicts);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    const bool passes = verdicts[i] == Verdict::kUnique;
    ++(passes ? unique_ : duplicates_);
    audit_.AdvanceTo(timed.stream_time_ms);
    if (audit_.Audits(timed.id)) audit_.Judged(timed, passes, events.Payload(i));
  }
}

void Shard::TestAndRenew(const ShardEvents& events, absl::Span<Verdict> verdicts) {
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const absl::Span<const TimedId> one = events.ids.subspan(i, 1);
    filter_->TestAndInsert(one, verdicts.subspan(i, 1));
    if (verdicts[i] == Verdict::kDuplicate) filter_->Replay(one);
  }
}

bool Shard::JudgePending(const ShardEvents& events, int64_t start_ms, absl::Span<Verdict> verdicts) try {
  const Lock lock(this);
  JudgeInTransaction(events, start_ms, verdicts);
  return true;
} catch (const std::bad_alloc&) {
  std::fill(verdicts.begin(), verdicts.end(), Verdict::kUnique);
  return false;
}

void Shard::JudgeInTransaction(const ShardEvents& events, int64_t start_ms, absl::Span<Verdict> verdicts) {
  filter_->ContainsAt(events.ids, verdicts);
  const bool begins = start_ms != kNoStreamTime;
  if (begins) audit_.BeginsAt(start_ms);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    if (i + kAhead < events.ids.size()) pending_.Prefetch(events.ids[i + kAhead].id);
    // The filter, which has no time yet, could not know.
    if (begins && timed.stream_time_ms > start_ms + horizon_ms_) verdicts[i] = Verdict::kUnique;
    if ((renews_ || verdicts[i] == Verdict::kUnique) && TestAndSetPending(timed, start_ms)) {
      verdicts[i] = Verdict::kDuplicate;
    }
    const bool passes = verdicts[i] == Verdict::kUnique;
    ++(passes ? pending_unique_ : pending_duplicates_);
    if (audit_.Audits(timed.id)) audit_.JudgedPending(timed, passes, events.Payload(i));
  }
}

bool Shard::TestAndSetPending(const TimedId& timed, int64_t start_ms) {
  if (pending_.Insert(timed)) return false;
  const bool is_known = IsPendingAt(timed, start_ms);
  if (!is_known || renews_) {
    pending_.Forget(timed.id);
    pending_.Insert(timed);
  }
  return is_known;
}

bool Shard::IsPendingAt(const TimedId& asked, int64_t start_ms) const {
  const TimedId* const found = pending_.Find(asked.id);
  if (found == nullptr) return false;
  const int64_t before_ms = std::max(found->stream_time_ms, start_ms);
  return before_ms == kNoStreamTime || asked.stream_time_ms <= before_ms ||
         asked.stream_time_ms - before_ms <= horizon_ms_;
}

bool Shard::IsContainedAt(const TimedId& asked) const {
  Verdict verdict = Verdict::kUnique;
  filter_->ContainsAt({&asked, 1}, {&verdict, 1});
  return verdict == Verdict::kDuplicate;
}

Verdict Shard::JudgeOne(const TimedId& timed, const OwnTime& own, absl::string_view payload) {
  const Lock lock(this);
  filter_->AdvanceTo(timed.stream_time_ms);
  const bool is_copy = own.is_copy ? *own.is_copy : IsContainedAt({timed.id, own.time_ms});
  // The filter may have one that passes by its own time.
  if (renews_ || (!is_copy && !own.IsStreamTime(timed))) {
    filter_->Replay({&timed, 1});
  } else if (!is_copy) {
    filter_->Insert({&timed, 1});
  }
  ++(is_copy ? duplicates_ : unique_);
  audit_.AdvanceTo(timed.stream_time_ms);
  if (!audit_.Audits(timed.id)) return is_copy ? Verdict::kDuplicate : Verdict::kUnique;
  audit_.Judged(timed, !is_copy, payload, !own.IsStreamTime(timed));
  return is_copy ? Verdict::kDuplicate : Verdict::kUnique;
}

bool Shard::JudgeOnePending(const TimedId& timed, const OwnTime& own, int64_t start_ms,
                            absl::string_view payload, Verdict* verdict) try {
  const Lock lock(this);
  *verdict = Verdict::kUnique;
  const bool begins = start_ms != kNoStreamTime;
  const TimedId asked = {timed.id, own.time_ms};
  const auto is_contained = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // A filter without a time could not know.
    const bool may_be = !begins || own.time_ms <= start_ms + horizon_ms_;
    return (may_be && IsContainedAt(asked)) || IsPendingAt(asked, start_ms);
  };
  const bool is_copy = own.is_copy ? *own.is_copy : is_contained();
  if (!is_copy || renews_) {
    pending_.Forget(timed.id);
    pending_.Insert(timed);
    if (!own.IsStreamTime(timed)) again_.Insert(timed);
  }
  ++(is_copy ? pending_duplicates_ : pending_unique_);
  if (is_copy) *verdict = Verdict::kDuplicate;
  if (!audit_.Audits(timed.id)) return true;
  if (begins) audit_.BeginsAt(start_ms);
  audit_.JudgedPending(timed, !is_copy, payload, !own.IsStreamTime(timed));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Shard::Renew(const TimedId& timed) {
  const Lock lock(this);
  filter_->Replay({&timed, 1});
  if (audit_.Audits(timed.id)) audit_.Renewed(timed);
}

bool Shard::RenewPending(const TimedId& timed) try {
  const Lock lock(this);
  pending_.Forget(timed.id);
  pending_.Insert(timed);
  again_.Insert(timed);
  if (audit_.Audits(timed.id)) audit_.RenewedPending(timed);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Shard::Replay(const ShardEvents& events) {
  const Lock lock(this);
  filter_->Replay(events.ids);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    audit_.AdvanceTo(timed.stream_time_ms);
    if (audit_.Audits(timed.id)) audit_.Replayed(timed, events.Payload(i));
  }
  replayed_ += static_cast<int64_t>(events.ids.size());
}

Verdict Shard::ReplayOne(const TimedId& timed, const OwnTime& own, absl::string_view payload) {
  const Lock lock(this);
  filter_->AdvanceTo(timed.stream_time_ms);
  const bool is_copy = own.is_copy ? *own.is_copy : IsContainedAt({timed.id, own.time_ms});
  filter_->Replay({&timed, 1});
  audit_.AdvanceTo(timed.stream_time_ms);
  if (audit_.Audits(timed.id)) audit_.Replayed(timed, payload);
  ++replayed_;
  return is_copy ? Verdict::kDuplicate : Verdict::kUnique;
}

void Shard::Forget(IdHash id) {
  const Lock lock(this);
  const TimedId* const found = pending_.Find(id);
  if (found == nullptr) return;
  Verdict in_filter = Verdict::kUnique;
  if (renews_) filter_->ContainsAt({found, 1}, {&in_filter, 1});  // then it was renewed, and did not pass
  if (in_filter == Verdict::kUnique) --pending_unique_;
  pending_.Forget(id);
  again_.Forget(id);
  audit_.Forget(id);
}

void Shard::Commit(int64_t start_ms, int64_t stream_time_ms) noexcept {
  const Lock lock(this);
  filter_->AdvanceTo(start_ms);
  audit_.AdvanceTo(start_ms);
  const absl::Span<const TimedId> ids = pending_.InOrder();
  LETHE_DEBUG_ASSERT(again_.size() <= ids.size());
  for (size_t begin = 0; begin < ids.size();) {
    const bool is_again = IsAgain(ids[begin]);
    size_t end = begin + 1;
    if (!renews_ && again_.size() == 0) end = ids.size();
    while (end < ids.size() && IsAgain(ids[end]) == is_again) ++end;
    const absl::Span<const TimedId> some = ids.subspan(begin, end - begin);
    is_again ? filter_->Replay(some) : filter_->Insert(some);
    begin = end;
  }
  filter_->AdvanceTo(stream_time_ms);
  for (const TimedId& timed : ids) audit_.AdvanceTo(timed.stream_time_ms);
  audit_.AdvanceTo(stream_time_ms);
  audit_.Commit();
  unique_ += pending_unique_;
  duplicates_ += pending_duplicates_;
  EndTransaction();
}

void Shard::Abort() noexcept {
  const Lock lock(this);
  audit_.Abort();
  EndTransaction();
}

bool Shard::IsAgain(const TimedId& timed) const { return renews_ || again_.Find(timed.id) != nullptr; }

void Shard::EndTransaction() {
  pending_.Clear();
  pending_unique_ = 0;
  pending_duplicates_ = 0;
  again_.Clear();
}

[[gnu::cold]] void Shard::AdvanceTo(int64_t stream_time_ms) {
  const Lock lock(this);
  filter_->AdvanceTo(stream_time_ms);
  audit_.AdvanceTo(stream_time_ms);
}

int64_t Shard::pending_bytes() const {
  const Lock lock(this);
  return pending_.bytes() + again_.bytes();
}

void Shard::GetStatus(int64_t most_lines, bool with_generations, ShardStatus* status) const {
  const MutexLock one_at_a_time(status_mutex_);
  {
    const Lock lock(this);
    status->unique = unique_;
    status->duplicates = duplicates_;
    status->replayed = replayed_;
    status->pending = static_cast<int64_t>(pending_.size());
    status->audit = audit_.Counted();
    if (engine_filter_ == nullptr) {
      status->filter = filter_->Figures();
      return;
    }
    engine_filter_->GetFigures(&status->filter, with_generations);
    const int64_t epoch = engine_filter_->ImageEpoch();
    const auto level = static_cast<int>(std::bit_width(static_cast<uint64_t>(status->filter.shape.lines)));
    // A table that fits into the sample is soon looked at: there the estimate is exact at any time.
    const bool may_be_old = 2 * status->filter.shape.lines > most_lines;
    const bool is_seen = seen_.sample != nullptr && seen_.epoch == epoch && seen_.level == level &&
                         (may_be_old || seen_.ids == status->filter.ids);
    if (!is_seen) {
      seen_ = {engine_filter_->BeginSample(most_lines), epoch, level, status->filter.ids,
               status->filter.fpp.modelled};
      if (seen_.sample == nullptr) return;
    } else {
      return DescribeSeen(&status->filter);
    }
  }
  // Events go first between two steps.
  for (bool ends = false; !ends;) {
    const Lock lock(this);
    ends = seen_.sample->Look();
  }
  DescribeSeen(&status->filter);
}

void Shard::DescribeSeen(FilterStatus* filter) const {
  seen_.sample->Describe(filter);
  if (seen_.modelled == 0) return;
  const double change = filter->fpp.modelled / seen_.modelled;
  filter->fpp.estimated *= change;
  filter->fpp.deviation *= change;
}

MergedShards::MergedShards(size_t shards) : shards_(shards) { all_.filter.window = absl::InfiniteDuration(); }

void MergedShards::Add(const ShardStatus& shard) {
  const double share = 1.0 / static_cast<double>(shards_);
  all_.unique += shard.unique;
  all_.duplicates += shard.duplicates;
  all_.replayed += shard.replayed;
  all_.pending += shard.pending;
  AddAudit(shard.audit, share, &all_.audit);
  const FilterStatus& one = shard.filter;
  FilterStatus& sum = all_.filter;
  sum.shape.past_generations = std::max(sum.shape.past_generations, one.shape.past_generations);
  sum.shape.refresh_period = std::max(sum.shape.refresh_period, one.shape.refresh_period);
  sum.shape.bits_per_generation += one.shape.bits_per_generation;
  sum.shape.lines += one.shape.lines;
  sum.shape.bits_per_id = std::max(sum.shape.bits_per_id, one.shape.bits_per_id);
  sum.ids += one.ids;
  sum.present_fill = std::max(sum.present_fill, one.present_fill);
  sum.window = std::min(sum.window, one.window);
  sum.fpp.modelled += share * one.fpp.modelled;
  sum.fpp.estimated += share * one.fpp.estimated;
  // The shards' samples are independent.
  variance_ += share * one.fpp.deviation * share * one.fpp.deviation;
  sum.fpp.at_interval_end += share * one.fpp.at_interval_end;
  sum.fpp.target = one.fpp.target;
  sum.memory_bytes += one.memory_bytes;
  sum.memory_above_need_bytes += one.memory_above_need_bytes;
  sum.refreshes += one.refreshes;
  sum.limit_hits += one.limit_hits;
  sum.lost_ids += one.lost_ids;
  for (const StepCount& steps : one.step_counts) CountSteps(steps, &sum.step_counts);
  const size_t latest = std::min(one.steps.size(), std::max<size_t>(1, kMostSteps / shards_));
  sum.steps.insert(sum.steps.end(), one.steps.end() - static_cast<std::ptrdiff_t>(latest), one.steps.end());
  if (shards_ == 1) sum.generations = one.generations;
}

ShardStatus MergedShards::Take() {
  all_.filter.fpp.deviation = std::sqrt(variance_);
  std::stable_sort(
      all_.filter.steps.begin(), all_.filter.steps.end(),
      [](const AdaptationStep& a, const AdaptationStep& b) { return a.stream_time_ms < b.stream_time_ms; });
  SetAuditRate(&all_.audit);
  return std::move(all_);
}

}  // namespace lethe
