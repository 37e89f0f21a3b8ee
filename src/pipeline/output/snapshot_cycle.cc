#include "src/pipeline/output/snapshot_cycle.h"

#include <memory>
#include <utility>

namespace lethe {
namespace {

// After the filter changed its shape, which it rarely does twice in a row.
constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);

}  // namespace

void SnapshotCycle::Name(const std::vector<Task*>& partitions) {
  for (Task* task : partitions) {
    // It was written before this commit, so it holds no id from behind the committed offset.
    if (task->taking != nullptr && task->taking->state == SnapshotTaking::State::kDone) {
      task->naming = task->taking->id;
    }
  }
}

void SnapshotCycle::Take(const Tasks& tasks) {
  if (snapshots_ == nullptr) return;
  const absl::Time now = clock_.Steady();
  for (const auto& [id, task] : tasks) {
    if (task->naming) {
      snapshots_->Named(id, *task->naming, std::exchange(task->snapshot, task->naming),
                        !std::exchange(task->has_named, true));
      task->naming.reset();
      task->taking.reset();
    } else if (task->taking != nullptr) {
      const SnapshotTaking::State state = task->taking->state;
      if (state == SnapshotTaking::State::kShapeChanged) task->next_snapshot = now + kAgainAfter;
      if (state == SnapshotTaking::State::kShapeChanged || state == SnapshotTaking::State::kFailed) {
        task->taking.reset();
      }
    }
    if (task->next_snapshot == absl::InfinitePast()) task->next_snapshot = now + snapshots_->every();
    const bool is_due =
        task->taking == nullptr && task->phase == Phase::kActive && now >= task->next_snapshot;
    // Before the first record there is no mark to recognize the log by.
    if (is_due && task->committed_mark.offset >= 0 && snapshots_->idle()) Begin(*task);
  }
}

void SnapshotCycle::Begin(Task& task) {
  task.next_snapshot = clock_.Steady() + snapshots_->every();
  auto taking = std::make_shared<SnapshotTaking>();
  taking->partition = task.id;
  taking->id = snapshots_->NewId(task.committed);
  auto image = task.filter->BeginSnapshot(
      {.topic = options_.input, .partition = task.id, .id_fingerprint = id_fingerprint_},
      task.PointOf(taking->id));
  if (!image.ok()) {
    snapshots_->Failed(task.id, image.status());
    return;
  }
  taking->image = *std::move(image);
  task.taking = taking;
  snapshots_->Take(std::move(taking));
}

void SnapshotCycle::Drop(Task& task) {
  if (task.taking != nullptr) snapshots_->Drop(*task.taking);
  task.taking.reset();
  task.naming.reset();
}

}  // namespace lethe
