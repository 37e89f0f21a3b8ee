// The topic between the two stages of `scope: topic`: created and trimmed.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/flow.h"

namespace lethe::kafka {

// Logs LostInTopic(). The clients are of the two groups; what they cannot tell is not said.
void WarnOfLoss(const DaemonOptions& options, rd_kafka_t* routers, rd_kafka_t* deduplicators);

// Creates the repartition topic if it is missing, with the input's partitions and replicas; of several
// inputs, with the most of them. It never gets more partitions, since the route of an id must not change.
// NotFound: an input does not exist, or LostWithTopic(). `client` is of the routers' group.
absl::Status EnsureRepartitionTopicOnce(const DaemonOptions& options, rd_kafka_t* client);
// Waits for a broker that is away (Cancelled on stop).
absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop);

// Whether this user may create the missing topic; creates nothing.
absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input);

// Deletes records of repartition topics that no rebuild of a filter needs: they have no retention by time.
// Not thread-safe.
class LogTrimmer {
 public:
  static absl::StatusOr<LogTrimmer> Create(const DaemonOptions& judging);

  // `lanes` judge `flows`, of which some may be routed: of the others nothing is deleted. Waits two seconds
  // for the broker at most. Logs the first failure; the next call tries again.
  void Trim(const Flows& flows, const std::vector<LaneReport>& lanes);

 private:
  explicit LogTrimmer(ClientPtr client) : client_(std::move(client)) {}

  ClientPtr client_;
  std::map<std::pair<std::string, int32_t>, int64_t> trimmed_;  // everything below is deleted
  bool complained_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
