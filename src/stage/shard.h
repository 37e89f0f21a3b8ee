// A part of a partition: a filter, its audit, the ids that are pending on top of it, and their lock.
#ifndef LETHE_SRC_STAGE_SHARD_H_
#define LETHE_SRC_STAGE_SHARD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/filter.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/status.h"
#include "src/filter/engine_filter.h"
#include "src/filter/ordered_id_set.h"
#include "src/fpp/audit.h"
#include "src/stage/batch.h"
#include "src/sync/mutex.h"

namespace lethe {

class SnapshotReader;
class SnapshotWriter;

// The status of one shard; fields as in PartitionStatus.
struct ShardStatus {
  int64_t unique = 0;
  int64_t duplicates = 0;
  int64_t replayed = 0;
  int64_t pending = 0;
  FilterStatus filter;
  AuditStatus audit;
};

// How an event is judged that is not judged at its stream time (AheadIds).
struct OwnTime {
  int64_t time_ms = kNoStreamTime;             // filter and pending set are asked for then
  std::optional<bool> is_copy = std::nullopt;  // they need not be asked

  bool IsStreamTime(const TimedId& timed) const { return !is_copy && time_ms == timed.stream_time_ms; }
};

// Invariant: the filter holds ids of committed events only, and its time is not beyond the stream time of the
// last commit (or of the last event outside of a transaction); what the open transaction passed is in the
// pending set alone.
//
// Thread-safe: each method takes the lock once.
class Shard {
 public:
  Shard(std::unique_ptr<Filter> filter, const StageOptions& options, MemoryBudget* audit_memory, HashKey key);

  // Outside of a transaction: judges and remembers in one step.
  void Judge(const ShardEvents& events, absl::Span<Verdict> verdicts);
  // In a transaction: judges against filter and pending set, each at the event's time, and changes the latter
  // only. `start_ms` is the first value of stream time if that began in this transaction, else kNoStreamTime:
  // what came before counts as of then. False if the system has no memory to remember all that pass: then all
  // verdicts are kUnique, and any part of the events is pending.
  bool JudgePending(const ShardEvents& events, int64_t start_ms, absl::Span<Verdict> verdicts);
  // The same of one event, by its own time; `timed` has its stream time, with which it is remembered.
  [[gnu::cold]] Verdict JudgeOne(const TimedId& timed, const OwnTime& own, absl::string_view payload);
  [[gnu::cold]] bool JudgeOnePending(const TimedId& timed, const OwnTime& own, int64_t start_ms,
                                     absl::string_view payload, Verdict* verdict);
  // An id that has passed is remembered anew, and does not count again. False if the system has no memory.
  [[gnu::cold]] void Renew(const TimedId& timed);
  [[gnu::cold]] bool RenewPending(const TimedId& timed);
  // Remembers without judging.
  void Replay(const ShardEvents& events);
  // One event, and says what JudgeOne would.
  [[gnu::cold]] Verdict ReplayOne(const TimedId& timed, const OwnTime& own, absl::string_view payload);
  // Takes an id out of the pending set, if it is there.
  void Forget(IdHash id);

  // The pending ids go into the filter, which then moves to `stream_time_ms`; `start_ms` as in JudgePending.
  // Neither this nor Abort needs memory without which it would fail: filter and audit make do with theirs.
  void Commit(int64_t start_ms, int64_t stream_time_ms) noexcept;
  void Abort() noexcept;
  void AdvanceTo(int64_t stream_time_ms);

  // Its section of a snapshot (src/stage/snapshot_format.h), in parts, while events are judged: the present
  // state, with the filter's memory to be copied later. Copy, of a part of that memory, is Aborted once the
  // filter has changed its shape.
  struct Image {
    std::string pieces[2];  // all that comes before the memory
    FilterImage filter;     // without its state
    std::vector<Audit::Seen> audited;
  };
  absl::StatusOr<Image> BeginImage(int index) const;
  absl::Status Copy(const Image& image, absl::Span<const char> memory, char* to) const;

  // Of a new shard only.
  absl::Status Restore(int index, SnapshotReader* reader);

  int64_t pending_bytes() const;
  // The rate of the audit and its interval are left to MergedShards. The estimated rate is of a sample of
  // `most_lines` at most, taken when the filter has begun an epoch or become twice or half as large; since
  // then it has changed as the modelled rate has. A filter that fits into the sample is looked at after each
  // event.
  void GetStatus(int64_t most_lines, bool with_generations, ShardStatus* status) const;

 private:
  template <typename Self, typename Fields>
  static void TransferCounts(Self& self, Fields& fields) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self.mutex_);
  void JudgeInTransaction(const ShardEvents& events, int64_t start_ms, absl::Span<Verdict> verdicts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // TestAndInsert of the filter, event by event: a copy is inserted, too, before the next is judged.
  void TestAndRenew(const ShardEvents& events, absl::Span<Verdict> verdicts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsContainedAt(const TimedId& asked) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the pending set has the id from within the horizon before.
  bool IsPendingAt(const TimedId& asked, int64_t start_ms) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the pending set has the id from within the horizon. If it had not, or renews, it has it at its
  // new time afterwards: a transaction may span any stream time.
  bool TestAndSetPending(const TimedId& timed, int64_t start_ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the filter may have the pending id.
  bool IsAgain(const TimedId& timed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTransaction() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Holds the lock. It is held for some microseconds, while sleeping and waking take a hundred, so a thread
  // spins for a while before it sleeps.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(const Shard* shard) ABSL_EXCLUSIVE_LOCK_FUNCTION(shard->mutex_) : mutex_(shard->mutex_) {
      if (mutex_.try_lock()) return;
      if (!TryForAWhile()) mutex_.lock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

   private:
    static constexpr int kTries = 1000;

    bool TryForAWhile() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, mutex_) {
      for (int i = 0; i < kTries; ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (mutex_.try_lock()) return true;
      }
      return false;
    }

    Mutex& mutex_;
  };

  // What GetStatus() found last in the filter's lines, and of which filter.
  struct Seen {
    std::unique_ptr<EngineFilter::Sample> sample;
    int64_t epoch = 0;
    int level = 0;
    int64_t ids = 0;
    double modelled = 0;
  };
  void DescribeSeen(FilterStatus* filter) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(status_mutex_);
  mutable Mutex status_mutex_;  // one GetStatus() at a time
  mutable Seen seen_ ABSL_GUARDED_BY(status_mutex_);
  mutable Mutex mutex_;
  const std::unique_ptr<Filter> filter_ ABSL_PT_GUARDED_BY(mutex_);
  EngineFilter* const engine_filter_
      ABSL_PT_GUARDED_BY(mutex_);  // filter_, or null if it is the program's own
  const bool renews_;              // StageOptions::renew
  const int64_t horizon_ms_;
  Audit audit_ ABSL_GUARDED_BY(mutex_);  // of filter_
  OrderedIdSet<TimedId> pending_ ABSL_GUARDED_BY(mutex_);
  OrderedIdSet<TimedId> again_
      ABSL_GUARDED_BY(mutex_);  // of the pending ones, those that the filter may have
  int64_t unique_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t duplicates_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t replayed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pending_unique_ ABSL_GUARDED_BY(mutex_) = 0;  // judged in the open transaction
  int64_t pending_duplicates_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The status of a partition, from those of its shards. Sizes and counts are sums. Rates (FPP) are means,
// since events choose shards at random. The window is the shortest, since it is a promise; N and t are the
// largest; k and the target are the same in all. Steps are the latest of all shards, in the order of stream
// time. Generations are those of a single shard.
class MergedShards {
 public:
  explicit MergedShards(size_t shards);
  void Add(const ShardStatus& shard);
  // After all.
  ShardStatus Take();

 private:
  const size_t shards_;
  ShardStatus all_;
  double variance_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_SHARD_H_
