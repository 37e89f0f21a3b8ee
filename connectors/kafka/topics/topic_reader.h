// Reads a part of a topic: joins no group, commits nothing, writes nothing.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_READER_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_READER_H_

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
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/options/options.h"
#include "src/survey/survey.h"

namespace lethe::kafka {

// Both bounds hold if both are given; with neither, all of the topic is read.
struct ReadOptions {
  std::string brokers;
  std::string topic;
  std::vector<Property> properties = {};
  // Records of all partitions together, of each in proportion to its size.
  std::optional<int64_t> newest = {};
  std::optional<absl::Time> since = {};  // by the records' timestamps
  absl::string_view name = "survey";     // as which the brokers see it
  bool follow = false;                   // goes on behind the end
  bool sees_aborted = false;             // also what read_committed hides
};

// Reads committed records only, up to the end when the bounds were found, or further (`follow`).
// Thread-compatible.
class TopicReader {
 public:
  // Asks for the topic's bounds. NotFound: there is no such topic; Unavailable: no broker, or no leader of a
  // partition, answers. `go_on` is asked every few seconds while none does; false ends it (Cancelled).
  static absl::StatusOr<std::unique_ptr<TopicReader>> Open(
      ReadOptions options, const std::function<bool()>& go_on = [] { return true; });
  // Asks for the bounds again, and waits for transactions that are open at the end. `go_on` is asked
  // meanwhile; false ends the waiting (Cancelled). Unavailable: one stays open.
  absl::Status FindSettledBounds(const std::function<bool()>& go_on);

  // Numbers of offsets; some have no record: transaction markers, or compacted.
  int64_t in_topic() const { return in_topic_; }
  int64_t to_read() const { return to_read_; }
  int32_t partitions() const { return static_cast<int32_t>(bounds_.size()); }
  // Whether records of the partition may have been deleted within the bounds, as of the last question.
  bool IsCut(int32_t partition) const {
    const int64_t log_begin = log_begins_[static_cast<size_t>(partition)];
    return log_begin > 0 && log_begin >= bounds(partition).begin;
  }
  absl::Status FindLogBegins(const std::function<bool()>& go_on);
  int64_t log_begin(int32_t partition) const { return log_begins_[static_cast<size_t>(partition)]; }
  const OffsetRange& bounds(int32_t partition) const { return bounds_[static_cast<size_t>(partition)]; }
  // Empty if no broker answers.
  std::string ClusterId() const { return kafka::ClusterId(client()); }
  rd_kafka_t* client() const { return consumer_.get(); }

  // Calls `take` for each record, and `go_on` several times a second with the number of offsets that are
  // done. OK at the end, and when `go_on` returned false. Unavailable if nothing came for half a minute
  // before the end. May be called again.
  absl::Status Read(const std::function<void(const SurveyRecord&)>& take,
                    const std::function<bool(int64_t done)>& go_on) {
    return Read(bounds_, take, go_on);
  }
  // Likewise, other offsets by partition.
  absl::Status Read(const std::vector<OffsetRange>& ranges,
                    const std::function<void(const SurveyRecord&)>& take,
                    const std::function<bool(int64_t done)>& go_on);

 private:
  explicit TopicReader(ReadOptions options) : options_(std::move(options)) {}
  absl::StatusOr<ClientPtr> MakeConsumer(absl::string_view isolation, ClientErrors& errors) const;
  absl::Status FindEnds(const std::function<bool()>& go_on);
  void SetLogBegins(const std::vector<OffsetRange>& bounds);
  absl::Status AwaitTransactions(const std::function<bool()>& go_on);
  absl::Status FindBegins(const std::function<bool()>& go_on);
  absl::Status FindSince(const std::function<bool()>& go_on);

  const ReadOptions options_;
  ClientErrors errors_;  // outlives the consumer
  ClientPtr consumer_;
  std::vector<int64_t> log_begins_;  // by partition, as all of these
  std::vector<OffsetRange> bounds_;
  int64_t in_topic_ = 0;
  int64_t to_read_ = 0;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_READER_H_
