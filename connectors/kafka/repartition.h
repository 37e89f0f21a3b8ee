// Ids that are unique in the whole topic (`scope: topic`): the daemon copies the input, exactly once, to a
// topic of its own, routed by the id, and judges that one. All copies of an id are in one partition of it.
//
// The copying is done by lanes, too (RoutingOptions), which judge nothing: so all that holds for a lane
// (transactions, rebalances, records that are refused) holds for it. A routed record has its own key, value,
// timestamp and headers, and two headers more, which the second stage takes away again: the partition and
// the offset that it had in the input.
#ifndef LETHE_CONNECTORS_KAFKA_REPARTITION_H_
#define LETHE_CONNECTORS_KAFKA_REPARTITION_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/assignment.h"
#include "connectors/kafka/client.h"
#include "connectors/kafka/finding.h"
#include "connectors/kafka/options.h"
#include "connectors/kafka/report.h"
#include "connectors/kafka/stop_flag.h"
#include "connectors/kafka/topic_rules.h"
#include "src/record/record_reader.h"

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

// Where a record is routed to: by its id; without a usable one by its key, without a key by its partition,
// so that it comes to its policy in the second stage. A fixed function: another one would be a change that
// loses duplicates.
int32_t Route(const RecordFields& fields, const rd_kafka_message_t& message, int32_t partitions);

struct RoutedFrom {
  int32_t partition = 0;
  int64_t offset = 0;
};
void AddRoutedFrom(HeadersPtr& headers, const RoutedFrom& from);
// What AddRoutedFrom() has added; nullopt if the last two headers are not those.
std::optional<RoutedFrom> ReadRoutedFrom(const rd_kafka_headers_t* headers);
// A copy without them; null if nothing is left.
HeadersPtr WithoutRoutedFrom(const rd_kafka_headers_t* headers);

// Deletes from the repartition topic what no rebuild of a filter needs any more: it has no retention by time.
// Not thread-safe.
class LogTrimmer {
 public:
  static absl::StatusOr<LogTrimmer> Create(const DaemonOptions& judging);

  // Waits two seconds for the broker at most; what fails is told once, and tried again at the next call.
  void Trim(const std::vector<LaneReport>& lanes);

 private:
  LogTrimmer(std::string topic, ClientPtr client) : topic_(std::move(topic)), client_(std::move(client)) {}

  std::string topic_;
  ClientPtr client_;
  std::map<int32_t, int64_t> trimmed_;  // by partition: everything below is deleted
  bool complained_ = false;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_REPARTITION_H_
