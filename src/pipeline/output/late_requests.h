// Requests of a transactional producer that may reach the brokers after their client has given them up.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_LATE_REQUESTS_H_
#define LETHE_SRC_PIPELINE_OUTPUT_LATE_REQUESTS_H_

#include <atomic>

namespace lethe {

// Decides when a sink must leave its producer, and its worker the group's generation (rule 27).
//
// A client sends a request again if its connection was closed, or if it was not answered in time. The first
// copy may still lie in the network or in a broker's queue. Brokers apply a late copy to whatever transaction
// the same producer id and epoch have open then: a late commit commits half of it, a late abort drops half of
// it, late offsets set the group back. A new epoch is what makes brokers refuse it.
//
// Only a request without an answer counts. A broker that has answered is done with the request, whatever it
// answered, so an error that makes the client try again leaves no copy behind. And a connection that is
// closed while it carries no request, as brokers do to idle ones (connections.max.idle.ms), leaves none
// either, in a transaction as between two.
//
// Thread safety: the client's threads call OnUnanswered; the rest belongs to the sink's thread.
class LateRequests {
 public:
  enum class Kind {
    kOffsets,  // a TxnOffsetCommit
    kOther,    // another that belongs to a transaction: its records, its partitions, its end
  };

  // A request went out, and its answer will not come: the connection was closed, or the time is over.
  void OnUnanswered(Kind kind) {
    may_come_.store(true, std::memory_order_relaxed);
    if (kind == Kind::kOffsets) offsets_may_come_.store(true, std::memory_order_relaxed);
  }

  // Whether this producer must not begin another transaction. The client reports a lost request before it
  // sends it again, so this is known when the transaction has ended.
  bool NeedNewEpoch() const;
  // The next requests are of a new epoch.
  void OnNewEpoch() { may_come_.store(false, std::memory_order_relaxed); }

  // Whether this member of the group must not commit offsets again in its generation. Coordinators of Kafka
  // before 4.0 keep the offsets of an open transaction by producer id, without the epoch. They put late
  // offsets in the place of the good ones before they refuse them, and then have neither when the transaction
  // commits (GroupMetadata.prepareTxnOffsetCommit, failPendingTxnOffsetCommit). They compare member and
  // generation before that.
  bool NeedNewMember() const;
  void OnNewMember() { offsets_may_come_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> may_come_ = false;
  std::atomic<bool> offsets_may_come_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_LATE_REQUESTS_H_
