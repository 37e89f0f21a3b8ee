// The producing end of a lane: what is written between Begin and Commit is out together with the input
// offsets, or not at all.
#ifndef LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
#define LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_

#include <librdkafka/rdkafka.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/client_statistics.h"
#include "connectors/kafka/options/options.h"
#include "connectors/kafka/output/refusal_search.h"
#include "src/pipeline/heartbeat.h"
#include "src/pipeline/stop_flag.h"
#include "src/pipeline/transaction_backoff.h"

namespace lethe::kafka {

// What became of a transaction.
enum class Outcome {
  kCommitted,
  kAborted,  // nothing of it is out; the producer is ready for the next
  kUnknown,  // the committed offsets must be asked: the producer was lost while it committed
  kStopped,  // the program is to stop, and the broker did not answer in time
};

// Why a transaction has to be given up before its commit.
enum class Failure {
  kNone,
  kRefused,    // the broker refuses a record for good: its size, its timestamp or its form
  kTransient,  // anything else: the broker was away for too long, or the group has moved on
};

// The record of the input of which something is written.
struct RecordPlace {
  int32_t partition = 0;
  int64_t offset = -1;    // -1: it is none
  bool diverted = false;  // written to the topic for what is diverted
  bool copied = false;    // to that, and beside the record in the output
};

struct ProduceRequest {
  rd_kafka_topic_t* topic = nullptr;
  int32_t partition = 0;
  const void* key = nullptr;  // null: a null key
  size_t key_bytes = 0;
  const void* value = nullptr;  // null: a null value
  size_t value_bytes = 0;
  int64_t timestamp_ms = 0;  // 0: now
  HeadersPtr headers = nullptr;
  RecordPlace of = {};
};

// Bounds of what is sent.
struct OutputLimits {
  int64_t batch_bytes = 0;   // batches are kept below it, but for those of one record
  int64_t record_bytes = 0;  // the client's queue has room for such a record
};

// A producer with a transactional id (exactly once), or an idempotent one that delivers before the offsets
// are committed (at least once). Errors that the client calls fatal make the producer anew. If that fails
// (its key cannot be read, say), there is none from then on: Begin and CountPartitions say why, and Abort is
// kStopped.
//
// Thread safety: none; one lane, one thread. `stop` may be set from any thread, and ends every wait.
class Output {
 public:
  // `waiting` is told what the lane waits for, in words, and the empty string when it goes on; `heartbeat`
  // beats meanwhile.
  Output(const DaemonOptions& options, int lane, const StopFlag& stop, Heartbeat& heartbeat,
         std::function<void(const std::string&)> waiting);
  ~Output();

  // Makes the producer and fences every earlier one of the same name (init_transactions), waiting for a
  // broker that is away. Not OK: a property or a permission is wrong, with what to do, or Cancelled on stop.
  absl::Status Open(OutputLimits limits);

  // A topic to produce to; lives until the producer is made anew, so ask for each transaction.
  rd_kafka_topic_t* output_topic() { return output_topic_.get(); }
  // Of the options' counters. With RD_KAFKA_PARTITION_UA a record goes to the partition of its key, as by
  // Kafka's own default partitioner.
  rd_kafka_topic_t* counter_topic(size_t counter) { return counter_topics_[counter].get(); }
  rd_kafka_topic_t* divert_topic() { return divert_topic_.get(); }

  // Cancelled on stop.
  absl::Status Begin();

  // Hands one record over. Waits while a few megabytes are on their way. Cancelled on stop.
  absl::Status Produce(ProduceRequest request);

  // The partitions that all TopicsOfSamePartition() have, as the broker says now; the producer knows of them
  // from then on.
  // NotFound: a topic is not there.
  absl::StatusOr<int32_t> CountPartitions();

  // Whether something failed that makes a commit pointless. Serves the client's callbacks.
  Failure Poll();

  // Commits what was produced and `offsets` (with metadata) of `group`, retrying what can be retried.
  // `consumer` commits the offsets where there is no transaction.
  Outcome Commit(const rd_kafka_topic_partition_list_t* offsets,
                 const rd_kafka_consumer_group_metadata_t* group, rd_kafka_t* consumer);

  // Gives up the transaction. kAborted, kUnknown or kStopped.
  Outcome Abort();

  // The last error in words, for the log.
  const std::string& last_error() const { return last_error_; }
  rd_kafka_resp_err_t last_error_code() const { return last_error_code_; }
  // What failed in the transaction that was last given up.
  Failure failure() const { return failure_; }

  // Of the open transaction, or the one that ended last: what was produced, what of it was acknowledged when
  // it ended, and how long the lane waited for that.
  TransactionSize size() const;

  // The records of the batches that were refused in it.
  struct Refusal {
    RecordPlace place;
    RefusedRecord record;
    std::string why;
  };
  const std::vector<Refusal>& refusals() const { return refusals_; }
  // Whether the broker has named those of them that it finds fault with (librdkafka 2.4).
  bool refusals_are_named() const { return refusals_are_named_; }
  // How large a batch of more than one record may be.
  int64_t batch_bytes() const;

  int64_t fences() const { return fences_; }

  // The producer's. Thread-safe.
  const ClientStatistics& statistics() const { return statistics_; }

 private:
  // A record of the transaction.
  struct Sent {
    RecordPlace place;
    int64_t end_bytes;  // of it and all before it
    int64_t bytes;      // of key and value
    int64_t timestamp_ms;
    bool has_key;
  };

  absl::Status MakeProducer();
  // Waits until little of what was produced is on its way.
  void AwaitRoom();
  // Of the transaction, not yet answered for; about, since the last answer need not be the last record's.
  int64_t UnansweredBytes();
  // A record that the client itself never takes.
  // The transaction is aborted. Makes the producer again if it is to be renewed, or is to compress better
  // from now on: what is refused as too large may fit by another codec, unless the user has chosen one.
  Outcome Aborted(bool renew);
  void Refuse(const Sent& sent, rd_kafka_resp_err_t code, const std::string& why);
  void DropProducer();
  Outcome Remake(const std::string& why);
  // Another producer in its place, and the failure as it was; false: last_error() says why there is none.
  bool MakeAnew();
  absl::Status NoProducer() const;
  Outcome CommitTransaction(const rd_kafka_topic_partition_list_t* offsets,
                            const rd_kafka_consumer_group_metadata_t* group);
  Outcome CommitDelivered(const rd_kafka_topic_partition_list_t* offsets, rd_kafka_t* consumer);
  // Calls until it neither asks for a retry nor times out. Null is success.
  ErrorPtr Retry(const std::string& doing, const std::function<rd_kafka_error_t*(int timeout_ms)>& call);
  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  static int CloseSocket(int socket, void* opaque);  // in the client's threads

  const DaemonOptions& options_;
  const int lane_;
  const StopFlag& stop_;
  Heartbeat& heartbeat_;
  const std::function<void(const std::string&)> waiting_;
  const bool transactional_;
  OutputLimits limits_;

  ClientStatistics statistics_;  // of this producer, or the one before it
  std::atomic<int64_t> closed_sockets_{0};
  int64_t closed_before_ = 0;  // when the transaction began
  ClientPtr producer_;
  TopicPtr output_topic_;
  std::vector<TopicPtr> counter_topics_;
  TopicPtr divert_topic_;
  std::vector<Sent> sent_;
  int64_t unanswered_at_end_ = 0;  // bytes
  absl::Duration waited_;
  int64_t room_seen_at_ = 0;  // sent bytes when AwaitRoom last looked
  Failure failure_ = Failure::kNone;
  bool unsure_ = false;  // whether something of the transaction was sent, and nobody knows what became of it
  std::vector<Refusal> refusals_;
  bool refusals_are_named_ = false;
  absl::string_view codec_;  // where the user names none
  std::string last_error_;
  rd_kafka_resp_err_t last_error_code_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  int64_t fences_ = 0;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OUTPUT_OUTPUT_H_
