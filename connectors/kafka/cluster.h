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

  absl::StatusOr<std::vector<CommittedOffset>> Committed(const std::string& topic,
                                                         int32_t partitions) override;
  absl::StatusOr<LogState> Log(const std::string& topic, int32_t partition) override;
  absl::StatusOr<absl::Time> TimeAt(const std::string& topic, int32_t partition, int64_t offset) override;
  absl::StatusOr<int32_t> CountPartitions(const std::string& topic) override;
  // Only since librdkafka 2.3.
  std::string TopicId(const std::string& topic) override;
  absl::Status ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                          const std::function<void(const InputRecord&)>& see, const GoOn& go_on) override;

 private:
  // The consumer's connection answers in order: a question waits for the fetch before it, up to half a second
  // where nothing is written. With many topics that would be all of the worker's time, so another client asks
  // about each. Null: there is none.
  rd_kafka_t* AskingClient();

  const DaemonOptions& options_;
  const Flows& flows_;
  const Consumer& consumer_;
  ClientErrors errors_;
  ClientPtr asking_;
  std::map<std::string, int32_t> counts_;  // of partitions, as last counted
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLUSTER_H_
