#include "connectors/kafka/owned_partition.h"

#include <utility>

namespace lethe::kafka {

CommitMetadata OwnedPartition::Metadata(const std::string& id_fingerprint, absl::Duration horizon) const {
  const absl::Time now = filter->stream_time();
  const RestartPoint restart = points->For(now);
  return {origin, origin_partitions, restart.offset, restart.stream_time, now, id_fingerprint, horizon};
}

void OwnedPartition::Committed() {
  if (transaction) transaction->Commit();
  transaction.reset();
  committed = filter_end = next;
  committed_mark = mark;
  committed_timed_records = timed_records;
  counts += open_counts;
  open_counts = {};
  sums.Clear();
  points->Drop(points->For(filter->stream_time()));
  undeliverable.erase(undeliverable.begin(), undeliverable.lower_bound(committed));
  if (!stop_before_next.empty()) {
    phase = Phase::kFailed;
    problem = std::move(stop_before_next);
  }
}

void OwnedPartition::RolledBack() {
  if (transaction) transaction->Abort();
  transaction.reset();
  next = committed;
  mark = committed_mark;
  timed_records = committed_timed_records;
  open_counts = {};
  sums.Clear();
  points->Truncate(committed);
  stop_before_next.clear();
}

bool OwnedPartition::short_history(absl::Duration horizon) const {
  return covered_since != absl::InfinitePast() && filter != nullptr &&
         filter->stream_time() - horizon < covered_since;
}

void KeptPartitions::Put(std::unique_ptr<OwnedPartition> partition) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int32_t id = partition->id;
  partitions_[id] = std::move(partition);
}

std::unique_ptr<OwnedPartition> KeptPartitions::Take(int32_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto node = partitions_.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped());
}

bool KeptPartitions::DropOne() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (partitions_.empty()) return false;
  partitions_.erase(partitions_.begin());
  return true;
}

}  // namespace lethe::kafka
