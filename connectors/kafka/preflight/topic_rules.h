// Whether topics fit each other and the options, by their descriptions.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "connectors/kafka/topics/finding.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"

namespace lethe::kafka {

// The check for topics with too few partitions.
inline constexpr char kPartitionsCheck[] = "partitions";
// The check whether memory is enough.
inline constexpr char kMemoryCheck[] = "memory";

// Findings without reading a record. lethe must not run with an error, unless IsForBeginners().
std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics);

// Whether the error counts only before the group has begun: if the input grows under a running group, records
// without a partition are held.
inline bool IsForBeginners(const Finding& finding) {
  return finding.severity == Finding::Severity::kError && finding.check == kPartitionsCheck;
}

// Asks the cluster before the first record; waits for a broker that is away (Cancelled on stop). NotFound: a
// topic is missing. FailedPrecondition: the topics do not fit. PermissionDenied: the brokers refuse this
// user, or the description of a topic.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);
// Asks once. Unavailable: ask again.
absl::StatusOr<Topics> InspectTopicsOnce(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_
