#include "src/stage/shard.h"

#include <algorithm>

#include "src/adapt/step_counts.h"

namespace lethe {

Shard::Shard(std::unique_ptr<Filter> filter, const StageOptions& options, MemoryBudget* memory)
    : filter_(std::move(filter)), audit_(options.audit_share, options.horizon, filter_.get(), memory) {}

void Shard::Judge(const ShardEvents& events, absl::Span<Verdict> verdicts) {
  const std::lock_guard lock(mutex_);
  // A transaction began after the caller had seen none, and has passed ids that the filter does not know:
  // these events are part of it, then.
  if (pending_.size() > 0) return JudgeInTransaction(events, verdicts);
  filter_->TestAndInsert(events.ids, verdicts);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    ++(verdicts[i] == Verdict::kUnique ? unique_ : duplicates_);
    audit_.AdvanceTo(timed.stream_time_ms);
    if (audit_.Audits(timed.id)) audit_.Judged(timed, verdicts[i], events.Payload(i));
  }
}

void Shard::JudgePending(const ShardEvents& events, absl::Span<Verdict> verdicts) {
  const std::lock_guard lock(mutex_);
  JudgeInTransaction(events, verdicts);
}

void Shard::JudgeInTransaction(const ShardEvents& events, absl::Span<Verdict> verdicts) {
  asked_.clear();
  for (const TimedId& timed : events.ids) asked_.push_back(timed.id);
  filter_->Contains(asked_, verdicts);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    if (verdicts[i] == Verdict::kUnique && !pending_.Insert(timed)) verdicts[i] = Verdict::kDuplicate;
    if (verdicts[i] == Verdict::kDuplicate) ++pending_duplicates_;
    if (audit_.Audits(timed.id)) audit_.JudgedPending(timed, verdicts[i], events.Payload(i));
  }
}

void Shard::Replay(const ShardEvents& events) {
  const std::lock_guard lock(mutex_);
  filter_->Insert(events.ids);
  for (size_t i = 0; i < events.ids.size(); ++i) {
    const TimedId& timed = events.ids[i];
    audit_.AdvanceTo(timed.stream_time_ms);
    if (audit_.Audits(timed.id)) audit_.Replayed(timed, events.Payload(i));
  }
  replayed_ += static_cast<int64_t>(events.ids.size());
}

void Shard::Forget(IdHash id) {
  const std::lock_guard lock(mutex_);
  if (pending_.Forget(id)) audit_.Forget(id);
}

void Shard::Commit(int64_t stream_time_ms) {
  const std::lock_guard lock(mutex_);
  const absl::Span<const TimedId> ids = pending_.InOrder();
  filter_->Insert(ids);
  filter_->AdvanceTo(stream_time_ms);
  for (const TimedId& timed : ids) audit_.AdvanceTo(timed.stream_time_ms);
  audit_.AdvanceTo(stream_time_ms);
  audit_.Commit();
  unique_ += static_cast<int64_t>(ids.size());
  duplicates_ += pending_duplicates_;
  EndTransaction();
}

void Shard::Abort() {
  const std::lock_guard lock(mutex_);
  audit_.Abort();
  EndTransaction();
}

void Shard::EndTransaction() {
  pending_.Clear();
  pending_duplicates_ = 0;
}

void Shard::AdvanceTo(int64_t stream_time_ms) {
  const std::lock_guard lock(mutex_);
  filter_->AdvanceTo(stream_time_ms);
  audit_.AdvanceTo(stream_time_ms);
}

int64_t Shard::pending_bytes() const {
  const std::lock_guard lock(mutex_);
  return pending_.bytes();
}

ShardStatus Shard::Status() const {
  const std::lock_guard lock(mutex_);
  return {.unique = unique_,
          .duplicates = duplicates_,
          .replayed = replayed_,
          .pending = static_cast<int64_t>(pending_.size()),
          .filter = filter_->Status(),
          .audit = audit_.Status()};
}

ShardStatus MergeShards(absl::Span<const ShardStatus> shards) {
  ShardStatus all;
  std::vector<AuditStatus> audits;
  all.filter.window = absl::InfiniteDuration();
  const double share = 1.0 / static_cast<double>(shards.size());
  for (const ShardStatus& shard : shards) {
    all.unique += shard.unique;
    all.duplicates += shard.duplicates;
    all.replayed += shard.replayed;
    all.pending += shard.pending;
    audits.push_back(shard.audit);
    const FilterStatus& one = shard.filter;
    FilterStatus& sum = all.filter;
    sum.past_generations = std::max(sum.past_generations, one.past_generations);
    sum.refresh_period = std::max(sum.refresh_period, one.refresh_period);
    sum.bits_per_generation += one.bits_per_generation;
    sum.lines += one.lines;
    sum.bits_per_id = std::max(sum.bits_per_id, one.bits_per_id);
    sum.ids += one.ids;
    sum.present_fill = std::max(sum.present_fill, one.present_fill);
    sum.window = std::min(sum.window, one.window);
    sum.fpp_modelled += share * one.fpp_modelled;
    sum.fpp_estimated += share * one.fpp_estimated;
    sum.fpp_at_interval_end += share * one.fpp_at_interval_end;
    sum.fpp_target = one.fpp_target;
    sum.memory_bytes += one.memory_bytes;
    sum.refreshes += one.refreshes;
    sum.limit_hits += one.limit_hits;
    for (const StepCount& steps : one.step_counts) CountSteps(steps, &sum.step_counts);
    sum.steps.insert(sum.steps.end(), one.steps.begin(), one.steps.end());
  }
  if (shards.size() == 1) all.filter.generations = shards.front().filter.generations;
  std::stable_sort(
      all.filter.steps.begin(), all.filter.steps.end(),
      [](const AdaptationStep& a, const AdaptationStep& b) { return a.stream_time_ms < b.stream_time_ms; });
  all.audit = MergeAudits(audits);
  return all;
}

}  // namespace lethe
