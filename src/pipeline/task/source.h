// The input as one worker sees it: batches of records, and where each partition is read on.
#ifndef LETHE_SRC_PIPELINE_TASK_SOURCE_H_
#define LETHE_SRC_PIPELINE_TASK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// A connector implements the private and the pure members; what is stale is decided here, once for all.
//
// Invariant: what is left in the batch of a partition that was sought since is stale, by IsStale().
// Thread safety: none, it belongs to the worker's thread.
class Source {
 public:
  explicit Source(std::string topic) : topic_(std::move(topic)) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Connects, and asks the group for partitions.
  virtual absl::Status Open() = 0;
  // Gives the partitions back, and leaves the group. Does nothing if it is not open.
  virtual void Leave() = 0;

  // Reads what is there into the batch, at most `limit` records or about `most_bytes`, waiting at most
  // `timeout` for the first. Partitions may be assigned and revoked meanwhile.
  void Poll(absl::Duration timeout, size_t limit, size_t most_bytes);
  // Records and events, in the order in which they came.
  const std::vector<InputRecord>& batch() const { return batch_; }
  void ClearBatch();
  // Removes the records of all partitions that are not owned.
  void DropUnowned(const Tasks& tasks);
  // After the batch's record `begin` could not be carried out: seeks every partition from there on, but
  // those of the transaction, which are sought when that is rolled back.
  void ReadAgainFrom(size_t begin, const Tasks& tasks);
  bool IsStale(const Task& task) const { return task.sought_in_batch == batch_number_; }

  // Reads on from `next`; or from another offset, in search of it.
  void Seek(Task& task);
  void SeekTo(Task& task, int64_t offset);
  void SetPaused(Task& task, bool paused);

  // The end of the log, as last fetched; 0 if it is not known.
  virtual int64_t HighWatermark(int32_t partition) const = 0;
  // What the group has committed of partitions 0 to `partitions` - 1, -1 where that is nothing. Unavailable:
  // ask again.
  virtual absl::StatusOr<std::vector<int64_t>> Committed(int32_t partitions) const = 0;
  // Whether the group took the partitions away without asking for them.
  virtual bool IsLost() const = 0;
  // Of a partition, for people.
  std::string Name(const Task& task) const;

 protected:
  // Not in a batch: erases what has been polled of the partition.
  std::vector<InputRecord> batch_;

 private:
  // Appends to batch_.
  virtual void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) = 0;
  // Nothing views what the batch's records are made of any more.
  virtual void ReleaseBatch() = 0;
  // What was fetched before is dropped.
  virtual void MoveTo(const Task& task, int64_t offset) = 0;
  virtual void Pause(const Task& task, bool paused) = 0;

  const std::string topic_;
  int64_t batch_number_ = 0;
  bool polling_ = false;  // the batch is being filled
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_SOURCE_H_
