// The snapshots of the partitions: taken in the background, counted when a commit names them.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/restore/snapshot_notes.h"

namespace lethe {

// Asked again and again by what takes long, and at least every tenth of a second by what waits for a broker:
// false gives it up.
using GoOn = std::function<bool()>;

struct PartitionSnapshot {
  int32_t partition = 0;
  SnapshotId id;
};

// Where snapshots are. Write, Remove and DropOlder come from one thread, Restore from any.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Returns when the snapshot would survive a power cut. After an error nothing of it is left. Aborted and
  // Cancelled as LiveSnapshot.
  virtual absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) = 0;
  // Errors as DedupStage::Restore; NotFound: it is not here.
  virtual absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                                    const GoOn& go_on) = 0;
  virtual absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) = 0;
  // A commit names this one: all that are older go, of this partition, whoever wrote them. Not those that are
  // newer: when this is done the partition may have another owner, who writes its own and names it. `before`
  // is the one that the commit before named. `is_first`: nothing was named since the partition was assigned,
  // and an earlier owner may have left what it could not remove.
  virtual absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                                 bool is_first) = 0;

  // The program ends: Write, Remove and DropOlder wait for a broker no longer. From any thread.
  void Stop() { stopped_ = true; }

 protected:
  bool stopped() const { return stopped_; }

 private:
  std::atomic<bool> stopped_ = false;
};

// One that is being taken, or was. Shared by the lane, which begins it and drops it, and the thread that
// writes it.
struct SnapshotTaking {
  // Set by one exchange when it is written, and by one when it is dropped (no commit will name it): who comes
  // second and finds the other has it removed.
  enum class State { kRunning, kDone, kShapeChanged, kFailed, kDropped };

  int32_t partition = 0;
  SnapshotId id;
  std::unique_ptr<LiveSnapshot> image;
  std::atomic<State> state = State::kRunning;
};

// A thread that writes one snapshot at a time. Thread-safe. Partitions whose snapshot is being taken are
// destroyed before it is.
class Snapshots {
 public:
  Snapshots(std::unique_ptr<SnapshotStore> store, absl::Duration every);
  ~Snapshots() { Stop(); }

  // The program ends: what is being written is given up, and nothing is written any more. From any thread.
  void GiveUpWriting() { writes_ = false; }
  // That, and what is to be removed is, as far as a second suffices; nothing is done from then on. From one
  // thread.
  void Stop();

  SnapshotStore& store() { return *store_; }
  absl::Duration every() const { return every_; }

  // Whether one would be written now. An image that had to wait would grow stale.
  bool idle() const;
  void Take(std::shared_ptr<SnapshotTaking> taking);
  // No commit will name it. From the thread that has had it taken.
  void Drop(SnapshotTaking& taking);
  // One could not even begin.
  void Failed(int32_t partition, const absl::Status& why);
  // A commit has named it.
  void Named(int32_t partition, SnapshotId id, std::optional<SnapshotId> before, bool is_first);

  SnapshotCounts counts() const;

 private:
  void Run();
  void Do(std::function<void()> task);
  void Write(SnapshotTaking& taking);
  void Remove(PartitionSnapshot snapshot);

  const std::unique_ptr<SnapshotStore> store_;
  const absl::Duration every_;
  std::atomic<bool> writes_ = true;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<PartitionSnapshot> to_remove_;
  bool busy_ = false;
  bool stop_ = false;
  SnapshotCounts counts_;
  Repeats written_;  // the thread's own
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_
