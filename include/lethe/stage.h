// The deduplication stage: what a program embeds.
//
//   auto stage = lethe::DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = 1e-6});
//   if (!stage.ok()) return stage.status();
//   auto orders = (*stage)->Open("orders-0");
//   if (*(*orders)->Judge(order.id, order.time) == lethe::Verdict::kUnique) Process(order);
//
// Where the result of processing is written with a transaction, the stage's memory must follow it, or a
// write that fails is lost when its retry looks like a duplicate. Judge inside a Transaction then:
//
//   absl::StatusOr<lethe::Transaction> transaction = (*orders)->Begin();
//   ... *transaction->Judge(...); write what is unique ...
//   if (transaction->status().ok() && database.Commit().ok()) transaction->Commit(); else
//   transaction->Abort();
//
// Where the system has no memory, what returns a status says ResourceExhausted, and Transaction::status()
// does; Judge outside of transactions, Replay, Commit and Abort need none that they cannot do without: a
// filter that finds none does as at the memory limit, and an audit halves its share. Only Partition::Status,
// which returns figures alone, throws std::bad_alloc then, and changes nothing.
//
// README.md beside this file is the tutorial, and states the guarantees.
#ifndef LETHE_STAGE_H_
#define LETHE_STAGE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/filter.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/snapshot.h"
#include "lethe/status.h"

namespace lethe {

class LiveSnapshot;
class Partition;
class Transaction;
struct RestoredPartition;

// Makes the filter of one shard.
using FilterFactory = std::function<absl::StatusOr<std::unique_ptr<Filter>>(const FilterOptions&)>;

// Makes partitions that share options and one memory limit. Thread-safe. Outlives its partitions.
class DedupStage {
 public:
  // InvalidArgument if the options cannot be met. A program that brings a filter of its own gives its
  // factory, which Open() calls once per shard; it takes its memory from FilterOptions::memory.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options,
                                                            FilterFactory new_filter = NewFilter);
  ~DedupStage();
  DedupStage(const DedupStage&) = delete;
  DedupStage& operator=(const DedupStage&) = delete;

  // A new partition with an empty filter, which judges its events apart from all others. The name is
  // for people ("orders-0"). Destroying the partition gives its memory back. ResourceExhausted if the
  // memory limit, or the system, leaves no room for the smallest filter. Thread-safe if the factory is.
  absl::StatusOr<std::unique_ptr<Partition>> Open(absl::string_view name);

  // A partition as Partition::Save has left it: it judges what comes as the saved one would have. Its ids are
  // hashed with the saved one's seed, whatever the stage's; its audit goes on with the smaller of both
  // shares.
  //   NotFound            there is no such file
  //   DataLoss            it is damaged or cut (where, is in the message), or no snapshot at all
  //   FailedPrecondition  it is of another origin, engine, horizon, number of shards or second opinion, or of
  //                       a target that SetTargetFpp could not lead from to the stage's, or has a format
  //                       newer than this
  //   ResourceExhausted   the memory limit, or the system, has no room for it
  //   Unimplemented       the stage's engine has no snapshots
  //   Cancelled           `go_on`, which is asked before each megabyte is read, has said no
  // After an error nothing is left behind, and the log is to be read as if there were no snapshot. Nothing
  // in a file, be it made to do harm, does more than that. Thread-safe as Open.
  absl::StatusOr<RestoredPartition> Restore(absl::string_view name, const std::string& path,
                                            const SnapshotOrigin& origin,
                                            const std::function<bool()>& go_on = nullptr);

  // Another StageOptions::memory_limit_bytes for all partitions at once. A higher one is there for whoever
  // grows next: engines of one size (kPublished, kBloom, kRecycled, kOpposite) take it for new partitions
  // only, and no filter grows beyond four times the limit under which it was made. A lower one takes back
  // what is free; filters that use less than that of it go on, and shrink when their load does.
  //   InvalidArgument     no partition would have room under it
  //   FailedPrecondition  more is used now; the message says what could be
  // One thread at a time, whatever others do.
  absl::Status SetMemoryLimit(int64_t bytes);

  // For whoever keeps partitions that nobody needs now: the bytes that the limit lacks yet for the largest
  // request that a filter, or a second opinion, has been refused since the last call; 0 if there was none.
  // They ask again by themselves when some more ids have come (a tenth of an interval's at most). Open() and
  // Restore() count, too. (An audit does not: it has made do with a smaller share for good.) Thread-safe.
  int64_t TakeMissingBytes();

  // Another StageOptions::target_fpp for the partitions that are opened from now on; those that are open are
  // told by Partition::SetTargetFpp. InvalidArgument if it is no target. FailedPrecondition, with the reason,
  // if open ones could not follow: their filters would have to be made anew from their log. Thread-safe.
  absl::Status SetTargetFpp(double target_fpp);

  // As it was made.
  const StageOptions& options() const { return options_; }
  const MemoryBudget& memory() const { return memory_; }

 private:
  DedupStage(const StageOptions& options, uint64_t hash_seed, FilterFactory new_filter);
  absl::StatusOr<std::unique_ptr<Partition>> Open(absl::string_view name, uint64_t hash_seed,
                                                  double target_fpp);
  absl::StatusOr<RestoredPartition> Read(absl::string_view name, const std::string& path,
                                         const SnapshotOrigin& origin, const std::function<bool()>& go_on);
  absl::Status SetLimits(int64_t bytes);

  const StageOptions options_;
  std::atomic<double> target_fpp_;
  const uint64_t hash_seed_;
  const FilterFactory new_filter_;
  // The parts of the limit are apart, so that none starves another.
  MemoryBudget memory_;
  MemoryBudget filter_memory_;
  MemoryBudget audit_memory_;
  MemoryBudget second_opinion_memory_;
};

// A stream of events in which ids are unique: one filter, in shards with a lock each, and one stream time.
//
// Stream time is the running maximum of the median of the last 101 event times, so that a minority of wild
// timestamps changes nothing. It starts when 101 were seen whose middle half lies within a 32nd of the
// horizon, at the latest when 303 were. A majority that is dated far ahead would stop time for good: give
// events whose time is far ahead of your clock the time InfinitePast(), which is none. An id that was passed
// at stream time s is a duplicate until stream time s + horizon. A duplicate does not renew its id's age.
//
// Thread safety: all methods may be called from several threads; the order in which two threads' events
// are judged is then up to them. Only one transaction can be open at a time: while one is, judging outside of
// it is refused with FailedPrecondition, and so is all else that says so.
class Partition {
 public:
  // No transaction may be open.
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // The hash of an id under the stage's seed.
  IdHash Hash(absl::string_view id) const;

  // Judges and remembers in one step, for callers that need no transaction. FailedPrecondition, and nothing
  // is judged or remembered, if one is open.
  absl::StatusOr<Verdict> Judge(absl::string_view id, absl::Time time);
  // The same for a batch: several times faster. Spans of equal size (else the shorter counts). Allocates
  // nothing. (Filter and audit grow with what they hold.)
  absl::Status Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);

  // Begins a transaction, once calls of other threads that no transaction may meet have returned.
  // FailedPrecondition if one is open.
  absl::StatusOr<Transaction> Begin();

  // Remembers events whose results are already out, without judging them: how a filter is rebuilt from a log.
  // Nobody knows any more which of an id's events was passed, so the id is remembered for the horizon from
  // the last of them on. An id that the filter already contains takes no more room for that. (The engine
  // `published` without kPaper, which has one size, takes it again in each interval; `sliced`, and
  // `published` with kPaper, forget such ids a horizon after their first event where memory is short.) An
  // event of an id that is not contained may be taken for a copy with the probability of a false positive; it
  // is then forgotten with the id for which it was taken. FailedPrecondition, and nothing is remembered, if a
  // transaction is open; none may begin meanwhile.
  absl::Status Replay(absl::Span<const Event> events);

  // An event without a usable id moves stream time all the same, and what the horizon has passed is
  // forgotten. FailedPrecondition if a transaction is open.
  absl::Status Observe(absl::Time time);

  // Moves stream time without an event: it is at least `stream_time` from now on, and what the horizon has
  // passed is forgotten. For a stream that is silent, whose memory nobody would take back otherwise. Events
  // of before that come later are judged at that time: copies that are older than the horizon by then may
  // pass. Filters give memory back step by step: call it now and then. FailedPrecondition if a transaction is
  // open.
  absl::Status AdvanceTo(absl::Time stream_time);

  // Where a rebuild starts in the middle of a log, with the stream time of that point: stream time is at
  // least that from now on. InfinitePast() says that it had none. FailedPrecondition after the first event.
  absl::Status StartAt(absl::Time stream_time);

  // Stream time goes no further than `latest` from now on, whatever the events say; it does not go back. For
  // a replay, which is to end at the stream time that the log's results were judged by. InfiniteFuture()
  // lifts the limit.
  void LimitStreamTime(absl::Time latest);

  // StageOptions::target_fpp and pass_suspects, from the next event on. FailedPrecondition, and nothing is
  // changed, if a transaction is open, or if the filter cannot follow the target (DedupStage::SetTargetFpp).
  // What the filter holds keeps its rate of false positives until it is forgotten: a lower target is kept
  // once the horizon has passed. What was a suspect and was not passed is a suspect again.
  absl::Status SetTargetFpp(double target_fpp);
  absl::Status SetPassSuspects(bool pass_suspects);

  // InfinitePast() until stream time has started to move.
  absl::Time stream_time() const;

  // Writes all that the partition remembers to a file that only its owner can read (it holds the seed of the
  // hash), by way of PATH.new. On an error, such as a full disk, what was at `path` stays; only if it cannot
  // be told that the new one would survive a power cut (its folder is not synced), that is there, and whole.
  // FailedPrecondition if a transaction is open. Unimplemented if the engine cannot
  // be saved.
  //
  // Takes each shard's lock in turn, for as long as it takes to write that shard: what is judged in it
  // meanwhile waits, about a second per GiB, and longer if the disk does not keep up. So the snapshot is
  // of one moment only if nothing is judged; else what is judged meanwhile must be replayed after a restore.
  absl::Status Save(const std::string& path, const SnapshotOrigin& origin, const SnapshotPoint& point) const;

  // Begins a snapshot that is written while events are judged, without holding them up. FailedPrecondition if
  // a transaction is open now; one may begin at once. Costs what it takes to copy the audit's ids, 32 bytes
  // for each. (A second opinion is copied by Write, a shard of it at a time, beside the memory limit.) Errors
  // else as Save.
  absl::StatusOr<std::unique_ptr<LiveSnapshot>> BeginSnapshot(const SnapshotOrigin& origin,
                                                              const SnapshotPoint& point) const;

  // Takes each shard's lock for a moment: every shard's figures are of one instant, not all together. Throws
  // std::bad_alloc if the system has no memory for them.
  PartitionStatus Status() const;

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

struct RestoredPartition {
  std::unique_ptr<Partition> partition;
  SnapshotPoint point;
};

// A snapshot that is being taken while its partition goes on. It holds all that was remembered when it was
// begun, and some of what came since: after a restore everything from its point's `offset` on is to be
// replayed, and it is of use only to who has come to `end_offset`.
//
// The partition may be destroyed meanwhile, which ends it. Thread safety: Write once, from any thread;
// NoteEnd from any.
class LiveSnapshot {
 public:
  ~LiveSnapshot();
  LiveSnapshot(const LiveSnapshot&) = delete;
  LiveSnapshot& operator=(const LiveSnapshot&) = delete;

  // The log has come to this offset, and the filter is about to know what lies before it. Say so before it
  // does.
  void NoteEnd(int64_t end_offset);

  // Writes the file as Partition::Save does. Holds a shard's lock while it copies 256 KiB, 23 us at the
  // median, again and again.
  //   Aborted    the filter has changed its shape in between (a refresh, or a change of size), or too many
  //              ids have moved within the second opinion between two copies: begin anew
  //   Cancelled  the partition is gone, or `go_on`, which is asked before each copy, has said no
  absl::Status Write(const std::string& path, const std::function<bool()>& go_on = nullptr);
  // The same to a file that is open for writing, empty, and stays the caller's. Is not synced.
  absl::Status Write(int descriptor, const std::function<bool()>& go_on = nullptr);

 private:
  friend class Partition;
  struct Impl;
  explicit LiveSnapshot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The events that were judged since Begin(). Until the commit the filter knows nothing of them: ids that
// were passed are in an exact pending set, so a second copy in the same transaction is a duplicate, and
// an abort forgets them all and sets stream time back. So events that are judged again after an abort get
// the same verdicts. The filter's time stands still too: what it forgets while the transaction is open, it
// forgets at the commit.
//
// What passes takes memory. Where the system has none, status() says so from then on, and what is judged may
// be passed and not remembered: no event is lost by that, but copies may pass. So ask before what was passed
// is made to stand, and abort; the partition is then as at Begin(), and may go on.
//
// Move-only; one that is destroyed open is aborted. Judge, Observe and Forget are safe from several
// threads; Commit and Abort must not run together with other calls of the same transaction. One that has
// ended, or was moved from, refuses with FailedPrecondition, and judges and remembers nothing.
class Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  // Aborts the transaction that is replaced.
  Transaction& operator=(Transaction&& other) noexcept;
  ~Transaction();

  // As those of Partition. Not once it has seen its largest transaction does a batch allocate.
  absl::StatusOr<Verdict> Judge(absl::string_view id, absl::Time time);
  absl::Status Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  // OK, or ResourceExhausted if not all that was passed since Begin() is remembered: abort.
  // FailedPrecondition if it has ended.
  absl::Status status() const;

  // As Partition::Observe, undone by an abort. The filter's time moves at the commit.
  absl::Status Observe(absl::Time time);

  // Takes back one `unique` verdict of this transaction, or that of a suspect that was passed: the event was
  // not carried out after all (it cannot be written, say), so that a later copy is judged anew. No effect on
  // an id that is not pending.
  void Forget(IdHash id);

  // The pending ids go into the filter, in the order in which they were judged (per shard), at the stream
  // times of their judgement. Cannot fail: what is to be remembered was pending, and no memory is taken for
  // it but what filter, second opinion and audit take by themselves. (What was passed and is not pending,
  // where status() is not OK, is not remembered.)
  void Commit();
  // The pending ids are forgotten, and stream time is where it was at Begin(). Cannot fail.
  void Abort();

  bool open() const { return partition_ != nullptr; }
  // Bytes that the pending ids need, at most: 80 each, and twice that for suspects that were passed. Not
  // taken from the memory limit; a caller who commits in time keeps it small.
  int64_t pending_bytes() const;

 private:
  friend class Partition;
  explicit Transaction(Partition* partition) : partition_(partition) {}
  absl::Status CheckOpen() const;
  Partition* partition_ = nullptr;
};

}  // namespace lethe

#endif  // LETHE_STAGE_H_
