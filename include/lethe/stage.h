// The deduplication stage: what a program embeds.
//
//   auto stage = lethe::DedupStage::Create({.horizon = absl::Hours(24), .target_fpp = 1e-6});
//   if (!stage.ok()) return stage.status();
//   auto orders = (*stage)->Open("orders-0");
//   if ((*orders)->Judge(order.id, order.time) == lethe::Verdict::kUnique) Process(order);
//
// Where the result of processing is written with a transaction, the stage's memory must follow it, or a
// write that fails is lost when its retry looks like a duplicate. Judge inside a Transaction then:
//
//   lethe::Transaction transaction = (*orders)->Begin();
//   ... transaction.Judge(...); write what is unique ...
//   if (database.Commit().ok()) transaction.Commit(); else transaction.Abort();
#ifndef LETHE_STAGE_H_
#define LETHE_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/memory_budget.h"
#include "lethe/options.h"
#include "lethe/status.h"

namespace lethe {

class Partition;
class Transaction;

// Makes partitions that share options and one memory limit. Thread-safe. Outlives its partitions.
class DedupStage {
 public:
  // InvalidArgument if the options cannot be met.
  static absl::StatusOr<std::unique_ptr<DedupStage>> Create(const StageOptions& options);
  ~DedupStage();
  DedupStage(const DedupStage&) = delete;
  DedupStage& operator=(const DedupStage&) = delete;

  // A new partition with an empty filter, which judges its events apart from all others. The name is
  // for people ("orders-0"). Destroying the partition gives its memory back. ResourceExhausted if the
  // memory limit leaves no room for the smallest filter.
  absl::StatusOr<std::unique_ptr<Partition>> Open(absl::string_view name);

  const StageOptions& options() const { return options_; }
  const MemoryBudget& memory() const { return memory_; }

 private:
  explicit DedupStage(const StageOptions& options);

  const StageOptions options_;
  const uint64_t hash_seed_;
  MemoryBudget memory_;
};

// A stream of events in which ids are unique: one filter, in shards with a lock each, and one stream time.
//
// Stream time is the running maximum of the median of the last 101 event times; it starts to move when
// 101 were seen, so that a minority of wild timestamps changes nothing. An id that was passed at stream
// time s is a duplicate until stream time s + horizon.
//
// Thread safety: all methods may be called from several threads; the order in which two threads' events
// are judged is then up to them. Only one transaction can be open at a time.
class Partition {
 public:
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  IdHash Hash(absl::string_view id) const;

  // Judges and remembers in one step, for callers that need no transaction. Must not be called while a
  // transaction is open.
  Verdict Judge(absl::string_view id, absl::Time time);
  // The same for a batch: several times faster. Spans of equal size. Does not allocate once it has seen
  // its largest batch.
  void Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);

  // Begins a transaction. It must end before the next begins, and before the partition is destroyed.
  Transaction Begin();

  // Remembers events without judging them, whatever the filter says of them: how a filter is rebuilt
  // from a log whose results are already out. No transaction may be open.
  void Replay(absl::Span<const Event> events);

  // An event without a usable id moves stream time all the same. Not while a transaction is open: use
  // the transaction's then.
  void Observe(absl::Time time);

  // Where a rebuild starts in the middle of a log, with the stream time of that point. Only before the
  // first event.
  void StartAt(absl::Time stream_time);

  // InfinitePast() until stream time has started to move.
  absl::Time stream_time() const;

  PartitionStatus Status() const;

 private:
  friend class DedupStage;
  friend class Transaction;
  struct Impl;
  explicit Partition(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The events that were judged since Begin(). Until the commit the filter knows nothing of them: ids that
// were passed are in an exact pending set, so a second copy in the same transaction is a duplicate, and
// an abort forgets them all and sets stream time back. Move-only; one that is destroyed open is aborted.
// Judge is safe from several threads; Commit and Abort must not run together with anything else.
class Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&& other) noexcept;
  ~Transaction();

  Verdict Judge(absl::string_view id, absl::Time time);
  void Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  // As Partition::Observe, undone by an abort.
  void Observe(absl::Time time);

  // Takes back one `unique` verdict of this transaction: the event was not carried out after all (it
  // cannot be written, say), so that a later copy is judged anew.
  void Forget(IdHash id);

  // The pending ids go into the filter, in the order in which they were judged.
  void Commit();
  // The pending ids are forgotten, and stream time is where it was at Begin().
  void Abort();

  bool open() const { return partition_ != nullptr; }
  // Bytes held by the pending set.
  int64_t pending_bytes() const;

 private:
  friend class Partition;
  explicit Transaction(Partition* partition) : partition_(partition) {}
  Partition* partition_ = nullptr;
};

}  // namespace lethe

#endif  // LETHE_STAGE_H_
