// A batch of events that is judged, and then committed or aborted together with the program's own writes.
//
//   auto transaction = orders.Begin();
//   if (!transaction.ok()) return transaction.status();
//   const auto verdict = transaction->Judge(order.id, order.time);
//   if (!verdict.ok()) return verdict.status();  // the end of the scope aborts the transaction
//   if (*verdict == lethe::Verdict::kUnique) database.Write(order);
//   if (transaction->status().ok() && database.Commit()) {
//     transaction->Commit();
//   } else {
//     transaction->Abort();
//   }
//
// Without it, a write that fails is lost: its retry would look like a duplicate.
#ifndef LETHE_TRANSACTION_H_
#define LETHE_TRANSACTION_H_

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "lethe/export.h"

namespace lethe {

class Partition;

// The events that were judged since Partition::Begin(). Passed ids are in an exact pending set until the
// commit, so a second copy within the horizon is a duplicate, in the same transaction, too. The filter
// changes at the commit only, but each event is judged at its own stream time, as if the filter were there.
// So verdicts do not depend on where transactions end, and one may span any time. An abort forgets the
// pending ids and restores stream time, so events that are judged again get the same verdicts.
//
// Passed ids take memory. After an allocation failure status() returns an error, and events may pass without
// being remembered: no event is lost, but copies may pass. So check status() before the program's own commit,
// and abort on an error; the partition is then as at Begin().
//
// Move-only; an open transaction that is destroyed is aborted. Thread safety: Judge, Observe and Forget may
// be called from several threads; Commit and Abort must not run together with other calls. A transaction that
// has ended, or was moved from, rejects calls with FailedPrecondition and changes nothing.
class LETHE_EXPORT Transaction {
 public:
  Transaction(Transaction&& other) noexcept;
  // Aborts the transaction that is replaced.
  Transaction& operator=(Transaction&& other) noexcept;
  ~Transaction();

  // As those of Partition. A batch does not allocate once the largest transaction was seen.
  absl::StatusOr<Verdict> Judge(absl::string_view id, absl::Time time);
  template <typename Text, typename = IfStandardText<Text>>
  absl::StatusOr<Verdict> Judge(Text id, absl::Time time) {
    return Judge(absl::string_view(id.data(), id.size()), time);
  }
  absl::StatusOr<Verdict> Judge(std::string_view id, std::chrono::system_clock::time_point time) {
    return Judge(absl::string_view(id.data(), id.size()), absl::FromChrono(time));
  }
  absl::Status Judge(absl::Span<const Event> events, absl::Span<Verdict> verdicts);
  // OK, or ResourceExhausted if a passed event is not remembered: abort. FailedPrecondition if it has ended.
  absl::Status status() const;

  // As Partition::Observe; an abort undoes it.
  absl::Status Observe(absl::Time time);

  // Takes back one `unique` verdict of this transaction, because the event was not carried out (it cannot be
  // written, say). A later copy is judged like the first; a copy that this transaction has already dropped is
  // lost with it. No effect on an id that is not pending. InvalidArgument if the hash is not this
  // partition's.
  absl::Status Forget(HashedId id);

  // Puts the pending ids into the filter, per shard in the order in which they were judged, at the stream
  // times of their judgement. Cannot fail. (If status() is not OK, some passed ids are not pending and are
  // not remembered.)
  void Commit();
  // Forgets the pending ids and restores the stream time of Begin(). Cannot fail.
  void Abort();

  bool open() const { return partition_ != nullptr; }
  // The memory of the pending ids, at most: 80 bytes each. It is not taken from the memory limit; commit in
  // time to keep it small.
  int64_t pending_bytes() const;

 private:
  friend class Partition;
  explicit Transaction(Partition* partition) : partition_(partition) {}
  absl::Status CheckOpen() const;
  Partition* partition_ = nullptr;
};

}  // namespace lethe

#endif  // LETHE_TRANSACTION_H_
