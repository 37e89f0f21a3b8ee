#include "src/pipeline/output/snapshot_cycle.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace lethe {
namespace {

// After the filter changed its shape, which it rarely does twice in a row.
constexpr absl::Duration kAgainAfter = absl::Milliseconds(500);
// So many begin after one commit, that thousands of partitions are saved in time; of large ones fewer, since
// an image grows stale while it waits, and keeps copies of what changes.
constexpr size_t kMostAtOnce = 16;
constexpr int64_t kMostBytesAtOnce = int64_t{16} << 20;

}  // namespace

void SnapshotCycle::Name(const std::vector<Task*>& partitions) {
  for (Task* task : partitions) {
    // It was written before this commit, so it holds no id from behind the committed offset.
    if (task->snapshots().taking != nullptr &&
        task->snapshots().taking->state == SnapshotTaking::State::kDone) {
      task->snapshots().naming = task->snapshots().taking->id;
    }
  }
}

void SnapshotCycle::Take(const Tasks& tasks) {
  const absl::Time now = clock_.Steady();
  std::vector<Task*> due;
  for (const auto& [id, task] : tasks) {
    Snapshots* const snapshots = task->flow()->snapshots.get();
    if (snapshots == nullptr) continue;
    if (task->snapshots().naming) {
      snapshots->Named(id.partition, *task->snapshots().naming,
                       std::exchange(task->snapshots().named, task->snapshots().naming),
                       !std::exchange(task->snapshots().has_named, true));
      task->snapshots().naming.reset();
      task->snapshots().taking.reset();
    } else if (task->snapshots().taking != nullptr) {
      const SnapshotTaking::State state = task->snapshots().taking->state;
      if (state == SnapshotTaking::State::kShapeChanged) task->snapshots().next = now + kAgainAfter;
      if (state == SnapshotTaking::State::kShapeChanged || state == SnapshotTaking::State::kFailed) {
        task->snapshots().taking.reset();
      }
    }
    if (task->snapshots().next == absl::InfinitePast()) task->snapshots().next = now + snapshots->every();
    const bool is_due = task->snapshots().taking == nullptr && task->phase() == Phase::kActive &&
                        now >= task->snapshots().next;
    // Before the first record there is no mark to recognize the log by.
    if (!is_due || task->committed_mark().offset < 0) continue;
    if (snapshots->idle()) due.push_back(task.get());
  }
  // First those that have been due for the longest: the thread may have more to do than it can.
  std::stable_sort(due.begin(), due.end(),
                   [](Task* x, Task* y) { return x->snapshots().next < y->snapshots().next; });
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(due.size(), kMostAtOnce); ++i) {
    bytes += due[i]->status().filter.memory_bytes;
    if (i > 0 && bytes > kMostBytesAtOnce) break;
    Begin(*due[i]);
  }
}

void SnapshotCycle::Begin(Task& task) {
  const Flow& flow = *task.flow();
  task.snapshots().next = clock_.Steady() + flow.snapshots->every();
  auto taking = std::make_shared<SnapshotTaking>();
  taking->partition = task.id().partition;
  taking->id = flow.snapshots->NewId(task.committed());
  auto image = task.filter()->BeginSnapshot(
      {.topic = flow.options.input, .partition = task.id().partition, .id_fingerprint = flow.id_fingerprint},
      task.PointOf(taking->id));
  if (!image.ok()) {
    flow.snapshots->Failed(task.id().partition, image.status());
    return;
  }
  taking->image = *std::move(image);
  task.snapshots().taking = taking;
  flow.snapshots->Take(std::move(taking));
}

void SnapshotCycle::Drop(Task& task) {
  if (task.snapshots().taking != nullptr) task.flow()->snapshots->Drop(*task.snapshots().taking);
  task.snapshots().taking.reset();
  task.snapshots().naming.reset();
}

}  // namespace lethe
