#include "connectors/kafka/broker/embedded_broker.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe::kafka {

absl::StatusOr<std::unique_ptr<EmbeddedBroker>> EmbeddedBroker::Start() {
  auto client = ClientConfig().MakeProducer();
  if (!client.ok()) return client.status();
  std::unique_ptr<EmbeddedBroker> broker(new EmbeddedBroker());
  broker->client_ = *std::move(client);
  broker->cluster_.reset(rd_kafka_mock_cluster_new(broker->client_.get(), 1));
  if (broker->cluster_ == nullptr) return absl::InternalError("the embedded broker did not start");
  return broker;
}

std::string EmbeddedBroker::bootstrap_servers() const {
  return rd_kafka_mock_cluster_bootstraps(cluster_.get());
}

absl::Status EmbeddedBroker::CreateTopic(const std::string& name, int partitions) {
  return ErrorStatus(rd_kafka_mock_topic_create(cluster_.get(), name.c_str(), partitions, 1),
                     absl::StrCat("creating topic ", name));
}

}  // namespace lethe::kafka
