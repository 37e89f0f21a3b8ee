// Ids that are unique in the whole topic (`scope: topic`): the daemon copies the input, exactly once, to a
// topic of its own, routed by the id, and judges that one. All copies of an id are in one partition of it.
//
// The copying is done by lanes, too (RoutingOptions), which judge nothing: so all that holds for a lane
// (transactions, rebalances, records that are refused) holds for it. A routed record has its own key, value,
// timestamp and headers, and two headers more, which the second stage takes away again: the partition and
// the offset that it had in the input.
#ifndef LETHE_CONNECTORS_KAFKA_OPTIONS_STAGE_OPTIONS_H_
#define LETHE_CONNECTORS_KAFKA_OPTIONS_STAGE_OPTIONS_H_

#include <string>
#include <vector>

#include "src/pipeline/options/options.h"

namespace lethe::kafka {

// GROUP-INPUT-repartition.
std::string RepartitionTopic(const DaemonOptions& options);

// The options of the lanes that copy the input to the repartition topic, in a group of their own
// (GROUP-repartition), and of those that judge the repartition topic.
DaemonOptions RoutingOptions(const DaemonOptions& options);
DaemonOptions JudgingOptions(const DaemonOptions& options);
// What of the policies is for those that copy.
Policies RoutingPolicies(const Policies& policies);

// What is written to in a transaction.
std::vector<std::string> WrittenTopics(const DaemonOptions& options);

// The topics to which a lane's records, or those of the next stage, go in the partition that they are read
// from. One that they do not have has nowhere to go.
std::vector<std::string> TopicsOfSamePartition(const DaemonOptions& options);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_OPTIONS_STAGE_OPTIONS_H_
