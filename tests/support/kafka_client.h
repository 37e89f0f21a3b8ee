// What tests ask of a Kafka cluster, one synchronous call each.
#ifndef LETHE_TESTS_SUPPORT_KAFKA_CLIENT_H_
#define LETHE_TESTS_SUPPORT_KAFKA_CLIENT_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace lethe::test {

// Calls `condition` every few milliseconds until it is true. False if it still is not after `timeout`.
bool WaitUntil(const std::function<bool()>& condition, absl::Duration timeout);

// A record, to be produced or as read. Null keys, values and header values are nullopt.
struct Record {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  int64_t timestamp_ms = 0;  // produced as the time of sending if 0
  int32_t partition = -1;    // produced where the key's hash says if -1
  int64_t offset = -1;       // set by the broker
};

// Hands a record to a producer of librdkafka's, which copies it.
rd_kafka_resp_err_t Enqueue(rd_kafka_t* producer, const std::string& topic, const Record& record,
                            void* opaque);

enum class Isolation { kReadCommitted, kReadUncommitted };

struct CommittedOffset {
  int64_t offset = -1;  // -1: none
  std::string metadata;
};

// Deletes a librdkafka handle, whatever it is.
struct HandleDeleter {
  void operator()(rd_kafka_t* handle) const;
};
using Handle = std::unique_ptr<rd_kafka_t, HandleDeleter>;

// A client of one cluster. Each call returns when the cluster has answered, or DeadlineExceeded after a
// minute. Thread-compatible.
class KafkaClient {
 public:
  using Configs = std::vector<std::pair<std::string, std::string>>;

  static absl::StatusOr<std::unique_ptr<KafkaClient>> Connect(const std::string& bootstrap);
  ~KafkaClient();

  // Brokers that the cluster says it has; an error if none answers within `timeout`.
  absl::StatusOr<int> BrokerCount(absl::Duration timeout);

  // Return when the brokers' metadata shows the change. The topic has as many replicas as is the brokers'
  // default.
  absl::Status CreateTopic(const std::string& topic, int partitions, const Configs& configs = {});
  // Begins with other clients of librdkafka, which knows topics by their ids from version 2.4 on: 2.8.0
  // crashes where one that it knows is there again with another id (its issues 4778 and 4964).
  absl::Status DeleteTopic(const std::string& topic);
  absl::Status AddPartitions(const std::string& topic, int total);
  // Deletes the records of a partition below an offset; the log starts there then.
  absl::Status DeleteRecords(const std::string& topic, int32_t partition, int64_t before);

  // The broker that leads each partition; -1: none does.
  absl::StatusOr<std::vector<int32_t>> Leaders(const std::string& topic);

  // Idempotent, so the order of the records of one partition is kept.
  absl::Status Produce(const std::string& topic, absl::Span<const Record> records);

  // One past the last record of each partition; with kReadCommitted the last stable offset.
  absl::StatusOr<std::vector<int64_t>> EndOffsets(const std::string& topic, Isolation isolation);

  // All records up to the end offsets as they are at the call, partition by partition, by offset.
  absl::StatusOr<std::vector<Record>> ReadAll(const std::string& topic, Isolation isolation);

  // The same once no transaction is open: the answer to a commit comes before its records can be seen.
  absl::StatusOr<std::vector<Record>> ReadSettled(const std::string& topic);

  // Every group that the cluster knows.
  absl::StatusOr<std::vector<std::string>> Groups();

  // What a group has committed, by partition.
  absl::StatusOr<std::vector<CommittedOffset>> Committed(const std::string& group, const std::string& topic);
  // Waits for the broker that is asked to know the topic, and all of its leaders.
  absl::StatusOr<int> KnownPartitions(const std::string& topic);
  // Whether it knows the topic now.
  absl::StatusOr<bool> Exists(const std::string& topic);

 private:
  struct AdminCall;

  KafkaClient(std::string bootstrap, Handle producer);
  absl::Status Admin(rd_kafka_admin_op_t op, const std::function<void(const AdminCall&)>& start);
  absl::StatusOr<rd_kafka_t*> WatermarkConsumer(Isolation isolation);
  absl::StatusOr<Handle> NewConsumer(const std::string& group, Isolation isolation) const;
  // nullopt if the topic does not exist or a partition has no leader yet.
  static absl::StatusOr<std::optional<int>> PartitionCount(rd_kafka_t* asking, const std::string& topic);
  static absl::Status AwaitPartitions(rd_kafka_t* asking, const std::string& topic, std::optional<int> count);

  const std::string bootstrap_;
  Handle producer_;  // also for metadata and administration
  // Made when first needed, kept since tests poll end offsets.
  Handle committed_watermarks_;
  Handle uncommitted_watermarks_;
};

// A producer in transactions, to write input that has open and aborted ones. Thread-compatible.
class TransactionalProducer {
 public:
  // Fences the one before it with the same id.
  static absl::StatusOr<std::unique_ptr<TransactionalProducer>> Start(
      const std::string& bootstrap, const std::string& transactional_id,
      const KafkaClient::Configs& properties = {});

  absl::Status Begin();
  absl::Status Produce(const std::string& topic, absl::Span<const Record> records);
  // As an operator's tool would, from outside the group; by partition.
  absl::Status SendOffsets(const std::string& group, const std::string& topic,
                           absl::Span<const CommittedOffset> offsets);
  absl::Status Commit();
  absl::Status Abort();

 private:
  explicit TransactionalProducer(Handle producer);

  const Handle producer_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_KAFKA_CLIENT_H_
