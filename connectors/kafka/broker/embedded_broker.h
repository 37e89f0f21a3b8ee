// A broker inside the process: librdkafka's mock cluster, reachable from other processes of this host.
//
// For demonstrations and simple tests only. It has no real transactions (it drops offsets sent with one, and
// an aborted one stays visible) and keeps some 5 MB of a partition, so it shows nothing about exactly once.
#ifndef LETHE_CONNECTORS_KAFKA_BROKER_EMBEDDED_BROKER_H_
#define LETHE_CONNECTORS_KAFKA_BROKER_EMBEDDED_BROKER_H_

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"

namespace lethe::kafka {

// Ends with the object. Thread-safe.
class EmbeddedBroker {
 public:
  static absl::StatusOr<std::unique_ptr<EmbeddedBroker>> Start();

  std::string bootstrap_servers() const;
  absl::Status CreateTopic(const std::string& name, int partitions);

 private:
  EmbeddedBroker() = default;

  ClientPtr client_;  // librdkafka keeps the cluster's state in a client, which outlives the cluster
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroyer<rd_kafka_mock_cluster_destroy>> cluster_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_BROKER_EMBEDDED_BROKER_H_
