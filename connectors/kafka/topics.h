// What lethe must know of the topics before the first record: whether they fit each other.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client.h"
#include "connectors/kafka/options.h"
#include "connectors/kafka/stop_flag.h"
#include "connectors/kafka/topic_rules.h"

namespace lethe::kafka {

struct Topics {
  int32_t partitions = 0;         // of the input
  int32_t output_partitions = 0;  // of the output
  int32_t least_partitions = 0;   // that TopicsOfSamePartition() have; 0: not known
  int64_t input_max_bytes = 0;    // of a batch in it (max.message.bytes)
  // What each topic that is written to takes in one batch (max.message.bytes, segment.bytes); 0: it is not
  // written to.
  int64_t output_max_bytes = 0;
  std::vector<int64_t> counter_max_bytes;  // in the order of the options
  int64_t divert_max_bytes = 0;
  // Of the input, per partition: the last stable offsets; the high watermarks of one that lethe itself has
  // written to, since the answer to a commit comes before its records are stable.
  std::vector<int64_t> end_offsets;
  RecordRules output_rules;
  std::vector<std::string> warnings;

  // A batch that every one of them takes.
  int64_t max_batch_bytes() const;
  // As large as a record may be that comes uncompressed from the input.
  int64_t max_record_bytes() const;
};

// Asks the cluster, waiting for a broker that is away (Cancelled on stop).
// NotFound: a topic is missing. FailedPrecondition: the topics do not fit, by topic_rules.h.
// PermissionDenied: the brokers do not let this user in, or a topic may not be seen. Each error says what to
// do.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

// Asks with a client of its own, and again while the broker is away, or a topic is missing that may have been
// made a moment ago. Errors as InspectTopics.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t* client)>& ask);

// A client that asks and reads, and is no member of a group. What it meets by itself is `errors`' to keep.
absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors);

// Of the cluster, without those of Kafka itself; none if it does not answer.
std::vector<std::string> TopicNames(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

// Makes a topic; OK if another has made it a moment ago. `validate_only`: only asks the broker whether it
// would. No replicas: as many as is the brokers' default.
absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const std::map<std::string, std::string>& config, bool validate_only = false);

// A denial, with what this user must be granted on the topic, by its role; any other status as it is.
absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status);

// As DescribeTopic. The errors name the topic's role, and say what to do.
absl::StatusOr<TopicFacts> DescribeInput(const DaemonOptions& options, rd_kafka_t* client);
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_H_
