// What is behind Partition and Transaction.
#ifndef LETHE_SRC_STAGE_PARTITION_IMPL_H_
#define LETHE_SRC_STAGE_PARTITION_IMPL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lethe/stage.h"
#include "src/adapt/stream_time.h"
#include "src/snapshot/snapshot_format.h"
#include "src/stage/shard.h"

namespace lethe {

class Batch;

// Events are taken in chunks of bounded size. For each chunk the clock's lock is taken once, to give every
// event its stream time in order and to learn whether a transaction is open; then each shard's lock once.
// No two locks are ever held together. A transaction that begins between the two steps begins after the
// chunk: the chunk's times are in the clock that an abort goes back to.
//
// Invariant: pending sets are empty while no transaction is open.
struct Partition::Impl {
  // Shards are a power of two, at most 256.
  Impl(std::string name_of, uint64_t seed, double target, const StageOptions& options,
       std::vector<std::unique_ptr<Shard>> parts);
  // Waits for a piece of a snapshot that is just being copied.
  ~Impl();

  void Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  absl::Status Replay(absl::Span<const Event> events);
  void Observe(absl::Time time);
  absl::Status StartAt(absl::Time time);
  void LimitStreamTime(absl::Time latest);
  absl::Status SetTargetFpp(double target);
  absl::Status SetPassSuspects(bool pass_suspects);
  absl::Status Begin();
  void Commit() noexcept;
  void Abort() noexcept;

  PartitionStatus Status() const;
  absl::Time StreamTimeNow() const;

  // Fills in what a snapshot says first. FailedPrecondition if a transaction is open, Unimplemented.
  absl::StatusOr<SnapshotHeader> Header(const SnapshotOrigin& origin, const SnapshotPoint& point) const;

  absl::Status Save(const std::string& path, const SnapshotOrigin& origin, const SnapshotPoint& point) const;
  static absl::StatusOr<SnapshotReport> Inspect(const std::string& path);

  // FailedPrecondition if a transaction is open, in which `what` must not be. With the clock's lock held.
  absl::Status CheckNoTransaction(absl::string_view what) const;

  // Gives the batch its stream times; true if they are of a transaction.
  bool Stamp(Batch* batch);

  const std::string name;
  const uint64_t hash_seed;
  // What a snapshot must agree in.
  const Engine engine;
  const Adaptation adaptation;
  const absl::Duration horizon;
  const SecondOpinion second_opinion;
  const std::vector<std::unique_ptr<Shard>> shards;

  mutable std::mutex clock_mutex;  // guards what follows
  StreamTime clock;
  StreamTime clock_at_begin;  // of the open transaction
  double target_fpp;          // what a snapshot must agree in, too
  bool transaction_open = false;
  bool started = false;  // an event was seen, or the time set

  // What was judged since Begin() is not all pending.
  std::atomic<bool> lacks_pending = false;

  // How snapshots that are being taken find the shards, as long as those are there.
  struct Link {
    std::mutex mutex;
    const Impl* impl;  // guarded by mutex; null when it is gone
  };
  const std::shared_ptr<Link> link;
};

}  // namespace lethe

#endif  // LETHE_SRC_STAGE_PARTITION_IMPL_H_
