// Copies records of another topic into this one, all of them in one transaction.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_WRITER_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_WRITER_H_

#include <librdkafka/rdkafka.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/survey/survey.h"

namespace lethe::kafka {

struct WriteOptions {
  std::string brokers;
  std::string topic;
  std::vector<Property> properties;
};

// The header of a copied record that says where it comes from: CLUSTER/TOPIC/PARTITION/OFFSET.
inline constexpr char kCopiedFrom[] = "lethe.copied_from";

// Thread-compatible.
class TopicWriter {
 public:
  // Fences every other TopicWriter of this topic: their transactions are aborted. So a reader that then asks
  // for the topic's end sees all that they have written. `asks` is a client of the same cluster; `go_on` is
  // asked several times a second, here and below, while brokers are slow. FailedPrecondition: the topic would
  // not keep the timestamps.
  static absl::StatusOr<std::unique_ptr<TopicWriter>> Open(const WriteOptions& options, rd_kafka_t* asks,
                                                           const std::function<bool()>& go_on);
  // Aborts an open transaction.
  ~TopicWriter();
  TopicWriter(const TopicWriter&) = delete;
  TopicWriter& operator=(const TopicWriter&) = delete;

  // Keeps key, value, headers and timestamp. A partition below 0: the one that Kafka's default partitioner
  // gives the key.
  absl::Status Write(const SurveyRecord& record, absl::string_view from, const std::function<bool()>& go_on);
  // OK: all records since the last commit are out. Any other: none of them, unless the message says that it
  // is not known.
  absl::Status Commit(const std::function<bool()>& go_on);

 private:
  explicit TopicWriter(WriteOptions options) : options_(std::move(options)) {}
  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);
  // Another writer to the topic has taken over.
  absl::Status Fenced() const;
  absl::Status Lost(const rd_kafka_error_t* error, absl::string_view doing) const;

  const WriteOptions options_;
  ClientPtr producer_;
  TopicPtr topic_;
  bool is_open_ = false;  // a transaction
  absl::Status refused_;  // the first record that was not taken
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_WRITER_H_
