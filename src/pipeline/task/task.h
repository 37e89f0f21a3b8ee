// One input partition: while a lane owns it, and while the process keeps its filter without an owner.
#ifndef LETHE_SRC_PIPELINE_TASK_TASK_H_
#define LETHE_SRC_PIPELINE_TASK_TASK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/counters/counter_sums.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/restore/restart_points.h"
#include "src/pipeline/restore/restore_progress.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/schema_wait.h"
#include "src/pipeline/task/unreadable_batch.h"

namespace lethe {

// The record before an offset, by which a kept filter recognizes its log.
struct LogMark {
  int64_t offset = -1;                     // -1: none yet
  uint64_t hash = 0;                       // of key and value
  absl::Time time = absl::InfinitePast();  // its timestamp; InfinitePast(): not known
};

// The router's pace of one source partition (SourcePace).
struct Pace {
  // A look at records behind `offset`, to learn whether the record there is ahead of the others, or only its
  // timestamp is wrong.
  struct Peek {
    int64_t offset = -1;
    absl::Time time;         // of the record there
    absl::Time known_floor;  // of the partition: older timestamps are wrong, or late
    absl::Time floor;        // the lowest of `time` and those behind that are not much lower
    int seen = 0;            // timestamps behind
    int lower = 0;           // of these, much lower than `time`
  };

  // The partition is not read until the others come near this time; InfinitePast(): it is.
  absl::Time waits_at = absl::InfinitePast();
  // The latest of these times: no record from `next` on is older, but for wrong timestamps.
  absl::Time floor = absl::InfinitePast();
  std::optional<Peek> peek;
  int64_t wrong_time_at = -1;                      // the offset of a record whose timestamp is not believed
  absl::Time look_again = absl::InfiniteFuture();  // by Clock::Steady(): the peek had few records
  absl::Time at_end_until = absl::InfinitePast();  // by Clock::Steady()

  bool waits() const { return waits_at != absl::InfinitePast(); }
};

struct Undeliverable {
  std::string why;
  bool divert_refused = false;  // the dead-letter topic refuses it, too
};

// Invariant, between transactions: the filter holds exactly the ids of [restart or origin, filter_end) that
// passed; filter_end <= committed, with equality when kActive or kHeld.
//
// Not thread-safe: it belongs to one lane at a time, and moves through KeptPartitions.
struct Task {
  TopicPartition id = {0, 0};
  const Flow* flow = nullptr;  // of its topic
  Phase phase = Phase::kRestoring;
  std::string problem;    // if kFailed or kHeld
  std::string last_held;  // the last problem of a kHeld, which is logged once

  std::unique_ptr<Partition> filter;
  std::optional<Transaction> transaction;
  std::optional<RestartPoints> points;

  int64_t origin = 0;             // O
  int32_t origin_partitions = 0;  // of the topic, at that time
  std::string topic_id;           // of the topic that is judged; empty: the client or the cluster knows none
  int64_t committed = 0;          // C
  int64_t in_group = -1;          // the group's offset: C, or before deleted unread records; -1: none
  int64_t filter_end = 0;         // F
  int64_t next = 0;               // the next offset; lower ones are ignored
  int64_t log_end = 0;            // of the log, at the assignment
  int64_t end_of_log = 0;         // the last end of the log that the client reached

  // Records with a timestamp that the filter's clock has seen; their number at C.
  int64_t timed_records = 0;
  int64_t committed_timed_records = 0;

  LogMark mark;            // of the record before `next`
  LogMark committed_mark;  // of the record before `filter_end`
  // The last record before C, by the commit metadata: compared when a restore reaches it.
  std::optional<LogMark> to_compare;

  RestoreProgress restore;
  // During a restore: stream time at C by the commit metadata; InfiniteFuture(): not known.
  absl::Time time_at_committed = absl::InfiniteFuture();
  // Likewise: no record dated max_future behind it counts. (Stream time at C would not do: in a sparse topic
  // it is hours behind the records before C.)
  absl::Time judged_by = absl::InfiniteFuture();
  absl::Time covered_since = absl::InfinitePast();  // stream time from which the filter has all ids
  Growth growth;                                    // of the topic

  // The snapshots that the last commit has named, that is being taken, and that the open commit names.
  std::optional<SnapshotId> snapshot;
  std::shared_ptr<SnapshotTaking> taking;
  std::optional<SnapshotId> naming;
  bool has_named = false;                           // this owner has named one of its own
  absl::Time next_snapshot = absl::InfinitePast();  // by Clock::Steady()
  int64_t unread_deleted = 0;

  PartitionStatus status;  // of the filter, last asked; without a name: never
  // `next` and `committed` at that time: while they stay, the status stays.
  std::pair<int64_t, int64_t> status_at;

  std::vector<CounterSums> sums;  // of the options' counters
  RecordCounts open_counts;       // of the open transaction
  RecordCounts counts;            // committed

  // By offset; forgotten after the commit.
  std::map<int64_t, Undeliverable> undeliverable;
  // Offsets of which the dead-letter topic takes no copy.
  std::set<int64_t> uncopied;
  // Undeliverable offsets between R and C, which a replay must leave out.
  std::set<int64_t> passed_over;
  int64_t passed_over_unlisted = 0;  // no room in the commit: a replay takes them for passed

  // A batch that the client cannot read: attempts in a row, the search for its end, the reason.
  int64_t unreadable_at = -1;
  int unreadable_times = 0;
  std::optional<UnreadableBatch> unreadable;
  std::string unreadable_why;

  // The record at `next` waits for a schema.
  SchemaWait schema_wait;

  Pace pace;
  bool warned_of_memory = false;
  bool lacks_memory = false;  // it failed because no filter could be made
  bool paused = false;        // the client fetches nothing of it
  bool was_aborted = false;   // its last transaction
  bool awaits_room = false;   // the open transaction has no room for more of its topic

  // Why a policy stops the partition before the record at `next`, or empty. Becomes its problem when
  // everything before is committed.
  std::string stop_before_next;

  // The partition is not read any more; `why` says what to do.
  void Fail(std::string why) {
    phase = Phase::kFailed;
    problem = std::move(why);
  }
  bool in_transaction() const { return transaction.has_value(); }
  // Null if no topic is known to refuse the record.
  const Undeliverable* UndeliverableAt(int64_t offset) const {
    if (undeliverable.empty()) return nullptr;
    const auto known = undeliverable.find(offset);
    return known == undeliverable.end() ? nullptr : &known->second;
  }
  std::string Name() const { return flow->NameOf(id.partition); }
  // For a commit of `next`.
  CommitMetadata Metadata(absl::Time wall_now) const;
  // Takes over what the group's commit says of the log before C. The log starts at `log_start`.
  void TakeHistory(const CommitMetadata& metadata, int64_t log_start);
  // For a snapshot that begins now, between transactions; its id is `taken`.
  SnapshotPoint PointOf(SnapshotId taken) const;
  // Keeps the snapshot: a commit with an unknown outcome may name it.
  void LeaveNamed();
  // After a commit of everything up to `next`.
  void Committed();
  // After an abort: everything from C is read again.
  void RolledBack();
  // After a restore: the filter knows all ids from the present stream time, or from an earlier one.
  void KnowsSinceStreamTime();
  bool short_history() const;
  // Whether the topic grew within the horizon, so that copies may be in different partitions.
  bool keys_moved() const;
};

using Tasks = std::map<TopicPartition, std::unique_ptr<Task>>;

// Null if it is not owned.
inline Task* Find(const Tasks& tasks, TopicPartition partition) {
  const auto found = tasks.find(partition);
  return found == tasks.end() ? nullptr : found->second.get();
}

std::vector<Task*> InTransaction(const Tasks& tasks);

// Asks filters for their status. Each takes up to 2 ms, so they take turns: from partition `*next` on, until
// `budget` is used up, but at least one. New filters are small and do not wait; unchanged ones are not asked.
void RenewStatus(const Tasks& tasks, absl::Duration budget, const Clock& clock, TopicPartition* next);

// The partitions that no lane of the process owns, with their filters, in case they come back. Thread-safe.
class KeptPartitions {
 public:
  // Times are Clock::Steady().
  void Put(std::unique_ptr<Task> partition, absl::Time now);
  // Null if it is not there.
  std::unique_ptr<Task> Take(TopicPartition id);
  // The partition that has been here longest, if it was here by `since`; else null.
  std::unique_ptr<Task> TakeOldest(absl::Time since = absl::InfiniteFuture());

 private:
  struct Kept {
    std::unique_ptr<Task> partition;
    absl::Time since;
  };

  std::mutex mutex_;
  std::map<TopicPartition, Kept> partitions_;  // guarded by mutex_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_TASK_H_
