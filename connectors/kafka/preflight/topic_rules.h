// Whether topics fit each other and what is asked of lethe, as far as their descriptions tell.
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

// The check that finds an error where a topic has fewer partitions than are to be written.
inline constexpr char kPartitionsCheck[] = "partitions";

// All that can be said without reading a record. An error is something that lethe must not run with, unless
// IsForBeginners().
std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics);

// Whether what was found is an error only where the group has not begun: where the input has grown under a
// group at work, what has nowhere to go is held, and no more.
inline bool IsForBeginners(const Finding& finding) {
  return finding.severity == Finding::Severity::kError && finding.check == kPartitionsCheck;
}

// Of the topics before the first record; asks the cluster, waiting for a broker that is away (Cancelled on
// stop). NotFound: a topic is missing. FailedPrecondition: the topics do not fit, by ApplyTopicRules().
// PermissionDenied: the brokers do not let this user in, or a topic may not be seen. Each error says what to
// do.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_TOPIC_RULES_H_
