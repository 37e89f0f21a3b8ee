// What lethe must know of the topics before the first record: whether they fit each other.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECTION_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"

namespace lethe::kafka {

// Asks the cluster, waiting for a broker that is away (Cancelled on stop).
// NotFound: a topic is missing. FailedPrecondition: the topics do not fit, by topic_rules.h.
// PermissionDenied: the brokers do not let this user in, or a topic may not be seen. Each error says what to
// do.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECTION_H_
