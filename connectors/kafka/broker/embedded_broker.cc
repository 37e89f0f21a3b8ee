#include "connectors/kafka/broker/embedded_broker.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"

namespace lethe::kafka {

struct EmbeddedBroker::Impl {
  ClientPtr client;  // librdkafka keeps the cluster's books in a client; destroyed after the cluster
  std::unique_ptr<rd_kafka_mock_cluster_t, Destroyer<rd_kafka_mock_cluster_destroy>> cluster;
};

EmbeddedBroker::EmbeddedBroker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EmbeddedBroker::~EmbeddedBroker() { impl_->cluster.reset(); }

absl::StatusOr<std::unique_ptr<EmbeddedBroker>> EmbeddedBroker::Start() {
  auto impl = std::make_unique<Impl>();
  auto client = ClientConfig().MakeProducer();
  if (!client.ok()) return client.status();
  impl->client = *std::move(client);
  impl->cluster.reset(rd_kafka_mock_cluster_new(impl->client.get(), 1));
  if (impl->cluster == nullptr) return absl::InternalError("the embedded broker did not start");
  return std::unique_ptr<EmbeddedBroker>(new EmbeddedBroker(std::move(impl)));
}

std::string EmbeddedBroker::bootstrap_servers() const {
  return rd_kafka_mock_cluster_bootstraps(impl_->cluster.get());
}

absl::Status EmbeddedBroker::CreateTopic(const std::string& name, int partitions) {
  return ErrorStatus(rd_kafka_mock_topic_create(impl_->cluster.get(), name.c_str(), partitions, 1),
                     absl::StrCat("creating topic ", name));
}

}  // namespace lethe::kafka
