// The topic between the two stages of `scope: topic`: it is made, and looked for where it is gone.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_

#include <librdkafka/rdkafka.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/finding.h"
#include "connectors/kafka/topics/topic_facts.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// Of a repartition topic that is missing, with what the group that copies has committed of the input: an
// error if it has copied anything. That is lost then, as far as it was not judged, and so is what is known of
// ids. nullopt: nothing is lost if the topic is made; so it is after an operator's reset of that group.
std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed);

// The configuration of the repartition topic of this input. It takes every record that the input took, also
// late: its timestamps are not bounded, since what the input took in time may be routed after a lag.
std::map<std::string, std::string> RepartitionConfig(const TopicFacts& input);

// Creates the repartition topic if it is missing, with as many partitions and replicas as the input. The
// partitions stay as many, since the way of an id must not change. Waits for a broker that is away (Cancelled
// on stop). NotFound: the input does not exist, or the topic is gone (see LostWithTopic).
absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop);

// Whether this user may create it, for a repartition topic that is missing; nothing is created.
absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_REPARTITION_TOPIC_H_
