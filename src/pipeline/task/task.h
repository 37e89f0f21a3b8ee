// One input partition: while a lane owns it, and while the process keeps its filter without an owner.
#ifndef LETHE_SRC_PIPELINE_TASK_TASK_H_
#define LETHE_SRC_PIPELINE_TASK_TASK_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/counters/counter_sums.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/pipeline/report/duplicate_watch.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/report/shared_id_watch.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/pipeline/restore/restart_points.h"
#include "src/pipeline/restore/restore_progress.h"
#include "src/pipeline/snapshots/snapshots.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/task/input_record.h"
#include "src/pipeline/task/schema_wait.h"
#include "src/pipeline/task/unreadable_batch.h"
#include "src/sync/mutex.h"

namespace lethe {

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

// The snapshots of a partition's filter: those that the last commit has named, that is being taken, and that
// the open commit names.
struct OwnSnapshots {
  std::optional<SnapshotId> named;
  std::shared_ptr<SnapshotTaking> taking;
  std::optional<SnapshotId> naming;
  bool has_named = false;                  // this owner has named one of its own
  absl::Time next = absl::InfinitePast();  // by Clock::Steady()
};

// Invariant, between transactions: the filter holds exactly the ids of [restart or origin, filter_end) that
// passed; filter_end <= committed, with equality when kActive or kHeld, unless the log begins later and the
// filter with it.
//
// Not thread-safe: it belongs to one lane at a time, and moves through KeptPartitions.
class Task {
 public:
  explicit Task(TopicPartition id = {0, 0}, const Flow* flow = nullptr) : id_(id), flow_(flow) {}

  const TopicPartition& id() const { return id_; }
  const Flow* flow() const { return flow_; }  // of its topic
  std::string Name() const { return flow_->NameOf(id_.partition); }

  // Its phase, and how it changes.
  Phase phase() const { return phase_; }
  const std::string& problem() const { return problem_; }  // if kFailed or kHeld
  // The partition is not read any more; `why` says what to do.
  void Fail(std::string why);
  // Fails it for want of memory: it may be tried again.
  void FailForMemory(std::string why);
  bool lacks_memory() const { return lacks_memory_; }
  // Whether `why` is another reason than the last one.
  bool Hold(const std::string& why);
  // Held no longer, if it was.
  void Resume();
  // Why a policy stops the partition before the record at `next`, or empty. Becomes its problem when
  // everything before is committed.
  const std::string& stop_before_next() const { return stop_before_next_; }
  void StopBeforeNext(std::string why) { stop_before_next_ = std::move(why); }

  // The log, by offsets.
  const Origin& origin() const { return origin_; }
  int64_t committed() const { return committed_; }    // C
  int64_t in_group() const { return in_group_; }      // C, or before deleted unread records; -1: none
  int64_t filter_end() const { return filter_end_; }  // F
  int64_t next() const { return next_; }              // the next offset; lower ones are ignored
  int64_t log_end() const { return log_end_; }        // at the assignment
  int64_t end_of_log() const { return end_of_log_; }  // the last that the client reached
  void ReachEndOfLog(int64_t end) { end_of_log_ = std::max(end_of_log_, end); }
  void ForgetEndOfLog() { end_of_log_ = 0; }
  // Records with a timestamp that the filter's clock has seen.
  int64_t timed_records() const { return timed_records_; }
  void NoteTime(absl::Time time) { timed_records_ += time == absl::InfinitePast() ? 0 : 1; }
  const LogMark& mark() const { return mark_; }                      // of the record before `next`
  const LogMark& committed_mark() const { return committed_mark_; }  // of the record before `filter_end`
  // Of the topic that is judged; empty: the client or the cluster knows none.
  const std::string& topic_id() const { return topic_id_; }
  void SetTopicId(std::string id) { topic_id_ = std::move(id); }
  const Growth& growth() const { return growth_; }  // of the topic
  void SetGrowth(const Growth& growth) { growth_ = growth; }
  int64_t unread_deleted() const { return unread_deleted_; }

  // Assignment.
  void SetLog(int64_t in_group, int64_t log_end) { in_group_ = in_group, log_end_ = log_end; }
  void SetCommitted(int64_t offset) { committed_ = offset; }
  // The log starts behind C, at this offset.
  void SkipDeleted(int64_t log_start);
  void ContinueCounts(const Task& former) { counts_ = former.counts_; }
  void AddUnreadDeleted(int64_t offsets) { unread_deleted_ += offsets; }
  void SetTimes(absl::Time time_at_committed, absl::Time judged_by);
  void SetFilter(std::unique_ptr<Partition> filter) { filter_ = std::move(filter); }
  void DropFilter() { filter_.reset(); }
  // Active, with nothing judged before `origin`.
  void StartEmpty(const Origin& origin);
  // The filter is to be filled by records from here on.
  void StartRestore(const Origin& origin, absl::Time covered_since);
  void RestoreFrom(int64_t offset) { restore_ = RestoreProgress(offset, committed_); }
  // The filter is new, and reads from here on.
  void StartFilter(absl::Duration horizon, RestartPoint start);
  void StartSnapshot(RestoredPartition restored, SnapshotId id, RestartPoints points,
                     const SnapshotNotes& notes);
  // A kept filter is assigned again as `assigned`, which the group's commit of `committed` describes.
  void ComeBack(const Task& assigned, int64_t committed, std::optional<SnapshotId> snapshot);
  // Begins a new life at C, which was set by an operator's reset or another program, and of the records
  // before which nothing is known but the ids in the filter. They have passed in a former life, before
  // `filter_end`; what lies between may not even have been judged.
  void StartOver(int32_t partitions, absl::Duration horizon, absl::Time known_since);
  void SetCoveredSince(absl::Time known_since) { covered_since_ = known_since; }
  // Takes over what the group's commit says of the log before C. The log starts at `log_start`.
  void TakeHistory(const CommitMetadata& metadata, int64_t log_start);
  // There is a commit of where it starts.
  void StartIsCommitted() { in_group_ = committed_; }

  // Restore.
  const RestoreProgress& restore() const { return restore_; }
  // All before `next` is in the filter. True if it is time to log the progress.
  bool NoteProgress(absl::Time now) { return restore_.At(next_, now); }
  // Stream time at C by the commit metadata; InfiniteFuture(): not known.
  absl::Time time_at_committed() const { return time_at_committed_; }
  // Likewise: no record dated max_future behind it counts. (Stream time at C would not do: in a sparse topic
  // it is hours behind the records before C.)
  absl::Time judged_by() const { return judged_by_; }
  // The last record before C, by the commit metadata: compared when a restore reaches it.
  const std::optional<LogMark>& to_compare() const { return to_compare_; }
  std::optional<LogMark> TakeToCompare() { return std::exchange(to_compare_, std::nullopt); }
  // Undeliverable offsets between R and C, which a replay must leave out.
  bool IsPassedOver(int64_t offset) const { return passed_over_.contains(offset); }
  // The log is the filter's: its record before F has this time. Whether the records from there to `next` are
  // skipped.
  bool Recognize(absl::Time time);
  // So many records, of which this is the last, are in the filter.
  void Replayed(const InputRecord& last, size_t records);
  // A replay goes on at `end`, and the filter lacks ids since `known_since`.
  void SkipInReplay(int64_t end, absl::Time known_since);
  // Everything before C is in the filter.
  void Activate();
  absl::Time covered_since() const {
    return covered_since_;
  }  // stream time from which the filter has all ids
  bool short_history() const;
  // Whether the topic grew within the horizon, so that copies may be in different partitions.
  bool keys_moved() const;

  // The filter, and a transaction.
  Partition* filter() const { return filter_.get(); }  // null: none
  // R, as committed; 0: not known. A filter that was kept may know a later point than the commit of another
  // owner since: what that needs must not be deleted.
  int64_t restart() const { return points_ ? std::min(points_->oldest().offset, restart_in_group_) : 0; }
  bool in_transaction() const { return transaction_.has_value(); }
  Transaction& transaction() { return *transaction_; }
  void Begin(Transaction transaction);
  // Everything up to this record is judged.
  void Judged(const InputRecord& last);
  // Nothing before `end` needs to be judged.
  void SkipTo(int64_t end) { next_ = end; }
  // Offsets before `end` cannot be read.
  void SkipUnreadable(int64_t end);
  // For a commit of `next`.
  CommitMetadata Metadata(absl::Time wall_now) const;
  // After a commit of everything up to `next`.
  void Committed();
  // After an abort: everything from C is read again.
  void RolledBack();
  bool was_aborted() const { return was_aborted_; }  // its last transaction
  // The open transaction has no room for more of its topic. Returns whether it had none before.
  bool SetAwaitsRoom(bool awaits) { return std::exchange(awaits_room_, awaits); }
  bool awaits_room() const { return awaits_room_; }
  // Counts in the open transaction.
  void Count(int64_t RecordCounts::*what) { ++(open_counts_.*what); }
  void Count(int64_t CounterCounts::*what) { ++(open_counts_.counters.*what); }
  const RecordCounts& open_counts() const { return open_counts_; }
  // The record is written to an output that keeps records for less than its age.
  void CountExpired(const InputRecord& record, absl::Duration kept_for) {
    Count(&RecordCounts::expired);
    expiry_.See(record.offset, record.timestamp_ms, kept_for);
  }
  ExpiryWatch& expiry() { return expiry_; }
  const ExpiryWatch& expiry() const { return expiry_; }
  const RecordCounts& counts() const { return counts_; }  // committed
  std::vector<CounterSums>& sums() { return sums_; }      // of the options' counters
  const std::vector<CounterSums>& sums() const { return sums_; }
  // What the group's commit says of the totals of this partition.
  void ExpectTotals(std::vector<TotalKeys> totals) { expected_totals_ = std::move(totals); }
  const std::vector<TotalKeys>& expected_totals() const { return expected_totals_; }
  void WriteAllTotals() {
    for (CounterSums& each : sums_) each.WriteAllTotals();
  }

  // Records that topics refuse. Null if no topic is known to refuse the record.
  const Undeliverable* UndeliverableAt(int64_t offset) const {
    return undeliverable_.empty() ? nullptr : FindUndeliverable(offset);
  }
  void NoteUndeliverable(int64_t offset, Undeliverable why) { undeliverable_[offset] = std::move(why); }
  // The topic will refuse the record, which nothing is known of yet.
  void Foresee(int64_t offset, std::string why) {
    undeliverable_.try_emplace(offset, Undeliverable{std::move(why)});
  }
  // The record before `next` was the only one that was tried. After a second refusal it is the diverted
  // record that was refused.
  void NoteRefused(const std::string& why);
  // The dead-letter topic takes no copy of the record.
  void NoteUncopied(int64_t offset) { uncopied_.insert(offset); }
  bool IsUncopied(int64_t offset) const { return uncopied_.contains(offset); }
  // How many were forgotten since the last call, for no room in the commit: a replay takes them for passed.
  int64_t TakeUnlisted() { return std::exchange(passed_over_unlisted_, 0); }

  // A batch that the client cannot read: attempts in a row, then the search for its end.
  int MeetUnreadable(int64_t offset);
  std::optional<UnreadableBatch>& unreadable() { return unreadable_; }
  void SearchEnd(int64_t base, std::string why);
  const std::string& unreadable_why() const { return unreadable_why_; }

  // For a snapshot that begins now, between transactions; its id is `taken`.
  SnapshotPoint PointOf(SnapshotId taken) const;
  OwnSnapshots& snapshots() { return snapshots_; }
  const std::optional<SnapshotId>& snapshot() const { return snapshots_.named; }
  // Keeps the snapshot: a commit with an unknown outcome may name it.
  void LeaveNamed();

  DuplicateWatch& duplicates() { return duplicates_; }
  const DuplicateWatch& duplicates() const { return duplicates_; }
  SharedIdWatch& shared_ids() { return shared_ids_; }
  // Times are Clock::Steady().
  void SetSharedId(const SharedIdWatch::Pair& pair, absl::Time now) { shared_id_ = {pair, now}; }
  // The last two, if they came within a quarter of an hour, as the alert's do.
  std::optional<SharedIdWatch::Pair> SharedId(absl::Time now) const {
    const bool is_recent = now - shared_id_.second <= absl::Minutes(15);
    return is_recent ? std::optional(shared_id_.first) : std::nullopt;
  }
  SchemaWait& schema_wait() { return schema_wait_; }  // of the record at `next`
  const SchemaWait& schema_wait() const { return schema_wait_; }
  Pace& pace() { return pace_; }
  const Pace& pace() const { return pace_; }
  bool paused() const { return paused_; }  // the client fetches nothing of it
  void SetPaused(bool paused) { paused_ = paused; }
  // Whether this is the first call.
  bool WarnOfMemory() { return !std::exchange(warned_of_memory_, true); }
  bool WarnOfLostIds() { return !std::exchange(warned_of_lost_ids_, true); }
  // Whether it was not yet as it is now.
  bool SetDuplicatesJumped(bool jumped) { return std::exchange(duplicates_jumped_, jumped) != jumped; }

  const PartitionStatus& status() const { return status_; }  // of the filter, last asked; no name: never
  // `next` and `committed` at that time: while they stay, the status stays.
  const std::pair<int64_t, int64_t>& status_at() const { return status_at_; }
  bool HasNewStatus() const { return status_.name.empty() || status_at_ != std::pair(next_, committed_); }
  void RenewStatus();

  // Without the state of the lane that had it, and of its client.
  void LeaveLane();

 private:
  friend class TaskPeer;  // sets what a test begins with

  const Undeliverable* FindUndeliverable(int64_t offset) const;
  std::vector<TotalKeys> KeysOfTotals() const;
  // Whether the filter has no id of a record that is not committed: where the log begins behind C it begins
  // there, too, and is empty.
  bool HoldsCommittedAlone() const;
  // After a restore: the filter knows all ids from the present stream time, or from an earlier one.
  void KnowsSinceStreamTime();

  TopicPartition id_ = {0, 0};
  const Flow* flow_ = nullptr;
  Phase phase_ = Phase::kRestoring;
  std::string problem_;
  std::string last_held_;  // the last problem of a kHeld, which is logged once
  std::string stop_before_next_;
  bool lacks_memory_ = false;

  std::unique_ptr<Partition> filter_;
  std::optional<Transaction> transaction_;
  std::optional<RestartPoints> points_;

  Origin origin_;
  std::string topic_id_;
  int64_t committed_ = 0;
  int64_t in_group_ = -1;
  int64_t filter_end_ = 0;
  int64_t next_ = 0;
  int64_t log_end_ = 0;
  int64_t end_of_log_ = 0;
  int64_t timed_records_ = 0;
  int64_t committed_timed_records_ = 0;  // at C
  LogMark mark_;
  LogMark committed_mark_;
  std::optional<LogMark> to_compare_;
  RestoreProgress restore_;
  absl::Time time_at_committed_ = absl::InfiniteFuture();
  absl::Time judged_by_ = absl::InfiniteFuture();
  int64_t restart_in_group_ = INT64_MAX;  // R of the last commit that is known
  absl::Time covered_since_ = absl::InfinitePast();
  // So many records with a time, and the filter's clock shows the time of records that it has all seen.
  int64_t clock_counts_from_ = 0;
  bool skips_to_filter_end_ = false;  // the record before it in the filter's log is not the one before F
  Growth growth_;
  int64_t unread_deleted_ = 0;

  OwnSnapshots snapshots_;
  PartitionStatus status_;
  std::pair<int64_t, int64_t> status_at_;
  std::vector<CounterSums> sums_;
  std::vector<TotalKeys> expected_totals_;
  RecordCounts open_counts_;
  RecordCounts counts_;

  std::map<int64_t, Undeliverable> undeliverable_;  // by offset; forgotten after the commit
  std::set<int64_t> uncopied_;
  std::set<int64_t> passed_over_;
  int64_t passed_over_unlisted_ = 0;
  int64_t unreadable_at_ = -1;
  int unreadable_times_ = 0;
  std::optional<UnreadableBatch> unreadable_;
  std::string unreadable_why_;

  DuplicateWatch duplicates_;
  SharedIdWatch shared_ids_;
  std::pair<SharedIdWatch::Pair, absl::Time> shared_id_ = {{}, absl::InfinitePast()};
  ExpiryWatch expiry_;
  SchemaWait schema_wait_;
  Pace pace_;
  bool warned_of_memory_ = false;
  bool warned_of_lost_ids_ = false;
  bool duplicates_jumped_ = false;  // as logged
  bool paused_ = false;
  bool was_aborted_ = false;
  bool awaits_room_ = false;
};

using Tasks = std::map<TopicPartition, std::unique_ptr<Task>>;

// Few partitions are each named in the log; of many a line says how many.
inline bool AreNamed(size_t partitions) { return partitions <= 16; }
inline bool AreNamed(const Tasks& tasks) { return AreNamed(tasks.size()); }

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

  Mutex mutex_;
  std::map<TopicPartition, Kept> partitions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_TASK_H_
