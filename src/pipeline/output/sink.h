// The output as one worker sees it: the records between Begin and Commit, and the input's positions, commit
// together or not at all.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SINK_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/output/refusal_search.h"
#include "src/pipeline/output/transaction_backoff.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

enum class Outcome {
  kCommitted,
  kAborted,  // the sink is ready for the next
  kUnknown,  // ask for the committed positions: the connection was lost during the commit
  kStopped,  // a stop was requested, and there was no answer in time
};

// Why a transaction must be aborted.
enum class Failure {
  kNone,
  kRefused,    // a record is refused for good: its size, its timestamp or its form
  kTransient,  // anything else: a broker was away for too long, or the group has moved on
};

// The input record that an output record comes from.
struct RecordPlace {
  TopicPartition partition = {0, 0};
  int64_t offset = -1;    // -1: none
  bool diverted = false;  // written to the dead-letter topic
  bool copied = false;    // likewise, and the record itself to the output
};

struct Target {
  enum class Kind { kOutput, kDivert, kCounter };
  Kind kind = Kind::kOutput;
  size_t counter = 0;  // of the options'
  int32_t flow = 0;
};

// Views, valid during the call.
struct OutputRecord {
  // The partition of the key, by Kafka's default partitioner.
  static constexpr int32_t kByKey = -1;

  Target target;
  int32_t partition = 0;
  std::optional<absl::string_view> key = std::nullopt;
  std::optional<absl::string_view> value = std::nullopt;
  int64_t timestamp_ms = 0;  // 0: now
  absl::Span<const HeaderView> headers = {};
  RecordPlace of = {};
};

// The offset to commit, with its metadata.
struct Position {
  TopicPartition partition = {0, 0};
  int64_t offset = 0;
  std::string metadata;
};

struct OutputLimits {
  int64_t batch_bytes = 0;   // bound of a batch of several records
  int64_t record_bytes = 0;  // the client's queue holds a record of this size
};

struct Refusal {
  RecordPlace place;
  RefusedRecord record;
  std::string why;
};

// Of the open or the latest transaction.
struct TransactionReport {
  Failure failure = Failure::kNone;
  std::string last_error;
  bool has_group_moved_on = false;  // the commit was refused: this worker has left the group
  std::vector<Refusal> refusals;
  // Flows whose own topics made the transaction fail (missing, not permitted, or without an answer in time),
  // and why. Without these flows it might have been committed.
  std::map<int32_t, std::string> to_blame;
  // Whether the broker has named the bad ones (librdkafka 2.4).
  bool refusals_are_named = false;
};

// Thread safety: none, it belongs to the worker's thread.
class Sink {
 public:
  virtual ~Sink() = default;

  // Connects, and fences every earlier sink of the same name. Cancelled on stop.
  virtual absl::Status Open(OutputLimits limits) = 0;
  // No copy of a request of an earlier transaction can take effect from here on (rule 27; LateRequests).
  // Cancelled on stop.
  virtual absl::Status Begin() = 0;
  // Waits while a few megabytes are in flight. Cancelled on stop; after another error abort the transaction.
  virtual absl::Status Write(const OutputRecord& record) = 0;
  // A failure after which a commit is pointless.
  virtual Failure Poll() = 0;
  // Commits the records and the positions; retries where it can.
  virtual Outcome Commit(const std::vector<Position>& positions) = 0;
  // kAborted, kUnknown or kStopped.
  virtual Outcome Abort() = 0;

  virtual const TransactionReport& report() const = 0;
  virtual TransactionSize size() const = 0;
  // The cluster aborts a transaction that lasts longer.
  virtual absl::Duration timeout() const { return absl::InfiniteDuration(); }
  // Of each flow in it, without `records`; what it waited is until its own records were answered.
  virtual std::map<int32_t, TransactionSize> SizeByFlow() const { return {}; }
  // Bound of a batch of several records.
  virtual int64_t batch_bytes() const = 0;
  // Of a flow: the topic that now has the fewest partitions, of those in which records keep their partition.
  // NotFound: one of its topics does not exist.
  virtual absl::StatusOr<SmallestTopic> CountPartitions(int32_t flow) = 0;
  // Of a flow's output.
  virtual absl::StatusOr<RecordRules> AskRules(int32_t flow) = 0;

  // After a transaction: whether offsets of it may still come late, which a new producer does not prevent
  // (LateRequests). The worker then becomes another member of the group before it begins the next.
  virtual bool NeedsNewMember() const { return false; }
  virtual void OnNewMember() {}

  // How often this sink was fenced, or lost its client otherwise.
  virtual int64_t fences() const { return 0; }
  // How often it took a new producer because a request of the old one might come late.
  virtual int64_t renewals() const { return 0; }
  // As Source's.
  virtual ClientReport client_report() const { return {}; }
  virtual absl::Duration throttled() const { return absl::ZeroDuration(); }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SINK_H_
