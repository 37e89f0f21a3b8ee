// What a worker asks of the cluster, asked of brokers.
#ifndef LETHE_CONNECTORS_KAFKA_CLUSTER_H_
#define LETHE_CONNECTORS_KAFKA_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/group/consumer.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/flow.h"

namespace lethe::kafka {

// Asks with the worker's consumer, which must be open, and with clients of its own where that one is busy.
// Not thread-safe: it belongs to the worker's thread.
class BrokerCluster final : public Cluster {
 public:
  BrokerCluster(const DaemonOptions& options, const Flows& flows, const Consumer& consumer)
      : options_(options), flows_(flows), consumer_(consumer) {}

  ByTopic<CommittedOffsets> AskCommitted(const std::map<std::string, int32_t>& partitions) override;
  ByTopic<Logs> AskLogs(const std::map<std::string, std::vector<int32_t>>& partitions) override;
  absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) override;
  ByTopic<int32_t> CountPartitions(const std::vector<std::string>& topics) override;
  // Only since librdkafka 2.3.
  std::map<std::string, std::string> TopicIds(const std::vector<std::string>& topics) override;
  absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                          const std::function<void(const InputRecord&)>& see, const GoOn& go_on) override;

 private:
  // The consumer's connection answers in order: a question waits for the fetch before it, up to half a second
  // where nothing is written. With many topics the worker would wait again and again, so another client asks.
  // Null: there is none.
  rd_kafka_t* AskingClient();
  // Of several topics, by the client that asks.
  ByTopic<TopicShape> AskShapes(const std::vector<std::string>& topics);

  const DaemonOptions& options_;
  const Flows& flows_;
  const Consumer& consumer_;
  ClientPtr asking_;
  std::map<std::string, TopicPtr> handles_;  // of that client: of the topics that it is asked for
  std::map<std::string, int32_t> counts_;    // of partitions, as last counted
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLUSTER_H_
