// What lethe must know of the topics before the first record: whether they fit each other.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "connectors/kafka/options.h"
#include "connectors/kafka/stop_flag.h"

namespace lethe::kafka {

struct Topics {
  int32_t partitions = 0;  // of the input
  // What each topic that is written to takes in one batch (max.message.bytes); 0: it is not written to.
  int64_t output_max_bytes = 0;
  int64_t counter_max_bytes = 0;
  int64_t divert_max_bytes = 0;
  std::vector<int64_t> end_offsets;  // of the input, per partition: the last stable offsets
  std::vector<std::string> warnings;

  // A batch that every one of them takes.
  int64_t max_batch_bytes() const;
};

// Asks the cluster, waiting for a broker that is away (Cancelled on stop).
// NotFound: a topic is missing. FailedPrecondition: the topics do not fit: fewer output partitions than
// input partitions, a compacted input, a compacted topic of deltas or of what is diverted. Each error says
// what to do.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_H_
