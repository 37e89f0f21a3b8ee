// Asks the cluster to describe topics, and creates some in it.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/topic_facts.h"

namespace lethe::kafka {

// Asks with a client of its own, and again while the broker is away, or while a topic is missing that may
// have been created a moment ago (Cancelled on stop). PermissionDenied: the brokers refuse this user.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t* client)>& ask);

// A client that asks and reads, and joins no group. `errors` keeps its connection errors.
absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors);

// Empty if no broker answers.
std::string ClusterId(rd_kafka_t* client);

// The topics of the cluster, without Kafka's own; none if no broker answers.
std::vector<std::string> TopicNames(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

// OK if the topic was created meanwhile. `validate_only` only asks the broker whether it would create it. No
// replicas: the brokers' default.
absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const TopicConfig& config, bool validate_only = false);

// The number of partitions of a topic of lethe's own, which is created if it is missing: with the input's
// partitions and replicas.
absl::StatusOr<int32_t> EnsureTopic(
    const DaemonOptions& options, rd_kafka_t* client, absl::string_view role, const std::string& name,
    const std::function<absl::StatusOr<TopicConfig>(const TopicFacts& input)>& config_for);

// DescribeTopic() with errors that name the topic's role and the remedy.
// Of several inputs, the most that any of those that exist has or takes. NotFound: none exists.
absl::StatusOr<TopicFacts> DescribeInputs(const DaemonOptions& options, const std::vector<std::string>& names,
                                          rd_kafka_t* client);
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
