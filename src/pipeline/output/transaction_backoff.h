// Bounds of the next transaction, and the pause before it.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_TRANSACTION_BACKOFF_H_
#define LETHE_SRC_PIPELINE_OUTPUT_TRANSACTION_BACKOFF_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace lethe {

struct TransactionSize {
  size_t records = 0;        // read
  int64_t bytes = 0;         // produced
  int64_t acknowledged = 0;  // of these bytes
  absl::Duration waited;     // for the output
};

// The one backoff for every aborted transaction. A failed transaction is retried at half its size; the size
// doubles with each commit. A transaction holds no more bytes than the output takes in two seconds, so that
// it commits long before its timeout. Thread safety: none.
class TransactionBackoff {
 public:
  // Memory: 80 bytes at most for each pending id, and what the client needs for each record and byte.
  static constexpr size_t kMaxRecords = 250'000;
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;
  // Of the first transaction.
  static constexpr int64_t kFirstBytes = int64_t{4} << 20;
  static constexpr int64_t kMinBytes = int64_t{64} << 10;
  static constexpr absl::Duration kLongWait = absl::Seconds(2);
  static constexpr absl::Duration kMaxPause = absl::Seconds(1);

  size_t max_records() const { return max_records_; }
  int64_t max_bytes() const { return max_bytes_; }
  // In a row, without refused records.
  int failures() const { return failures_; }

  void Committed(const TransactionSize& size);
  // An unknown record was refused.
  void Refused(const TransactionSize& size);
  // Any other failure. Returns the pause before the next transaction.
  absl::Duration Failed(const TransactionSize& size);

 private:
  void Halve(const TransactionSize& size);
  // To the bytes that the output takes in kLongWait, if `bytes` took longer.
  void FitTo(int64_t bytes, absl::Duration waited);

  size_t max_records_ = kMaxRecords;
  int64_t max_bytes_ = kFirstBytes;
  int failures_ = 0;
};

// How much of a transaction one topic may fill: what its output takes in half a second. So a slow output
// delays the transactions that it shares with others by so much, and not the other topics' throughput. Thread
// safety: none.
class TopicRoom {
 public:
  static constexpr absl::Duration kLongWait = absl::Milliseconds(500);
  static constexpr int64_t kMinBytes = int64_t{4} << 10;
  static constexpr int64_t kMaxBytes = TransactionBackoff::kMaxBytes;

  int64_t max_bytes() const { return max_bytes_; }
  bool is_bounded() const { return max_bytes_ < kMaxBytes; }

  // What a transaction had of the topic.
  void Done(const TransactionSize& size);

 private:
  int64_t max_bytes_ = kMaxBytes;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_TRANSACTION_BACKOFF_H_
