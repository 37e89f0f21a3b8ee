// The input, and what happens to this member of the consumer group, as one stream.
#ifndef LETHE_SRC_PIPELINE_TASK_SOURCE_H_
#define LETHE_SRC_PIPELINE_TASK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/task.h"

namespace lethe {

// A stream of records and of all that happens to them: ends of logs, batches that cannot be read, partitions
// that come and go, errors. Nothing calls back: what happens is read with Poll(), and answered.
//
// Connectors implement the private and the pure members. Invariant: IsStale() while the batch may hold
// records from before the last seek. Not thread-safe: it belongs to the worker's thread.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Connects, and asks the group for partitions.
  virtual absl::Status Open() = 0;
  // Gives the partitions back and leaves the group, if it is open; the worker does not read any more. An
  // event of the group that waits for its answer gets it.
  virtual void Leave() = 0;
  // There are more flows: asks the group for partitions of these, too.
  virtual absl::Status Resubscribe() = 0;
  // Leaves the group and rejoins it, for a new assignment.
  virtual absl::Status Rejoin() = 0;
  // Drops this member with all that is assigned, and becomes a new one.
  virtual absl::Status Reopen() = 0;
  // Counts as a poll that brings nothing: the group drops a member that is silent for too long.
  virtual void StayAlive() = 0;

  // Reads at most `limit` records or about `most_bytes` into the batch; waits at most `timeout` for the
  // first.
  void Poll(absl::Duration timeout, size_t limit, size_t most_bytes);
  // At most one event of the group, then records and events of partitions in their order.
  const std::vector<InputRecord>& batch() const { return batch_; }
  void ClearBatch();

  // Answers kAssigned: reads these from each `next`, and none of the others.
  virtual void Assign(const std::vector<const Task*>& tasks) = 0;
  // Answers kRevoked or kLost: reads them no longer.
  virtual void Unassign(const std::vector<TopicPartition>& partitions) = 0;
  // Commits are of the group's present generation from now on (rule 10). False: this member is in none.
  virtual bool TakeGeneration() = 0;
  // After kUnreadDeleted, where a seek is not enough: reads the partition from `next`. `all` are the owned.
  virtual void Reassign(const Task& task, const Tasks& all) = 0;

  // The batch's records from `begin` on are read again. Partitions in the transaction are sought at its
  // rollback.
  void ReadAgainFrom(size_t begin, const Tasks& tasks);
  bool IsStale(const Task& task) const { return stale_.contains(task.id()); }

  // Reads on from `next`, or from another offset.
  void Seek(Task& task);
  void SeekTo(Task& task, int64_t offset);
  void SetPaused(Task& task, bool paused);
  // What comes next was never read to its end: it may take all the memory there is, and end the process each
  // time. So it is to be fetched in small pieces for a while.
  virtual void ReadCarefully() {}

  // For SourcePace, which looks ahead, and for records that wait for a schema. Records of the batch, or its
  // end of the log, are kept, so that they need not be fetched again; TakeBack() brings them again in their
  // order, before later ones. Without such a place a partition that waits is paused, and sought then. A seek
  // drops what was kept.
  virtual void SetAside(const Task& task, absl::Span<const InputRecord> records);
  virtual void Wait(Task& task) { SetPaused(task, true); }
  virtual void TakeBack(Task& task);

  // The end of the log, as last fetched; 0: not known.
  virtual int64_t HighWatermark(TopicPartition partition) const = 0;
  // Whether the partitions were lost, not revoked.
  virtual bool IsLost() const = 0;
  // After a crash the group waits this long for the member that is gone.
  virtual absl::Duration session_timeout() const = 0;
  // In the group, as of the last generation that was taken; empty before.
  virtual const std::string& member_id() const = 0;
  // Thread-safe: figures of the client, and for how long quotas have held it back.
  virtual ClientReport client_report() const { return {}; }
  virtual absl::Duration throttled() const { return absl::ZeroDuration(); }

 protected:
  void SkipRestOfBatch(const Task& task) { stale_.insert(task.id()); }

  std::vector<InputRecord> batch_;

 private:
  // Appends to batch_.
  virtual void PollBatch(absl::Duration timeout, size_t limit, size_t most_bytes) = 0;
  // Frees the data of the batch's records.
  virtual void ReleaseBatch() = 0;
  // Drops the records that were fetched before.
  virtual void MoveTo(const Task& task, int64_t offset) = 0;
  virtual void Pause(const Task& task, bool paused) = 0;

  std::set<TopicPartition> stale_;  // partitions that were sought since the batch was read
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_SOURCE_H_
