#include "connectors/kafka/connector.h"

#include <utility>

#include "connectors/kafka/cluster.h"
#include "connectors/kafka/counters/totals_topic.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/output/output.h"

namespace lethe::kafka {

absl::StatusOr<std::unique_ptr<Brokers>> KafkaConnector::MakeBrokers(const DaemonOptions& options,
                                                                     Isolation isolation) {
  return BrokerClient::Make(options, isolation);
}

Streams KafkaConnector::MakeStreams(const Shared& shared, WorkerState& state,
                                    std::function<absl::Status()> may_recreate) {
  auto consumer = std::make_unique<Consumer>(shared.options, shared.flows, state.lane);
  auto output = std::make_unique<Output>(shared.options, shared.flows, state, *consumer, may_recreate);
  auto cluster = std::make_unique<BrokerCluster>(shared.options, shared.flows, *consumer);
  return {std::move(consumer), std::move(output), std::move(cluster)};
}

absl::StatusOr<std::unique_ptr<SnapshotLog>> KafkaConnector::OpenSnapshots(const DaemonOptions& options) {
  return OpenSnapshotLog(options, snapshot_producer_);
}

std::unique_ptr<TotalsLog> KafkaConnector::OpenTotals(const DaemonOptions& options,
                                                      const std::string& topic) {
  return std::make_unique<TotalsTopic>(options, topic);
}

}  // namespace lethe::kafka
