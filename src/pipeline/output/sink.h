// The output as one worker sees it: what is written between Begin and Commit is out together with the input's
// positions, or not at all.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SINK_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/pipeline/options/record_rules.h"
#include "src/pipeline/output/refusal_search.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// What became of a transaction.
enum class Outcome {
  kCommitted,
  kAborted,  // nothing of it is out; the sink is ready for the next
  kUnknown,  // the committed positions must be asked: the connection was lost while it committed
  kStopped,  // the program is to stop, and there was no answer in time
};

// Why a transaction must be aborted.
enum class Failure {
  kNone,
  kRefused,    // a record is refused for good: its size, its timestamp or its form
  kTransient,  // anything else: a broker was away for too long, or the group has moved on
};

// The record of the input of which something is written.
struct RecordPlace {
  int32_t partition = 0;
  int64_t offset = -1;    // -1: it is none
  bool diverted = false;  // written to the topic for what is diverted
  bool copied = false;    // to that, and beside the record in the output
};

// One of the topics that are written to.
struct Target {
  enum class Kind { kOutput, kDivert, kCounter };
  Kind kind = Kind::kOutput;
  size_t counter = 0;  // of the options'
};

// Views, valid during the call.
struct OutputRecord {
  // The partition is that of the key, as by Kafka's own default partitioner.
  static constexpr int32_t kByKey = -1;

  Target target;
  int32_t partition = 0;
  std::optional<absl::string_view> key = std::nullopt;
  std::optional<absl::string_view> value = std::nullopt;
  int64_t timestamp_ms = 0;  // 0: now
  absl::Span<const HeaderView> headers = {};
  RecordPlace of = {};
};

// Where the group reads on after the commit, and what it is told about it.
struct Position {
  int32_t partition = 0;
  int64_t offset = 0;
  std::string metadata;
};

// Bounds of what is sent.
struct OutputLimits {
  int64_t batch_bytes = 0;   // batches are kept below it, but for those of one record
  int64_t record_bytes = 0;  // the client's queue has room for such a record
};

// A record of a batch that was refused.
struct Refusal {
  RecordPlace place;
  RefusedRecord record;
  std::string why;
};

// Of the open transaction, or of the one that ended last.
struct TransactionReport {
  Failure failure = Failure::kNone;
  std::string last_error;
  bool has_group_moved_on = false;  // its commit was refused, since this is no member of the group any more
  std::vector<Refusal> refusals;
  // Whether the broker has named those of them that it finds fault with (librdkafka 2.4).
  bool refusals_are_named = false;
};

// Thread safety: none, it belongs to the worker's thread.
class Sink {
 public:
  virtual ~Sink() = default;

  // Connects, and fences every earlier sink of the same name. Not OK: what is wrong, with what to do, or
  // Cancelled on stop.
  virtual absl::Status Open(OutputLimits limits) = 0;
  // Cancelled on stop.
  virtual absl::Status Begin() = 0;
  // Hands one record over. Waits while a few megabytes are on their way. Cancelled on stop; else not OK: the
  // transaction is to be aborted.
  virtual absl::Status Write(const OutputRecord& record) = 0;
  // Whether something failed that makes a commit pointless.
  virtual Failure Poll() = 0;
  // Commits what was written and the positions, retrying what can be retried.
  virtual Outcome Commit(const std::vector<Position>& positions) = 0;
  // kAborted, kUnknown or kStopped.
  virtual Outcome Abort() = 0;

  virtual const TransactionReport& report() const = 0;
  // What was written, what of it was acknowledged when it ended, and how long the worker waited for that.
  virtual TransactionSize size() const = 0;
  // How large a batch of more than one record may be.
  virtual int64_t batch_bytes() const = 0;
  // The partitions that all topics have in which records keep their partition, as they are now. NotFound: a
  // topic is not there.
  virtual absl::StatusOr<int32_t> CountPartitions() = 0;
  // What the output refuses by its settings as they are now.
  virtual absl::StatusOr<RecordRules> AskRules() = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SINK_H_
