// Which elements does the other side lack? Two programs, each with a set of its own, find out what either has
// and the other has not, in bytes that follow the difference more than the sets.
// include/lethe/README.md has an example.
#ifndef LETHE_RECONCILE_H_
#define LETHE_RECONCILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lethe/export.h"

namespace lethe {

// A stream of bytes to the peer and back: a pipe, a socket, the standard input and output of a command.
class LETHE_EXPORT PeerChannel {
 public:
  virtual ~PeerChannel() = default;
  virtual absl::Status Write(absl::string_view bytes) = 0;
  // Exactly `size` bytes. Unavailable if the peer has gone, DeadlineExceeded if it is silent for too long.
  virtual absl::Status Read(char* to, size_t size) = 0;
};

enum class ReconcileMethod {
  kAuto,         // per round, the one that costs fewer bytes
  kFilter,       // Distributed Bloom Filters alone (lethe/distributed_bloom_filter.h)
  kLookupTable,  // invertible Bloom lookup tables alone
};

struct ReconcileOptions {
  // Exactly one of the two peers does; it decides how they go on.
  bool initiates = false;
  // What is compared and by which rule ids are made. Both peers must say the same.
  std::string subject;
  // No message of the peer's may be larger, whatever it announces.
  int64_t largest_message_bytes = int64_t{256} << 20;
};

struct Difference {
  std::vector<uint64_t> only_here;  // ascending
  uint64_t only_there = 0;
  // What was sent and received for it, in bytes.
  uint64_t bytes = 0;
  int filter_rounds = 0;
  int table_rounds = 0;
  // Computed, for comparison: what this difference costs with one method alone, and what it costs to send
  // every key of one side.
  uint64_t bytes_by_filters = 0;
  uint64_t bytes_by_tables = 0;
  uint64_t bytes_of_all_keys = 0;
};

// One side of a conversation between two peers.
//
// How Compare() goes: the peer that was called sends, for each of up to 4,096 ranges of the keys, their
// number and the sum of a hash of each. Ranges whose sums agree are done. In the others each side finds keys
// that the other surely lacks: where the difference is small, by an invertible Bloom lookup table; where it
// is large, by Distributed Bloom Filters whose mapping is new in each round, since a filter hides some
// missing keys, but no other missing ones than chance says. Known differences are left out of the sums, and
// rounds follow until all sums agree. So the result is wrong only where two sums of 64 bits agree by chance.
//
// A peer that lies can make the result wrong, since nobody else knows its set. It cannot make this side use
// more memory than `largest_message_bytes` and the keys take, nor go on for ever.
//
// Thread safety: none.
class LETHE_EXPORT Reconciliation {
 public:
  // Greets the peer. FailedPrecondition: it is of another version, compares something else, or is no lethe;
  // the message says which.
  static absl::StatusOr<Reconciliation> Begin(PeerChannel& channel, ReconcileOptions options);

  // 64 bits of a hash of the id, seeded for this conversation by both peers, so that nobody who chooses ids
  // can aim two at one key.
  uint64_t Key(absl::string_view id) const;

  // Of this side's keys, each once, in any order. Both peers call it at the same point of the conversation.
  // The method is the initiator's. DataLoss: the peer's messages contradict each other.
  absl::StatusOr<Difference> Compare(std::vector<uint64_t> keys,
                                     ReconcileMethod method = ReconcileMethod::kAuto);

  // Messages of the program's own, between comparisons.
  absl::Status Send(absl::string_view message);
  absl::StatusOr<std::string> Receive();

  uint64_t bytes() const { return bytes_; }  // sent and received so far

 private:
  class Comparison;

  Reconciliation(PeerChannel& channel, ReconcileOptions options)
      : channel_(&channel), options_(std::move(options)) {}
  absl::Status SendMessage(char type, absl::string_view payload);
  struct Message {
    char type;
    std::string payload;
  };
  absl::StatusOr<Message> ReceiveAny(absl::string_view types);
  absl::StatusOr<std::string> ReceiveMessage(char type);

  PeerChannel* channel_;
  ReconcileOptions options_;
  uint64_t own_nonce_ = 0;
  uint64_t peer_nonce_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace lethe

#endif  // LETHE_RECONCILE_H_
