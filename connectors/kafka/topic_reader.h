// Reads a part of a topic once, and leaves no trace: it joins no group, commits nothing, writes nothing.
#ifndef LETHE_CONNECTORS_KAFKA_TOPIC_READER_H_
#define LETHE_CONNECTORS_KAFKA_TOPIC_READER_H_

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
#include "connectors/kafka/client.h"
#include "connectors/kafka/options.h"
#include "src/survey/survey.h"

namespace lethe::kafka {

// Both bounds hold if both are given; with neither, all of the topic is read.
struct ReadOptions {
  std::string brokers;
  std::string topic;
  std::vector<Property> properties;
  std::optional<int64_t> newest;  // records of all partitions together, of each in proportion to its size
  std::optional<absl::Duration> last;  // by the records' timestamps, up to now
};

// Committed records only, up to the end as it is when the reader is opened. Thread-compatible.
class TopicReader {
 public:
  // Asks for the topic's bounds. NotFound: there is no such topic; Unavailable: no broker answers.
  static absl::StatusOr<std::unique_ptr<TopicReader>> Open(ReadOptions options);

  // Offsets, of which some may have no record: marks of transactions, or what compaction removed.
  int64_t in_topic() const { return in_topic_; }
  int64_t to_read() const { return to_read_; }
  int32_t partitions() const { return static_cast<int32_t>(ranges_.size()); }

  // Calls `take` for each record, and `go_on` several times a second with how many of to_read() are behind
  // it. OK at the end, and when `go_on` has returned false. Unavailable if nothing came for half a minute.
  absl::Status Read(const std::function<void(const SurveyRecord&)>& take,
                    const std::function<bool(int64_t done)>& go_on);

 private:
  struct Range {
    int64_t begin = 0;  // the next offset to read
    int64_t end = 0;
  };

  TopicReader(ReadOptions options, ClientPtr consumer)
      : options_(std::move(options)), consumer_(std::move(consumer)) {}
  absl::Status FindBounds();
  absl::Status FindLast();
  absl::Status Assign();
  absl::Status TakeError(const rd_kafka_message_t& message);
  void Advance(int32_t partition, int64_t to);

  const ReadOptions options_;
  const ClientPtr consumer_;
  std::vector<Range> ranges_;  // by partition
  int64_t in_topic_ = 0;
  int64_t to_read_ = 0;
  int64_t left_ = 0;  // of to_read_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPIC_READER_H_
