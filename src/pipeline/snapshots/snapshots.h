// Snapshots of partitions: written in the background, valid once a commit names them.
#ifndef LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_
#define LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/sync/mutex.h"

namespace lethe {

// Asked repeatedly during long work, at least every 100 ms during a wait for a broker: false cancels it.
using GoOn = std::function<bool()>;

// Keeps in `found` the younger one of it and `id`, if that was taken at this offset or before.
inline void TakeYounger(SnapshotId id, int64_t at_most, std::optional<SnapshotId>& found) {
  if (id.offset <= at_most && (!found || found->token < id.token)) found = id;
}

struct PartitionSnapshot {
  int32_t partition = 0;
  SnapshotId id;
};

// Write, Remove and DropOlder are called from one thread, Restore and FindYoungest from any.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Returns when the snapshot would survive a power cut. Leaves nothing after an error. Aborted and Cancelled
  // as LiveSnapshot.
  virtual absl::Status Write(int32_t partition, SnapshotId id, LiveSnapshot& image, const GoOn& go_on) = 0;
  // Errors as DedupStage::Restore; NotFound: it is not here.
  virtual absl::StatusOr<RestoredPartition> Restore(int32_t partition, SnapshotId id, DedupStage& stage,
                                                    const GoOn& go_on) = 0;
  // The youngest whole snapshot of the partition that was taken at this offset or before; none: nullopt. For
  // a partition whose commit, which would name one, is lost. Looks through all that there are.
  virtual absl::StatusOr<std::optional<SnapshotId>> FindYoungest(int32_t partition, int64_t at_most,
                                                                 const GoOn& go_on) = 0;
  virtual absl::Status Remove(const std::vector<PartitionSnapshot>& snapshots) = 0;
  // A commit names this snapshot: removes the older ones of the partition, by any owner. Not newer ones,
  // which the next owner may have written meanwhile. `before`: the one that the previous commit named.
  // `is_first`: the first one since the assignment; an earlier owner may have left snapshots that it could
  // not remove.
  virtual absl::Status DropOlder(int32_t partition, SnapshotId id, std::optional<SnapshotId> before,
                                 bool is_first) = 0;

  // From then on Write, Remove and DropOlder wait for no broker. From any thread.
  void Stop() { stopped_ = true; }

 protected:
  bool stopped() const { return stopped_; }

 private:
  std::atomic<bool> stopped_ = false;
};

// Shared by the lane, which begins and drops the snapshot, and the thread that writes it.
struct SnapshotTaking {
  // Exchanged once when it is written and once when it is dropped (no commit will name it): the second of the
  // two removes the snapshot.
  enum class State { kRunning, kDone, kShapeChanged, kFailed, kDropped };

  int32_t partition = 0;
  SnapshotId id;
  std::unique_ptr<LiveSnapshot> image;
  std::atomic<State> state = State::kRunning;
};

class SnapshotThread;

// Of which topic's partitions, where the snapshots are written, and by what time.
struct SnapshotWriting {
  std::string topic = {};
  SnapshotThread* thread = nullptr;  // null: RunOne() does the work
  const Clock& clock = SystemClock();
};

// The snapshots of one topic. Thread-safe. Outlives the partitions, and the work of its thread.
class Snapshots {
 public:
  Snapshots(std::unique_ptr<SnapshotStore> store, absl::Duration every, SnapshotWriting writing = {});

  // Cancels the snapshot that is being written, and writes no more. From any thread.
  void GiveUpWriting() { writes_ = false; }

  SnapshotStore& store() { return *store_; }
  // The name of a snapshot that begins now.
  SnapshotId NewId(int64_t offset) const {
    return SnapshotId::New(offset, writing_.clock.Wall(), writing_.clock.Random());
  }
  // Does what is due next. False: there is nothing.
  bool RunOne();
  absl::Duration every() const { return every_; }

  // Whether a snapshot would be written at once; a waiting image grows stale.
  bool idle() const;
  void Take(std::shared_ptr<SnapshotTaking> taking);
  // No commit will name it. From the thread that has called Take().
  void Drop(SnapshotTaking& taking);
  // A snapshot could not begin.
  void Failed(int32_t partition, const absl::Status& why);
  void Named(int32_t partition, SnapshotId id, std::optional<SnapshotId> before, bool is_first);

  SnapshotCounts counts() const;

 private:
  std::string NameOf(int32_t partition) const;  // for the log
  void Do(std::function<void()> task);
  void Wake();
  void Write(SnapshotTaking& taking);
  void Remove(PartitionSnapshot snapshot);

  const std::unique_ptr<SnapshotStore> store_;
  const absl::Duration every_;
  const SnapshotWriting writing_;
  std::atomic<bool> writes_ = true;

  mutable Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<PartitionSnapshot> to_remove_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  SnapshotCounts counts_ ABSL_GUARDED_BY(mutex_);
};

// The thread that writes the snapshots of all topics, one at a time: hundreds of topics need no thread each.
// Thread-safe.
class SnapshotThread {
 public:
  explicit SnapshotThread(const Clock& clock = SystemClock());
  ~SnapshotThread() { Stop(); }
  SnapshotThread(const SnapshotThread&) = delete;
  SnapshotThread& operator=(const SnapshotThread&) = delete;

  // Works for these, too, until Stop().
  void Add(Snapshots& snapshots);
  // There is something to do.
  void Wake();
  bool idle() const { return !busy_; }
  // Whether the log names the next snapshot: the first one of all, and the first after one that failed. From
  // the thread.
  void NameNext() { names_next_ = true; }
  bool TakeNamesNext() { return std::exchange(names_next_, false); }

  // Cancels the snapshot that is being written, and writes no more.
  void GiveUpWriting();
  // Likewise, and waits up to a second for removals. From one thread.
  void Stop();

 private:
  void Run();

  const Clock& clock_;
  WakeUp woken_;
  WakeUp rests_;  // each time there is nothing to do any more
  Mutex mutex_;
  std::vector<Snapshots*> all_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stop_ = false;
  std::atomic<bool> busy_ = false;
  bool names_next_ = true;                 // the thread's
  std::unique_ptr<StartedThread> thread_;  // null: it has ended
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_SNAPSHOTS_SNAPSHOTS_H_
