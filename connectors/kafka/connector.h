// The daemon's way to Kafka.
#ifndef LETHE_CONNECTORS_KAFKA_CONNECTOR_H_
#define LETHE_CONNECTORS_KAFKA_CONNECTOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/snapshots/snapshot_log.h"
#include "src/pipeline/daemon/connector.h"

namespace lethe::kafka {

class KafkaConnector final : public Connector {
 public:
  absl::StatusOr<std::unique_ptr<Brokers>> MakeBrokers(const DaemonOptions& options,
                                                       Isolation isolation) override;
  Streams MakeStreams(const Shared& shared, WorkerState& state,
                      std::function<absl::Status()> may_recreate) override;
  absl::StatusOr<std::unique_ptr<SnapshotLog>> OpenSnapshots(const DaemonOptions& options) override;
  std::unique_ptr<TotalsLog> OpenTotals(const DaemonOptions& options, const std::string& topic) override;

 private:
  SnapshotProducer snapshot_producer_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CONNECTOR_H_
