// What the cluster says of topics, and topics that are made in it.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/topics/topic_facts.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// Asks with a client of its own, and again while the broker is away, or a topic is missing that may have been
// made a moment ago (Cancelled on stop). PermissionDenied: the brokers do not let this user in.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t* client)>& ask);

// A client that asks and reads, and is no member of a group. What it meets by itself is `errors`' to keep.
absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors);

// Of the cluster, without those of Kafka itself; none if it does not answer.
std::vector<std::string> TopicNames(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

using TopicConfig = std::map<std::string, std::string>;

// Makes a topic; OK if another has made it a moment ago. `validate_only`: only asks the broker whether it
// would. No replicas: as many as is the brokers' default.
absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const TopicConfig& config, bool validate_only = false);

// A denial, with what this user must be granted on the topic, by its role; any other status as it is.
absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status);

// How many partitions a topic of lethe's own has, which is created if it is missing: with as many partitions
// and replicas as the input.
absl::StatusOr<int32_t> EnsureTopic(
    const DaemonOptions& options, rd_kafka_t* client, absl::string_view role, const std::string& name,
    const std::function<absl::StatusOr<TopicConfig>(const TopicFacts& input)>& config_for);

// As DescribeTopic. The errors name the topic's role, and say what to do.
absl::StatusOr<TopicFacts> DescribeInput(const DaemonOptions& options, rd_kafka_t* client);
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
