// The lane's part in snapshots: when one begins, and which one a commit names.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/lane.h"
#include "src/pipeline/steady_time.h"

namespace lethe::kafka {
namespace {

// A filter that changed its shape is asked again soon: it rarely does so twice in a row.
constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);

}  // namespace

void Lane::NameSnapshots(const std::vector<OwnedPartition*>& partitions) {
  for (OwnedPartition* owned : partitions) {
    // Done before this commit, so that what it holds at most is before the offset of the commit.
    if (owned->taking != nullptr && owned->taking->state == SnapshotTaking::State::kDone) {
      owned->naming = owned->taking->id;
    }
  }
}

void Lane::TakeSnapshots() {
  if (snapshots_ == nullptr) return;
  const absl::Time now = SteadyNow();
  for (auto& [id, owned] : owned_) {
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
    if (is_due && owned->committed_mark.offset >= 0 && snapshots_->idle()) BeginSnapshot(*owned);
  }
}

void Lane::BeginSnapshot(OwnedPartition& owned) {
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

void Lane::DropSnapshot(OwnedPartition& owned) {
  if (owned.taking != nullptr) snapshots_->Drop(*owned.taking);
  owned.taking.reset();
  owned.naming.reset();
}

bool Lane::GoOnLoading(int32_t partition, absl::string_view what) {
  heartbeat_.Beat();
  // The group would take a consumer for dead that is not polled for max.poll.interval.ms. To poll a queue of
  // it in which nothing ever is counts, and brings no rebalance into the middle of this one.
  using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
  const QueuePtr nothing(rd_kafka_queue_new(consumer_.get()));
  const MessagePtr none(rd_kafka_consume_queue(nothing.get(), 0));
  if (std::exchange(loading_, partition) != partition) {
    SetWaiting(absl::StrCat("the ", what, " of ", options_.input, "-", partition, " is being loaded"));
  }
  return !stop_.requested();
}

void Lane::LoadingEnds() {
  if (std::exchange(loading_, std::nullopt)) SetWaiting("");
}

}  // namespace lethe::kafka
