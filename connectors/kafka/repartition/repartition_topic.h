// The topic between the two stages of `scope: topic`: created, checked and trimmed.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/finding.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"

namespace lethe::kafka {

// Of a repartition topic that is missing, with what the group that copies has committed of the input: an
// error if it has copied anything. That is lost then, as far as it was not judged, and so is what is known of
// ids. nullopt: nothing is lost if the topic is made; so it is after an operator's reset of that group.
std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed);

// The configuration of the repartition topic of this input. It takes every record that the input took, also
// late: its timestamps are not bounded, since what the input took in time may be routed after a lag.
TopicConfig RepartitionConfig(const TopicFacts& input);

// Creates the repartition topic if it is missing, with as many partitions and replicas as the input. The
// partitions stay as many, since the way of an id must not change. Waits for a broker that is away (Cancelled
// on stop). NotFound: the input does not exist, or the topic is gone (see LostWithTopic).
absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop);

// Whether this user may create it, for a repartition topic that is missing; nothing is created.
absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input);

// Deletes from the repartition topic what no rebuild of a filter needs any more: it has no retention by time.
// Not thread-safe.
class LogTrimmer {
 public:
  static absl::StatusOr<LogTrimmer> Create(const DaemonOptions& judging);

  // Waits two seconds for the broker at most; what fails is told once, and tried again at the next call.
  void Trim(const std::vector<LaneReport>& lanes);

 private:
  LogTrimmer(std::string topic, ClientPtr client) : topic_(std::move(topic)), client_(std::move(client)) {}

  std::string topic_;
  ClientPtr client_;
  std::map<int32_t, int64_t> trimmed_;  // by partition: everything below is deleted
  bool complained_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
