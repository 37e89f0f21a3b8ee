// The implementation of Partition and Transaction.
#ifndef LETHE_SRC_STAGE_PARTITION_IMPL_H_
#define LETHE_SRC_STAGE_PARTITION_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "src/stage/ahead_ids.h"
#include "src/stage/partition_key.h"
#include "src/stage/shard.h"
#include "src/stage/snapshot_format.h"
#include "src/stage/stream_time.h"
#include "src/sync/mutex.h"

namespace lethe {

class Batch;

inline int64_t ToMs(absl::Time time) {
  return time == absl::InfinitePast() ? kNoStreamTime : absl::ToUnixMillis(time);
}

// Events are taken in chunks of bounded size. For each chunk the clock's lock is taken once, to give every
// event its stream time in order and to learn whether a transaction is open; then each shard's lock once. A
// shard's lock may be taken with the clock's held, and no others together.
//
// A call outside of transactions counts itself in `outside` and then checks whether one is open;
// Begin() opens one and then waits until the count is 0. So neither runs while the other does, and neither
// takes a lock for it.
//
// Invariant: pending sets are empty while no transaction is open.
struct __attribute__((visibility("hidden"))) Partition::Impl {
  // Shards are a power of two, at most 256.
  Impl(std::string name_of, const PartitionKey& own_key, const StageOptions& options,
       std::vector<std::unique_ptr<Shard>> parts);
  // Waits until the present piece of a snapshot is copied.
  ~Impl();

  absl::Status Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  absl::Status JudgeInTransaction(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  absl::Status Replay(absl::Span<const Event> events);
  absl::Status Observe(absl::Time time);
  void ObserveInTransaction(absl::Time time);
  void Forget(IdHash id);
  absl::Status AdvanceTo(absl::Time time);
  absl::Status StartAt(absl::Time time);
  void LimitStreamTime(absl::Time latest);
  absl::Status Begin();
  void Commit() noexcept;
  void Abort() noexcept;

  PartitionStatus Status() const;
  absl::Time StreamTimeNow() const;

  // Makes a snapshot's header. Outside of transactions only.
  SnapshotHeader Header(const SnapshotOrigin& origin, const SnapshotPoint& point) const;

  // No transaction begins while it exists. FailedPrecondition, which names `what`, if one is open.
  class Outside {
   public:
    explicit Outside(const Impl* impl) : impl_(impl) {}
    Outside(Outside&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
    Outside& operator=(Outside&&) = delete;
    ~Outside() {
      if (impl_ != nullptr && impl_->outside.fetch_sub(1) == 1) impl_->outside.notify_all();
    }

   private:
    const Impl* impl_;
  };
  absl::StatusOr<Outside> EnterOutside(absl::string_view what) const;

  // InvalidArgument, which names the first, if one was not hashed under this partition's key.
  absl::Status CheckHashes(absl::Span<const Event> events) const;
  absl::Status ForeignHash(absl::Span<const Event> events) const;
  // What is done with events that have their stream times. (Templates of it would make a program larger that
  // links this.)
  class Taker {
   public:
    // Stream time has begun with this value.
    virtual void Start(int64_t began_ms) = 0;
    // From the first-th event on; `began_ms` is start_ms.
    virtual void Many(size_t first, Batch& batch, int64_t began_ms) = 0;
    // Whether the i-th event passes; in a replay, where any may have, whether it would.
    virtual bool One(size_t i, const TimedId& timed, const OwnTime& own, int64_t began_ms) = 0;
    // An id of before goes into the filter at this time.
    virtual void Again(const TimedId& timed) = 0;
    // Ids of records that do not pass are remembered, too.
    const bool remembers_copies;

   protected:
    explicit Taker(bool remembers) : remembers_copies(remembers) {}
    ~Taker() = default;
  };
  // Gives events their stream times, in order. Those that are ahead of it, or whose id is in `ahead`, are
  // taken one by one, with the clock's lock held; the others together.
  void Take(absl::Span<const Event> events, Taker& taker);
  // Events of Take() from the first-th on, at most Batch::kCapacity.
  void TakeChunk(absl::Span<const Event> events, size_t first, Taker& taker);
  void TakeOneByOne(absl::Span<const Event> events, size_t first, bool begins, Batch& batch, Taker& taker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(clock_mutex);
  void ReadLast(absl::Span<const Event> events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(clock_mutex);
  // Outside of a transaction: when stream time begins, all filters learn it at once, also those of shards
  // whose next event comes later.
  void StartOutside(int64_t began_ms);
  Shard& ShardOf(IdHash id) const;
  // The filters' time follows the clock's, which is `now_ms`.
  void AdvanceShards(int64_t now_ms);

  const std::string name;
  const PartitionKey key;
  const uint32_t key_check;  // HashedId::key_check
  // A restored snapshot must have the same.
  const Engine engine;
  const absl::Duration horizon;
  const int64_t horizon_ms;
  const bool renew;
  const double target_fpp;
  const std::vector<std::unique_ptr<Shard>> shards;

  mutable Mutex clock_mutex;
  StreamTime clock ABSL_GUARDED_BY(clock_mutex);
  StreamTime clock_at_begin ABSL_GUARDED_BY(clock_mutex);  // of the open transaction
  AheadIds ahead ABSL_GUARDED_BY(clock_mutex);
  AheadIds ahead_at_begin ABSL_GUARDED_BY(clock_mutex);
  int64_t start_ms ABSL_GUARDED_BY(clock_mutex) =
      kNoStreamTime;  // its first value, if it began in the open transaction
  int64_t advanced_ms ABSL_GUARDED_BY(clock_mutex) =
      kNoStreamTime;                                           // to which Observe() has moved the filters
  bool started ABSL_GUARDED_BY(clock_mutex) = false;           // an event was seen, or the time set
  bool started_at_begin ABSL_GUARDED_BY(clock_mutex) = false;  // of the open transaction

  mutable std::atomic<int> outside = 0;  // calls during which no transaction may begin
  std::atomic<bool> transaction_open = false;

  // An event that passed since Begin() is not pending, because memory was lacking.
  std::atomic<bool> lacks_pending = false;

  // By this a snapshot that is being taken finds the shards, while they exist.
  struct Link {
    Mutex mutex;
    const Impl* impl ABSL_GUARDED_BY(mutex);  // null when it is gone
  };
  const std::shared_ptr<Link> link;
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_PARTITION_IMPL_H_
