#include "src/pipeline/task/task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/assertion.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {

namespace {

// Commit metadata has room for this many, whatever their distances.
constexpr size_t kMostSurelyListed = CommitMetadata::kMostListBytes / 20;

}  // namespace

void Task::Fail(std::string why) {
  phase_ = Phase::kFailed;
  problem_ = std::move(why);
}

void Task::FailForMemory(std::string why) {
  lacks_memory_ = true;
  Fail(std::move(why));
}

bool Task::Hold(const std::string& why) {
  const bool is_new = !absl::StrContains(last_held_, why);
  phase_ = Phase::kHeld;
  last_held_ = problem_ = absl::StrCat(Name(), " is held at offset ", next_, ": ", why);
  return is_new;
}

void Task::Resume() {
  if (phase_ != Phase::kHeld) return;
  phase_ = Phase::kActive;
  problem_.clear();
}

void Task::SkipDeleted(int64_t log_start) {
  unread_deleted_ = log_start - committed_;
  committed_ = log_start;
}

void Task::SetTimes(absl::Time time_at_committed, absl::Time judged_by) {
  time_at_committed_ = time_at_committed;
  judged_by_ = judged_by;
}

void Task::StartEmpty(const Origin& origin) {
  origin_ = origin;
  committed_ = origin.offset;
  phase_ = Phase::kActive;
  covered_since_ = absl::InfinitePast();
}

void Task::StartRestore(const Origin& origin, absl::Time covered_since) {
  origin_ = origin;
  phase_ = Phase::kRestoring;
  covered_since_ = covered_since;
}

void Task::StartFilter(absl::Duration horizon, RestartPoint start) {
  points_.emplace(horizon, start);
  timed_records_ = committed_timed_records_ = 0;
  mark_ = committed_mark_ = {};
  filter_end_ = next_ = start.offset;
  if (phase_ == Phase::kRestoring && next_ >= committed_) phase_ = Phase::kActive;
}

void Task::StartSnapshot(RestoredPartition restored, SnapshotId id, RestartPoints points,
                         const SnapshotNotes& notes) {
  filter_ = std::move(restored.partition);
  points_ = std::move(points);
  snapshots_.named = id;
  timed_records_ = committed_timed_records_ = notes.timed_records;
  // It may be of the first records after a reset, when the clock was older.
  if (notes.covered_since != absl::InfinitePast()) {
    clock_counts_from_ = timed_records_ + RestartPoints::kWarmup;
  }
  mark_ = committed_mark_ = {notes.mark_offset, restored.point.record_before};
  filter_end_ = restored.point.offset;
  restore_ = RestoreProgress(filter_end_, committed_);
  // As for a kept filter, the record before F shows whether this is the same log.
  next_ = notes.mark_offset;
  phase_ = Phase::kChecking;
}

void Task::ComeBack(const Task& assigned, int64_t committed, std::optional<SnapshotId> snapshot) {
  committed_ = in_group_ = committed;
  log_end_ = assigned.log_end_;
  expected_totals_ = assigned.expected_totals_;
  SetTimes(assigned.time_at_committed_, assigned.judged_by_);
  restore_ = RestoreProgress(filter_end_, committed);
  snapshots_.named = snapshot;
  // Reads the record before F once more, to see that this is still the same log.
  phase_ = mark_.offset < 0 ? Phase::kRestoring : Phase::kChecking;
  next_ = mark_.offset < 0 ? filter_end_ : mark_.offset;
  if (phase_ == Phase::kRestoring && next_ >= committed_) phase_ = Phase::kActive;
}

void Task::StartOver(int32_t partitions, absl::Duration horizon, absl::Time known_since) {
  origin_ = {committed_, partitions};
  filter_end_ = committed_;
  // A rebuild in this life begins here, with a clock of its own.
  points_.emplace(horizon, RestartPoint{committed_, absl::InfinitePast()});
  restore_ = RestoreProgress(committed_, committed_);
  covered_since_ = known_since;
  clock_counts_from_ = timed_records_ + RestartPoints::kWarmup;
  undeliverable_.clear();
  passed_over_.clear();
  // A restore that was interrupted has left it: the record is before what is read now.
  to_compare_.reset();
  skips_to_filter_end_ = true;
}

CommitMetadata Task::Metadata(absl::Time wall_now) const {
  const DaemonOptions& options = flow_->options;
  const absl::Duration horizon = options.stage.horizon;
  const absl::Time now = filter_->stream_time();
  const RestartPoint restart = points_->For(now);
  const std::optional<SnapshotId>& named = snapshots_.naming ? snapshots_.naming : snapshots_.named;
  // A restore from an older one would read more than a restore from R.
  const bool is_of_use = named && named->offset >= restart.offset;
  Growth grown = growth_;
  grown.Reach(next_, now);
  if (!grown.IsRecent(now, horizon)) grown = {grown.partitions};
  std::vector<int64_t> listed(passed_over_.lower_bound(restart.offset), passed_over_.end());
  for (auto each = undeliverable_.lower_bound(committed_);
       each != undeliverable_.end() && each->first < next_; ++each) {
    listed.push_back(each->first);
  }
  return {origin_,
          restart,
          now,
          flow_->id_fingerprint,
          horizon,
          is_of_use ? named->ToString() : "",
          short_history() ? covered_since_ : absl::InfinitePast(),
          grown,
          options.output,
          std::string(ScopeName(options.scope)),
          mark_,
          std::move(listed),
          topic_id_,
          pace_.floor,
          wall_now,
          KeysOfTotals()};
}

std::vector<TotalKeys> Task::KeysOfTotals() const {
  std::vector<TotalKeys> totals;
  const std::vector<CounterOptions>& counters = flow_->options.counters;
  for (size_t i = 0; i < sums_.size(); ++i) {
    if (counters[i].mode != CounterMode::kTotal || sums_[i].keys() == 0) continue;
    totals.push_back({TotalsFingerprint(counters[i]), static_cast<int64_t>(sums_[i].keys())});
  }
  return totals;
}

void Task::TakeHistory(const CommitMetadata& metadata, int64_t log_start) {
  restart_in_group_ = metadata.restart.offset;
  passed_over_ = {metadata.undeliverable.begin(), metadata.undeliverable.end()};
  to_compare_.reset();
  if (metadata.last.offset >= std::max(filter_end_, log_start)) {
    to_compare_ = metadata.last;
  }
}

SnapshotPoint Task::PointOf(SnapshotId taken) const {
  const SnapshotNotes notes = {origin_.offset, committed_mark_.offset, committed_timed_records_,
                               covered_since_, points_->ToString(),    flow_->options.output};
  return {.offset = taken.offset,
          .end_offset = taken.offset,
          .record_before = committed_mark_.hash,
          .notes = notes.ToString()};
}

void Task::LeaveNamed() {
  if (std::exchange(snapshots_.naming, std::nullopt)) snapshots_.taking.reset();
}

void Task::Committed() {
  LETHE_ASSERT(next_ >= committed_ && HoldsCommittedAlone());
  if (snapshots_.taking != nullptr) snapshots_.taking->image->NoteEnd(next_);
  if (transaction_) transaction_->Commit();
  transaction_.reset();
  committed_ = in_group_ = filter_end_ = next_;
  committed_mark_ = mark_;
  committed_timed_records_ = timed_records_;
  was_aborted_ = false;
  KnowsSinceStreamTime();
  growth_.Reach(committed_, filter_->stream_time());
  counts_ += open_counts_;
  open_counts_ = {};
  for (CounterSums& each : sums_) each.Commit();
  uncopied_.erase(uncopied_.begin(), uncopied_.lower_bound(committed_));
  points_->Drop(points_->For(filter_->stream_time()));
  restart_in_group_ = points_->oldest().offset;
  const auto still_to_come = undeliverable_.lower_bound(committed_);
  for (auto each = undeliverable_.begin(); each != still_to_come; ++each) passed_over_.insert(each->first);
  undeliverable_.erase(undeliverable_.begin(), still_to_come);
  passed_over_.erase(passed_over_.begin(), passed_over_.lower_bound(points_->oldest().offset));
  if (passed_over_.size() > kMostSurelyListed) {
    const size_t listed = CommitMetadata::ListedOf({passed_over_.begin(), passed_over_.end()});
    for (; passed_over_.size() > listed; ++passed_over_unlisted_) passed_over_.erase(passed_over_.begin());
  }
  if (!stop_before_next_.empty()) {
    Fail(std::move(stop_before_next_));
    stop_before_next_.clear();
  }
}

void Task::RolledBack() {
  LETHE_ASSERT(next_ >= committed_ && HoldsCommittedAlone());
  if (transaction_) transaction_->Abort();
  transaction_.reset();
  was_aborted_ = true;
  snapshots_.naming.reset();
  next_ = committed_;
  mark_ = committed_mark_;
  timed_records_ = committed_timed_records_;
  open_counts_ = {};
  for (CounterSums& each : sums_) each.Clear();
  points_->Truncate(committed_);
  stop_before_next_.clear();
  pace_.peek.reset();
  pace_.wrong_time_at = -1;
  pace_.at_end_until = absl::InfinitePast();  // all of it is read again
  pace_.floor = absl::InfinitePast();
  if (pace_.waits()) pace_.look_again = absl::InfinitePast();
}

bool Task::HoldsCommittedAlone() const {
  return filter_end_ <= committed_ || (points_ && points_->oldest().offset == filter_end_);
}

void Task::KnowsSinceStreamTime() {
  const absl::Time now = filter_->stream_time();
  const bool counts = now != absl::InfinitePast() && timed_records_ >= clock_counts_from_;
  if (counts) covered_since_ = std::min(covered_since_, now);
}

bool Task::short_history() const {
  return covered_since_ != absl::InfinitePast() && filter_ != nullptr &&
         filter_->stream_time() - flow_->options.stage.horizon < covered_since_;
}

bool Task::keys_moved() const {
  return filter_ != nullptr && growth_.IsRecent(filter_->stream_time(), flow_->options.stage.horizon);
}

bool Task::Recognize(absl::Time time) {
  mark_.time = committed_mark_.time = time;  // a snapshot does not have it
  next_ = filter_end_;
  phase_ = Phase::kRestoring;
  return std::exchange(skips_to_filter_end_, false);
}

void Task::Replayed(const InputRecord& last, size_t records) {
  // An id of a record that is not committed would make a copy of it pass for nothing.
  LETHE_ASSERT(!in_transaction() && last.offset >= filter_end_ && last.offset < committed_);
  next_ = filter_end_ = last.offset + 1;
  mark_ = committed_mark_ = {last.offset, last.Hash(), last.time()};
  committed_timed_records_ = timed_records_;
  counts_.suppressed += static_cast<int64_t>(records);
  points_->Note(next_, timed_records_, filter_->stream_time());
}

void Task::SkipInReplay(int64_t end, absl::Time known_since) {
  const int64_t begin = next_;
  next_ = filter_end_ = std::min(end, committed_);
  counts_.suppressed += next_ - begin;
  // Of the offsets that are skipped, no id is known.
  covered_since_ = std::max(covered_since_, known_since);
  if (to_compare_ && to_compare_->offset >= begin && to_compare_->offset < next_) {
    to_compare_.reset();  // nothing shows that the log is another one
  }
}

void Task::Activate() {
  LETHE_ASSERT(!in_transaction() && HoldsCommittedAlone());
  phase_ = Phase::kActive;
  filter_->LimitStreamTime(absl::InfiniteFuture());
  KnowsSinceStreamTime();
  // Only control records or compacted records may be between the last record read and C.
  next_ = filter_end_ = committed_;
  committed_mark_ = mark_;
  committed_timed_records_ = timed_records_;
}

void Task::Judged(const InputRecord& last) {
  LETHE_ASSERT(in_transaction() && last.offset >= next_);
  next_ = last.offset + 1;
  mark_ = {last.offset, last.Hash(), last.time()};
  points_->Note(next_, timed_records_, filter_->stream_time());
}

void Task::SkipUnreadable(int64_t end) {
  open_counts_.unreadable += end - next_;
  open_counts_.dropped += end - next_;
  next_ = end;
  points_->Note(next_, timed_records_, filter_->stream_time());
}

const Undeliverable* Task::FindUndeliverable(int64_t offset) const {
  const auto known = undeliverable_.find(offset);
  return known == undeliverable_.end() ? nullptr : &known->second;
}

void Task::NoteRefused(const std::string& why) {
  const auto [known, is_new] = undeliverable_.try_emplace(mark_.offset, Undeliverable{why});
  known->second.divert_refused = !is_new;
}

int Task::MeetUnreadable(int64_t offset) {
  unreadable_times_ = unreadable_at_ == offset ? unreadable_times_ + 1 : 1;
  unreadable_at_ = offset;
  return unreadable_times_;
}

void Task::SearchEnd(int64_t base, std::string why) {
  unreadable_.emplace(base, next_);
  unreadable_why_ = std::move(why);
}

void Task::RenewStatus() {
  status_ = filter_->Status();
  status_at_ = {next_, committed_};
}

void Task::LeaveLane() {
  end_of_log_ = 0;
  unreadable_.reset();
  unreadable_at_ = -1;  // or the third owner in a row would skip what it has met once
  snapshots_.has_named = false;
  sums_.clear();  // another process may count meanwhile
  was_aborted_ = false;
  pace_ = {};
}

void Task::Begin(Transaction transaction) {
  LETHE_ASSERT(phase_ == Phase::kActive && !in_transaction());
  LETHE_ASSERT(filter_end_ >= committed_ && next_ >= committed_ && HoldsCommittedAlone());
  transaction_.emplace(std::move(transaction));
}

std::vector<Task*> InTransaction(const Tasks& tasks) {
  std::vector<Task*> partitions;
  for (const auto& [id, partition] : tasks) {
    if (partition->in_transaction()) partitions.push_back(partition.get());
  }
  return partitions;
}

void RenewStatus(const Tasks& tasks, absl::Duration budget, const Clock& clock, TopicPartition* next) {
  const absl::Time end = clock.Steady() + budget;
  bool in_time = true;
  auto turn = tasks.lower_bound(*next);
  for (size_t i = 0; i < tasks.size(); ++i, ++turn) {
    if (turn == tasks.end()) turn = tasks.begin();
    Task& partition = *turn->second;
    const bool is_new = partition.status().name.empty();
    if (partition.filter() == nullptr || (!in_time && !is_new) || !partition.HasNewStatus()) continue;
    partition.RenewStatus();
    if (in_time) *next = {turn->first.flow, turn->first.partition + 1};
    in_time = in_time && clock.Steady() < end;
  }
}

void KeptPartitions::Put(std::unique_ptr<Task> partition, absl::Time now) {
  LETHE_ASSERT(!partition->in_transaction());
  partition->LeaveLane();
  const MutexLock lock(mutex_);
  const TopicPartition id = partition->id();
  partitions_[id] = {std::move(partition), now};
}

std::unique_ptr<Task> KeptPartitions::Take(TopicPartition id) {
  const MutexLock lock(mutex_);
  auto node = partitions_.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped().partition);
}

std::unique_ptr<Task> KeptPartitions::TakeOldest(absl::Time since) {
  const MutexLock lock(mutex_);
  const auto oldest =
      std::min_element(partitions_.begin(), partitions_.end(),
                       [](const auto& x, const auto& y) { return x.second.since < y.second.since; });
  if (oldest == partitions_.end() || oldest->second.since > since) return nullptr;
  return std::move(partitions_.extract(oldest).mapped().partition);
}

}  // namespace lethe
