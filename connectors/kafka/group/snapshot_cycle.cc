#include "connectors/kafka/group/snapshot_cycle.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// A filter that changed its shape is asked again soon: it rarely does so twice in a row.
constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);

}  // namespace

void SnapshotCycle::Name(const std::vector<OwnedPartition*>& partitions) {
  for (OwnedPartition* owned : partitions) {
    // Done before this commit, so that what it holds at most is before the offset of the commit.
    if (owned->taking != nullptr && owned->taking->state == SnapshotTaking::State::kDone) {
      owned->naming = owned->taking->id;
    }
  }
}

void SnapshotCycle::Take(const OwnedPartitions& owned_partitions) {
  if (snapshots_ == nullptr) return;
  const absl::Time now = SteadyNow();
  for (const auto& [id, owned] : owned_partitions) {
    if (owned->naming) {
      snapshots_->Named(id, *owned->naming, std::exchange(owned->snapshot, owned->naming),
                        !std::exchange(owned->has_named, true));
      owned->naming.reset();
      owned->taking.reset();
    } else if (owned->taking != nullptr) {
      const SnapshotTaking::State state = owned->taking->state;
      if (state == SnapshotTaking::State::kShapeChanged) owned->next_snapshot = now + kAgainAfter;
      if (state == SnapshotTaking::State::kShapeChanged || state == SnapshotTaking::State::kFailed) {
        owned->taking.reset();
      }
    }
    if (owned->next_snapshot == absl::InfinitePast()) owned->next_snapshot = now + snapshots_->every();
    const bool is_due =
        owned->taking == nullptr && owned->phase == Phase::kActive && now >= owned->next_snapshot;
    // Where nothing was read yet there is nothing to save, and no record by which to know the log again.
    if (is_due && owned->committed_mark.offset >= 0 && snapshots_->idle()) Begin(*owned);
  }
}

void SnapshotCycle::Begin(OwnedPartition& owned) {
  owned.next_snapshot = SteadyNow() + snapshots_->every();
  auto taking = std::make_shared<SnapshotTaking>();
  taking->partition = owned.id;
  taking->id = SnapshotId::New(owned.committed, absl::Now());
  auto image = owned.filter->BeginSnapshot(
      {.topic = options_.input, .partition = owned.id, .id_fingerprint = id_fingerprint_},
      owned.PointOf(taking->id));
  if (!image.ok()) {
    snapshots_->Failed(owned.id, image.status());
    return;
  }
  taking->image = *std::move(image);
  owned.taking = taking;
  snapshots_->Take(std::move(taking));
}

void SnapshotCycle::Drop(OwnedPartition& owned) {
  if (owned.taking != nullptr) snapshots_->Drop(*owned.taking);
  owned.taking.reset();
  owned.naming.reset();
}

}  // namespace lethe::kafka
