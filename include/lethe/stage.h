// The deduplication stage: what a program embeds.
//
//   auto stage = lethe::DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = 1e-6});
//   if (!stage.ok()) return stage.status();
//   auto orders = (*stage)->Open("orders-0");
//   if (!orders.ok()) return orders.status();
//   for (const Order& order : incoming) {
//     const auto verdict = (*orders)->Judge(order.id, order.time);
//     if (!verdict.ok()) return verdict.status();
//     if (*verdict == lethe::Verdict::kUnique) Process(order);
//   }
//
// If the results are written in a transaction, judge inside a Transaction (transaction.h).
//
// Errors: on an allocation failure, methods that return a status return ResourceExhausted. Judge outside of a
// transaction, Replay, Commit and Abort do not fail for it: a filter treats it like an exhausted memory
// limit, and an audit halves its share. Only Partition::Status throws std::bad_alloc, and changes nothing.
//
// README.md in this folder is the tutorial, and states the guarantees. snapshot.h has what the snapshot
// methods take and return, filter.h what a filter of your own needs.
#ifndef LETHE_STAGE_H_
#define LETHE_STAGE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/export.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/status.h"
#include "lethe/transaction.h"

namespace lethe {

class Filter;
class LiveSnapshot;
class Partition;
struct FilterOptions;
struct PartitionKey;  // src/stage/partition_key.h
struct RestoredPartition;
struct SnapshotOrigin;
struct SnapshotPoint;
struct SnapshotReport;

// Makes the filter of one shard.
using FilterFactory = std::function<absl::StatusOr<std::unique_ptr<Filter>>(const FilterOptions&)>;

// Makes partitions that share options and one memory limit. Thread-safe. Outlives its partitions.
class LETHE_EXPORT DedupStage {
 public:
  // InvalidArgument if the options cannot be met.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options);
  ~DedupStage();
  DedupStage(const DedupStage&) = delete;
  DedupStage& operator=(const DedupStage&) = delete;

  // A new partition with an empty filter; partitions do not share ids. The name is for people ("orders-0").
  // Destroying the partition returns its memory to the limit. ResourceExhausted if the memory limit, or the
  // system, has no room for the smallest filter. Thread-safe if the factory is.
  absl::StatusOr<std::unique_ptr<Partition>> Open(absl::string_view name);

  // The same with the memory limit of another stage, which both share; that of `options` does not count.
  // Each takes what it needs. When memory is short, who needs less than an even share has it, and the others
  // divide the rest: they shorten their windows.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options,
                                                            const DedupStage& memory_of);

  // The options given to Create.
  const StageOptions& options() const { return options_; }
  // The limit, and what all who share it use.
  const MemoryBudget& memory() const;

  // ---- Operations ----

  // The same with a filter of the program's own (filter.h). Open() calls the factory once for each shard; the
  // filter takes its memory from FilterOptions::memory.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options,
                                                            FilterFactory new_filter);
  // The same with the memory of another stage, as above.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options,
                                                            FilterFactory new_filter,
                                                            const DedupStage& memory_of);

  // Opens a partition as Partition::Save left it: it judges later events as the saved one would have. It
  // keeps the saved key of the hash. Its audit continues with the smaller of both shares.
  //   NotFound            there is no such file
  //   DataLoss            the file is damaged or cut (the message says where), or is not a snapshot
  //   FailedPrecondition  origin, engine, horizon, target, number of shards or secret differ; or the
  //                       format is newer than this library
  //   ResourceExhausted   the memory limit, or the system, has no room for it
  //   Unimplemented       the stage's engine has no snapshots
  //   Cancelled           `go_on`, which is called before each megabyte is read, returned false
  // After an error nothing remains; replay the log as if there were no snapshot. A malicious file cannot do
  // more harm than that. Thread-safe like Open.
  absl::StatusOr<RestoredPartition> Restore(absl::string_view name, const std::string& path,
                                            const SnapshotOrigin& origin,
                                            const std::function<bool()>& go_on = nullptr);

  // Changes StageOptions::memory_limit_bytes for all partitions at once. Filters use a higher limit when they
  // grow next. A lower limit takes free memory; filters shrink with their load.
  //   InvalidArgument     no partition would have room under the limit
  //   FailedPrecondition  more is used now; the message names the nearest possible limit
  // One thread at a time; other methods may run meanwhile.
  absl::Status SetMemoryLimit(int64_t bytes);

 private:
  friend int64_t TakeMissingBytes(DedupStage& stage);  // src/stage/missing_bytes.h
  friend absl::StatusOr<SnapshotReport> InspectSnapshot(const std::string& path);
  struct Memory;
  DedupStage(const StageOptions& options, FilterFactory new_filter, std::shared_ptr<Memory> memory);
  static absl::StatusOr<std::unique_ptr<DedupStage>> Make(const StageOptions& options,
                                                          FilterFactory new_filter,
                                                          std::shared_ptr<Memory> memory);
  absl::StatusOr<std::unique_ptr<Partition>> Open(absl::string_view name, const PartitionKey& key);
  // With `to_inspect` under any secret: ids are then not found.
  absl::StatusOr<RestoredPartition> Read(absl::string_view name, const std::string& path,
                                         const SnapshotOrigin& origin, const std::function<bool()>& go_on,
                                         bool to_inspect = false);
  absl::Status SetLimits(int64_t bytes);

  const StageOptions options_;
  const FilterFactory new_filter_;  // null for the library's engines
  const std::shared_ptr<Memory> memory_;
  MemoryBudget filters_memory_;
};

// A stream of events in which ids are unique: one filter, in shards with a lock each, and one stream time.
//
// Stream time is the running maximum of the median of the last 101 event times, so a minority of wild
// timestamps changes nothing. It starts when 101 times were seen whose middle half lies within a 32nd of the
// horizon, at the latest when 303 were. A majority dated far ahead would have all ids forgotten, and stop
// time for good: give such events the time InfinitePast(), which does not count, or call LimitStreamTime()
// with a little over the present before each batch. An id that passed at stream time s is a duplicate until
// stream time s + horizon. Stream time lags 50 events behind: one that is further ahead of it than a
// sixteenth of the horizon, as all are in a quiet stream, is judged by its own time instead, if the last 21
// are sparse, too. A duplicate does not renew its id's age, but with StageOptions::renew.
//
// Thread safety: all methods may be called from several threads; the events of two threads are then judged in
// any order. Only one transaction can be open at a time. While one is, judging outside of it is rejected with
// FailedPrecondition, and so are the other methods that say so.
class LETHE_EXPORT Partition {
 public:
  // No transaction may be open.
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // The hash of an id under this partition's key. No other partition may be given it. Events with another's
  // hash, or none, are InvalidArgument, and nothing changes.
  HashedId Hash(absl::string_view id) const;
  template <typename Text, typename = IfStandardText<Text>>
  HashedId Hash(Text id) const {
    return Hash(absl::string_view(id.data(), id.size()));
  }

  // Judges and remembers in one step, for callers that need no transaction. FailedPrecondition, and nothing
  // changes, if one is open.
  absl::StatusOr<Verdict> Judge(absl::string_view id, absl::Time time);
  template <typename Text, typename = IfStandardText<Text>>
  absl::StatusOr<Verdict> Judge(Text id, absl::Time time) {
    return Judge(absl::string_view(id.data(), id.size()), time);
  }
  absl::StatusOr<Verdict> Judge(std::string_view id, std::chrono::system_clock::time_point time) {
    return Judge(absl::string_view(id.data(), id.size()), absl::FromChrono(time));
  }
  // The same for a batch: several times faster. Spans of equal size (else the shorter counts). The call
  // itself does not allocate; filter and audit allocate when they grow.
  absl::Status Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);

  // Begins a transaction after calls of other threads have returned. FailedPrecondition if one is open.
  absl::StatusOr<Transaction> Begin();

  // Remembers events whose results are already out, without judging them: rebuilds a filter from a log. A
  // replay cannot know which of an id's events passed, so it remembers the id for the horizon from its last
  // event on; a copy takes no more room. With the probability of a false positive, a new id is taken for
  // another one and is forgotten with it. FailedPrecondition, and nothing changes, if a transaction is open;
  // none may begin meanwhile.
  absl::Status Replay(absl::Span<const Event> events);

  // Moves stream time by an event without a usable id; expired ids are forgotten. FailedPrecondition if a
  // transaction is open.
  absl::Status Observe(absl::Time time);

  // Moves stream time without an event, to `stream_time` at least; expired ids are forgotten. For a silent
  // stream, which would keep its memory otherwise. Older events that come later are judged at that time, so
  // copies that are older than the horizon by then may pass. Filters return memory step by step: call it
  // regularly. FailedPrecondition if a transaction is open.
  absl::Status AdvanceTo(absl::Time stream_time);

  // Begins a rebuild in the middle of a log, with the stream time of that point: stream time is at least that
  // from now on. InfinitePast() if the log had none there. FailedPrecondition after the first event, or if a
  // transaction is open.
  absl::Status StartAt(absl::Time stream_time);

  // InfinitePast() until stream time has started to move.
  absl::Time stream_time() const;

  // Takes each shard's lock for a moment: the figures of a shard are of one instant, those of all shards are
  // not. Throws std::bad_alloc on an allocation failure.
  PartitionStatus Status() const;

  // ---- Operations ----

  // Stream time goes no further than `latest` from now on; it does not go back. For a replay, which must end
  // at the stream time by which the log's results were judged, and against clocks that are far ahead.
  // InfiniteFuture() lifts the limit.
  void LimitStreamTime(absl::Time latest);

  // Writes the partition's memory to a file, first to PATH.new. Only the file's owner can read it, because
  // the key of the hash follows from it and StageOptions::snapshot_secret. After an error, such as a full
  // disk, the old file at `path` remains; if only the sync of its folder failed, the new file is there and
  // complete. FailedPrecondition if a transaction is open. Unimplemented if the engine has no snapshots.
  //
  // No transaction begins meanwhile. Events that are judged outside of one go on, and must be replayed after
  // a restore; Aborted if they change the filter's shape (a refresh, or a change of size) again and again.
  absl::Status Save(const std::string& path, const SnapshotOrigin& origin, const SnapshotPoint& point) const;

  // Begins a snapshot that LiveSnapshot::Write writes while events are judged. FailedPrecondition if a
  // transaction is open now; one may begin at once. Copies the audit's ids, 32 bytes each. Other errors as of
  // Save.
  absl::StatusOr<std::unique_ptr<LiveSnapshot>> BeginSnapshot(const SnapshotOrigin& origin,
                                                              const SnapshotPoint& point) const;

 private:
  friend class DedupStage;
  friend class LiveSnapshot;
  friend class Transaction;
  friend absl::StatusOr<SnapshotReport> InspectSnapshot(const std::string& path);
  struct Impl;
  explicit Partition(std::unique_ptr<Impl> impl);
  absl::StatusOr<std::unique_ptr<LiveSnapshot>> Describe(const SnapshotOrigin& origin,
                                                         const SnapshotPoint& point) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lethe

#endif  // LETHE_STAGE_H_
