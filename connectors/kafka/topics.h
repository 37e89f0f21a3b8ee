// What lethe must know of the topics before the first record: whether they fit each other.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/options.h"
#include "connectors/kafka/stop_flag.h"

namespace lethe::kafka {

struct Topics {
  int32_t partitions = 0;  // of the input
  int32_t output_partitions = 0;
  // What each topic that is written to takes in one batch (max.message.bytes); 0: it is not written to.
  int64_t output_max_bytes = 0;
  int64_t counter_max_bytes = 0;
  int64_t divert_max_bytes = 0;
  // Of the input, per partition: the last stable offsets; the high watermarks of one that lethe itself has
  // written to, since the answer to a commit comes before its records are stable.
  std::vector<int64_t> end_offsets;
  std::vector<std::string> warnings;

  // A batch that every one of them takes.
  int64_t max_batch_bytes() const;
};

// Asks the cluster, waiting for a broker that is away (Cancelled on stop).
// NotFound: a topic is missing. FailedPrecondition: the topics do not fit: fewer output partitions than
// input partitions, a compacted input, a compacted topic of deltas or of what is diverted. Each error says
// what to do.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

// The parts of it, for who makes a topic.
absl::StatusOr<int32_t> CountPartitions(rd_kafka_t* client, const std::string& topic);
struct TopicShape {
  int32_t partitions = 0;
  int64_t max_message_bytes = 0;
};
absl::StatusOr<TopicShape> ShapeOfTopic(rd_kafka_t* client, const std::string& topic);

// Asks again while the broker is away, or a topic is missing that may have been made a moment ago.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status()>& ask);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_H_
