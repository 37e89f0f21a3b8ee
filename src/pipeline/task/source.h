// The input and the consumer group as one worker sees them.
#ifndef LETHE_SRC_PIPELINE_TASK_SOURCE_H_
#define LETHE_SRC_PIPELINE_TASK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// Connectors implement the private and the pure members. Invariant: IsStale() while the batch may hold
// records from before the last seek. Not thread-safe: it belongs to the worker's thread.
class Source {
 public:
  explicit Source(std::string topic) : topic_(std::move(topic)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Connects, and asks the group for partitions.
  virtual absl::Status Open() = 0;
  // Gives the partitions back and leaves the group, if it is open.
  virtual void Leave() = 0;

  // Reads at most `limit` records or about `most_bytes` into the batch; waits at most `timeout` for the
  // first. Partitions may be assigned and revoked meanwhile.
  void Poll(absl::Duration timeout, size_t limit, size_t most_bytes);
  // Records and events in their order.
  const std::vector<InputRecord>& batch() const { return batch_; }
  void ClearBatch();
  void DropUnowned(const Tasks& tasks);
  // The batch's records from `begin` on are read again. Partitions in the transaction are sought at its
  // rollback.
  void ReadAgainFrom(size_t begin, const Tasks& tasks);
  bool IsStale(const Task& task) const { return task.sought_in_batch == batch_number_; }

  // Reads on from `next`, or from another offset.
  void Seek(Task& task);
  void SeekTo(Task& task, int64_t offset);
  void SetPaused(Task& task, bool paused);
  // What comes next was never read to its end: it may take all the memory there is, and end the process each
  // time. So it is to be fetched in small pieces for a while.
  virtual void ReadCarefully() {}

  // For SourcePace, which looks ahead. Records of the batch, or its end of the log, are kept, so that they
  // need not be fetched again; TakeBack() brings them again in their order, before later ones. Without such a
  // place a partition that waits is paused, and sought then. A seek drops what was kept.
  virtual void SetAside(const Task& task, absl::Span<const InputRecord> records);
  virtual void Wait(Task& task) { SetPaused(task, true); }
  virtual void TakeBack(Task& task);

  // The end of the log, as last fetched; 0: not known.
  virtual int64_t HighWatermark(int32_t partition) const = 0;
  // The committed offsets of partitions 0 to `partitions` - 1; -1: none. Unavailable: ask again.
  virtual absl::StatusOr<std::vector<int64_t>> Committed(int32_t partitions) const = 0;
  // Whether the partitions were lost, not revoked.
  virtual bool IsLost() const = 0;
  std::string Name(const Task& task) const;

 protected:
  void SkipRestOfBatch(Task& task) const { task.sought_in_batch = batch_number_; }

  std::vector<InputRecord> batch_;

 private:
  // Appends to batch_.
  virtual void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) = 0;
  // Frees the data of the batch's records.
  virtual void ReleaseBatch() = 0;
  // Drops the records that were fetched before.
  virtual void MoveTo(const Task& task, int64_t offset) = 0;
  virtual void Pause(const Task& task, bool paused) = 0;

  const std::string topic_;
  int64_t batch_number_ = 0;
  bool polling_ = false;  // the batch is being filled
};

// Not thread-safe: it belongs to the worker's thread.
class Group {
 public:
  virtual ~Group() = default;

  // The log differs from the filter's: the task starts over, as at an assignment, and is sought.
  virtual void Rebuild(Task& task) = 0;
  // Retention has deleted the record at `next`: by policy the task goes on where the log starts, or fails.
  virtual void LoseUnread(Task& task, const std::string& why) = 0;
  // An error of no owned partition; may be fatal for the worker.
  virtual void MeetError(const SourceEvent& event) = 0;
  // Between two batches: rebalances, changes of the input topic, reports.
  virtual void Look() = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_SOURCE_H_
