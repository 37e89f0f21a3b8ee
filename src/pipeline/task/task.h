// One input partition while a lane owns it, and while nobody does but its filter is kept.
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

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "lethe/stage.h"
#include "src/counters/counter_sums.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/restore/restart_points.h"
#include "src/pipeline/restore/restore_progress.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/unreadable_batch.h"

namespace lethe {

// The record before an offset, by which a filter that was kept recognizes its log again.
struct LogMark {
  int64_t offset = -1;                     // -1: none was read yet
  uint64_t hash = 0;                       // of key and value
  absl::Time time = absl::InfinitePast();  // its timestamp; InfinitePast(): not known
};

// A record that a topic refuses for good.
struct Undeliverable {
  std::string why;
  bool divert_refused = false;  // so does the topic for what is diverted: there is nowhere left to put it
};

// Invariant, between transactions: the filter holds exactly the ids of [restart or origin, filter_end) that
// were passed, and nothing from filter_end on; filter_end <= committed, with equality when kActive or kHeld.
//
// Not thread-safe: it belongs to one lane at a time, and moves through KeptPartitions.
struct Task {
  int32_t id = 0;
  Phase phase = Phase::kRestoring;
  std::string problem;  // if kFailed or kHeld

  std::unique_ptr<Partition> filter;
  std::optional<Transaction> transaction;
  std::optional<RestartPoints> points;

  int64_t origin = 0;             // O
  int32_t origin_partitions = 0;  // of the topic, when it began there
  int64_t committed = 0;          // C
  int64_t in_group = -1;          // what the group has: C, but before what was deleted unread; -1: nothing
  int64_t filter_end = 0;         // F
  int64_t next = 0;               // the offset expected next; lower ones are ignored
  int64_t log_end = 0;            // of the log, when it was assigned
  int64_t end_of_log = 0;         // the position at which the client last said that there is no more

  // Records with a timestamp that the filter's clock has seen; how many of them at C.
  int64_t timed_records = 0;
  int64_t committed_timed_records = 0;

  LogMark mark;            // of the record before `next`
  LogMark committed_mark;  // of the record before `filter_end`
  // Of the last record before C, by the commit metadata: it is compared when a restore comes to it.
  std::optional<LogMark> to_compare;

  RestoreProgress restore;
  // Stream time at C by its commit metadata, while the filter is restored; InfiniteFuture(): not known.
  absl::Time time_at_committed = absl::InfiniteFuture();
  absl::Time covered_since = absl::InfinitePast();  // stream time from which on the filter knows all ids
  Growth growth;                                    // of the topic

  // The snapshot that the last commit named, the one that is being taken, and the one that the commit under
  // way names.
  std::optional<SnapshotId> snapshot;
  std::shared_ptr<SnapshotTaking> taking;
  std::optional<SnapshotId> naming;
  bool has_named = false;                           // one of its own, this owner
  absl::Time next_snapshot = absl::InfinitePast();  // by SteadyNow()
  int64_t unread_deleted = 0;

  // The number of the lane's batch in which the partition was sought: what is left of that batch is stale.
  int64_t sought_in_batch = -1;

  PartitionStatus status;  // of the filter, when it was last asked; without a name: never
  // What `next` and `committed` were then: while nothing is read or committed, nothing changes.
  std::pair<int64_t, int64_t> status_at;

  std::vector<CounterSums> sums;  // of the options' counters
  RecordCounts open_counts;       // of the open transaction
  RecordCounts counts;            // committed

  // By offset; found one by one, forgotten when they have been passed over.
  std::map<int64_t, Undeliverable> undeliverable;
  // Those of which the topic for what is diverted takes no copy.
  std::set<int64_t> uncopied;
  // Those before C that a replay must not remember, as far back as one may begin.
  std::set<int64_t> passed_over;
  int64_t passed_over_unlisted = 0;  // the commit has no room for them: a replay takes these for passed

  // A batch that the client cannot read: how often in a row, the search for its end, and why.
  int64_t unreadable_at = -1;
  int unreadable_times = 0;
  std::optional<UnreadableBatch> unreadable;
  std::string unreadable_why;

  bool warned_of_memory = false;
  bool paused = false;    // the client fetches nothing of it
  bool given_up = false;  // the last transaction that it was in was not committed

  // Not empty: the record at `next` must not be read, by policy. It becomes the partition's problem when
  // everything before it is committed.
  std::string stop_before_next;
  bool stopped_by_policy = false;  // it has become that; another policy may let the record by

  // It is not read from now on; `why` says what to do about it.
  void Fail(std::string why) {
    phase = Phase::kFailed;
    problem = std::move(why);
  }
  bool in_transaction() const { return transaction.has_value(); }
  // Null: no topic is known to refuse the record of this offset.
  const Undeliverable* UndeliverableAt(int64_t offset) const {
    if (undeliverable.empty()) return nullptr;
    const auto known = undeliverable.find(offset);
    return known == undeliverable.end() ? nullptr : &known->second;
  }
  // What the offset `next` is committed with.
  CommitMetadata Metadata(const std::string& id_fingerprint, const DaemonOptions& options) const;
  // What the group's commit says of the log before C, which begins at `log_start`. The filter holds what is
  // before filter_end.
  void TakeHistory(const CommitMetadata& metadata, int64_t log_start);
  // What a snapshot taken now is to say, between transactions; its id is `taken`.
  SnapshotPoint PointOf(SnapshotId taken) const;
  // Nobody here knows whether a commit stands that names what was taken: it is to stay.
  void LeaveNamed();
  // The transaction with everything up to `next` has been committed.
  void Committed();
  // It has not: everything from C on will be read again.
  void RolledBack();
  // It is restored: its filter knows all ids from the present stream time on, if not from before.
  void KnowsSinceStreamTime();
  bool short_history(absl::Duration horizon) const;
  // Whether copies of what was sent before the topic grew may come, and be in other partitions than that.
  bool keys_moved(absl::Duration horizon) const;
};

using Tasks = std::map<int32_t, std::unique_ptr<Task>>;

// Null if it is not owned.
inline Task* Find(const Tasks& tasks, int32_t partition) {
  const auto found = tasks.find(partition);
  return found == tasks.end() ? nullptr : found->second.get();
}

// Those that have a part in the open transaction.
std::vector<Task*> InTransaction(const Tasks& tasks);

// Asks filters for their status, which takes up to 2 ms of each, since its estimate looks at its lines. So
// they take turns: from partition `*next` on, until `budget` is used up, but one at least. Those that were
// never asked are new and small, and do not wait; those of which nothing was read since are not asked.
void RenewStatus(const Tasks& tasks, absl::Duration budget, int32_t* next);

// The partitions of the process that no lane owns, with their filters, in case they come back. Thread-safe.
class KeptPartitions {
 public:
  void Put(std::unique_ptr<Task> partition);
  // Null if it is not there. Each is given out once.
  std::unique_ptr<Task> Take(int32_t id);
  // Gives the memory of the one back that has been here longest, if it was here by `since`. Returns its id.
  std::optional<int32_t> DropOne(absl::Time since = absl::InfiniteFuture());

 private:
  struct Kept {
    std::unique_ptr<Task> partition;
    absl::Time since;
  };

  std::mutex mutex_;
  absl::flat_hash_map<int32_t, Kept> partitions_;  // guarded by mutex_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_TASK_H_
