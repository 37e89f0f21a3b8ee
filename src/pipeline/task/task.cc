#include "src/pipeline/task/task.h"

#include <algorithm>
#include <utility>

namespace lethe {

namespace {

// Commit metadata has room for this many, whatever their distances.
constexpr size_t kMostSurelyListed = CommitMetadata::kMostListBytes / 20;

}  // namespace

CommitMetadata Task::Metadata(absl::Time wall_now) const {
  const DaemonOptions& options = flow->options;
  const absl::Duration horizon = options.stage.horizon;
  const absl::Time now = filter->stream_time();
  const RestartPoint restart = points->For(now);
  const std::optional<SnapshotId>& named = naming ? naming : snapshot;
  // A restore from an older one would read more than a restore from R.
  const bool is_of_use = named && named->offset >= restart.offset;
  Growth grown = growth;
  grown.Reach(next, now);
  if (!grown.IsRecent(now, horizon)) grown = {grown.partitions};
  std::vector<int64_t> listed(passed_over.lower_bound(restart.offset), passed_over.end());
  for (auto each = undeliverable.lower_bound(committed); each != undeliverable.end() && each->first < next;
       ++each) {
    listed.push_back(each->first);
  }
  return {origin,
          origin_partitions,
          restart.offset,
          restart.stream_time,
          now,
          flow->id_fingerprint,
          horizon,
          is_of_use ? named->ToString() : "",
          short_history() ? covered_since : absl::InfinitePast(),
          grown,
          options.output,
          std::string(ScopeName(options.scope)),
          mark.offset,
          mark.hash,
          std::move(listed),
          mark.time,
          topic_id,
          pace.floor,
          wall_now};
}

void Task::TakeHistory(const CommitMetadata& metadata, int64_t log_start) {
  passed_over = {metadata.undeliverable.begin(), metadata.undeliverable.end()};
  to_compare.reset();
  if (metadata.record_before >= std::max(filter_end, log_start)) {
    to_compare = {metadata.record_before, metadata.record_before_hash};
  }
}

SnapshotPoint Task::PointOf(SnapshotId taken) const {
  const SnapshotNotes notes = {origin, committed_mark.offset, committed_timed_records, covered_since,
                               points->ToString()};
  return {.offset = taken.offset,
          .end_offset = taken.offset,
          .record_before = committed_mark.hash,
          .notes = notes.ToString()};
}

void Task::LeaveNamed() {
  if (std::exchange(naming, std::nullopt)) taking.reset();
}

void Task::Committed() {
  if (taking != nullptr) taking->image->NoteEnd(next);
  if (transaction) transaction->Commit();
  transaction.reset();
  committed = in_group = filter_end = next;
  committed_mark = mark;
  committed_timed_records = timed_records;
  was_aborted = false;
  growth.Reach(committed, filter->stream_time());
  counts += open_counts;
  open_counts = {};
  for (CounterSums& each : sums) each.Commit();
  uncopied.erase(uncopied.begin(), uncopied.lower_bound(committed));
  points->Drop(points->For(filter->stream_time()));
  const auto still_to_come = undeliverable.lower_bound(committed);
  for (auto each = undeliverable.begin(); each != still_to_come; ++each) passed_over.insert(each->first);
  undeliverable.erase(undeliverable.begin(), still_to_come);
  passed_over.erase(passed_over.begin(), passed_over.lower_bound(points->oldest().offset));
  if (passed_over.size() > kMostSurelyListed) {
    const size_t listed = CommitMetadata::ListedOf({passed_over.begin(), passed_over.end()});
    for (; passed_over.size() > listed; ++passed_over_unlisted) passed_over.erase(passed_over.begin());
  }
  if (!stop_before_next.empty()) {
    phase = Phase::kFailed;
    problem = std::move(stop_before_next);
    stop_before_next.clear();
  }
}

void Task::RolledBack() {
  if (transaction) transaction->Abort();
  transaction.reset();
  was_aborted = true;
  naming.reset();
  next = committed;
  mark = committed_mark;
  timed_records = committed_timed_records;
  open_counts = {};
  for (CounterSums& each : sums) each.Clear();
  points->Truncate(committed);
  stop_before_next.clear();
  pace.peek.reset();
  pace.wrong_time_at = -1;
  pace.at_end_until = absl::InfinitePast();  // all of it is read again
  pace.floor = absl::InfinitePast();
  if (pace.waits()) pace.look_again = absl::InfinitePast();
}

void Task::KnowsSinceStreamTime() {
  const absl::Time now = filter->stream_time();
  if (now != absl::InfinitePast()) covered_since = std::min(covered_since, now);
}

bool Task::short_history() const {
  return covered_since != absl::InfinitePast() && filter != nullptr &&
         filter->stream_time() - flow->options.stage.horizon < covered_since;
}

bool Task::keys_moved() const {
  return filter != nullptr && growth.IsRecent(filter->stream_time(), flow->options.stage.horizon);
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
    const bool is_new = partition.status.name.empty();
    if (partition.filter == nullptr || (!in_time && !is_new)) continue;
    const std::pair at(partition.next, partition.committed);
    if (!is_new && partition.status_at == at) continue;
    partition.status = partition.filter->Status();
    partition.status_at = at;
    if (in_time) *next = {turn->first.flow, turn->first.partition + 1};
    in_time = in_time && clock.Steady() < end;
  }
}

void KeptPartitions::Put(std::unique_ptr<Task> partition, absl::Time now) {
  // State of the former lane and its client.
  partition->end_of_log = 0;
  partition->unreadable.reset();
  partition->unreadable_at = -1;  // or the third owner in a row would skip what it has met once
  partition->has_named = false;
  partition->sums.clear();  // another process may count meanwhile
  partition->was_aborted = false;
  partition->pace = {};
  const std::lock_guard<std::mutex> lock(mutex_);
  const TopicPartition id = partition->id;
  partitions_[id] = {std::move(partition), now};
}

std::unique_ptr<Task> KeptPartitions::Take(TopicPartition id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto node = partitions_.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped().partition);
}

std::unique_ptr<Task> KeptPartitions::TakeOldest(absl::Time since) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto oldest =
      std::min_element(partitions_.begin(), partitions_.end(),
                       [](const auto& x, const auto& y) { return x.second.since < y.second.since; });
  if (oldest == partitions_.end() || oldest->second.since > since) return nullptr;
  return std::move(partitions_.extract(oldest).mapped().partition);
}

}  // namespace lethe
