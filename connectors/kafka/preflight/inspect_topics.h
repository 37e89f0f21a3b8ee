// Asks about the topics before the first record.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include "absl/status/statusor.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"

namespace lethe::kafka {

// Waits for a broker that is away (Cancelled on stop). NotFound: a topic is missing. FailedPrecondition: the
// topics do not fit. PermissionDenied: the brokers refuse this user, or the description of a topic.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);
// Asks once. Unavailable: ask again.
absl::StatusOr<Topics> InspectTopicsOnce(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_
