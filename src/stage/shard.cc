#include "src/stage/shard.h"

#include <algorithm>

namespace lethe {

void Shard::Judge(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) {
  const std::lock_guard lock(mutex_);
  filter_->TestAndInsert(ids, verdicts);
  const auto duplicates = std::count(verdicts.begin(), verdicts.end(), Verdict::kDuplicate);
  duplicates_ += duplicates;
  unique_ += static_cast<int64_t>(ids.size()) - duplicates;
}

void Shard::JudgePending(absl::Span<const TimedId> ids, absl::Span<Verdict> verdicts) {
  const std::lock_guard lock(mutex_);
  asked_.clear();
  for (const TimedId& timed : ids) asked_.push_back(timed.id);
  filter_->Contains(asked_, verdicts);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (verdicts[i] == Verdict::kUnique && !pending_.Insert(ids[i])) verdicts[i] = Verdict::kDuplicate;
    if (verdicts[i] == Verdict::kDuplicate) ++pending_duplicates_;
  }
}

void Shard::Replay(absl::Span<const TimedId> ids) {
  const std::lock_guard lock(mutex_);
  filter_->Insert(ids);
  replayed_ += static_cast<int64_t>(ids.size());
}

void Shard::Forget(IdHash id) {
  const std::lock_guard lock(mutex_);
  pending_.Forget(id);
}

void Shard::Commit(int64_t stream_time_ms) {
  const std::lock_guard lock(mutex_);
  filter_->Insert(pending_.InOrder());
  filter_->AdvanceTo(stream_time_ms);
  unique_ += static_cast<int64_t>(pending_.size());
  duplicates_ += pending_duplicates_;
  EndTransaction();
}

void Shard::Abort() {
  const std::lock_guard lock(mutex_);
  EndTransaction();
}

void Shard::EndTransaction() {
  pending_.Clear();
  pending_duplicates_ = 0;
}

void Shard::AdvanceTo(int64_t stream_time_ms) {
  const std::lock_guard lock(mutex_);
  filter_->AdvanceTo(stream_time_ms);
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
          .filter = filter_->Status()};
}

ShardStatus MergeShards(absl::Span<const ShardStatus> shards) {
  ShardStatus all;
  all.filter.window = absl::InfiniteDuration();
  const double share = 1.0 / static_cast<double>(shards.size());
  for (const ShardStatus& shard : shards) {
    all.unique += shard.unique;
    all.duplicates += shard.duplicates;
    all.replayed += shard.replayed;
    all.pending += shard.pending;
    const FilterStatus& one = shard.filter;
    FilterStatus& sum = all.filter;
    sum.past_generations = std::max(sum.past_generations, one.past_generations);
    sum.refresh_period = std::max(sum.refresh_period, one.refresh_period);
    sum.bits_per_generation += one.bits_per_generation;
    sum.bits_per_id = std::max(sum.bits_per_id, one.bits_per_id);
    sum.ids += one.ids;
    sum.window = std::min(sum.window, one.window);
    sum.fpp_modelled += share * one.fpp_modelled;
    sum.fpp_estimated += share * one.fpp_estimated;
    sum.fpp_target += share * one.fpp_target;
    sum.memory_bytes += one.memory_bytes;
    sum.refreshes += one.refreshes;
    sum.limit_hits += one.limit_hits;
  }
  return all;
}

}  // namespace lethe
