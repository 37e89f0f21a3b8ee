#include "connectors/kafka/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "connectors/kafka/group/broker_client.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/topics/topic_id.h"

namespace lethe::kafka {
namespace {

// The worker reads nothing meanwhile.
constexpr int kCountTimeoutMs = 500;
constexpr int kShapesTimeoutMs = 2000;
constexpr int kTopicIdTimeoutMs = 1000;

}  // namespace

ByTopic<Cluster::CommittedOffsets> BrokerCluster::AskCommitted(
    const std::map<std::string, int32_t>& partitions) {
  return kafka::AskCommitted(consumer_.client(), partitions);
}

ByTopic<Cluster::Logs> BrokerCluster::AskLogs(const std::map<std::string, std::vector<int32_t>>& partitions) {
  if (flows_.size() == 1) return kafka::AskLogs(consumer_.client(), partitions);
  std::vector<std::string> topics;
  for (const auto& each : partitions) topics.push_back(each.first);
  // A topic that is not there, or has no leader, would fail the question about all.
  ByTopic<Logs> logs;
  std::map<std::string, std::vector<int32_t>> known;
  for (const auto& [topic, shape] : AskShapes(topics)) {
    const std::vector<int32_t>& of_topic = partitions.at(topic);
    if (!shape.ok()) {
      logs.emplace(topic, shape.status());
    } else if (!shape->has_leaders) {
      logs.emplace(topic, absl::UnavailableError(absl::StrCat("a partition of ", topic, " has no leader")));
    } else if (*std::max_element(of_topic.begin(), of_topic.end()) >= shape->partitions) {
      logs.emplace(topic, absl::NotFoundError(absl::StrCat("the brokers know ", shape->partitions,
                                                           " partitions of ", topic)));
    } else {
      known.emplace(topic, of_topic);
    }
  }
  if (!known.empty()) logs.merge(kafka::AskLogs(asking_.get(), known));
  return logs;
}

absl::StatusOr<std::vector<absl::Time>> BrokerCluster::AskTimes(const std::vector<LogPlace>& places) {
  // Another client, since the worker's own is in the middle of its assignment.
  const auto client = BrokerClient::Make(options_, IsolationOf(options_));
  if (!client.ok()) return client.status();
  return (*client)->AskTimes(places);
}

ByTopic<int32_t> BrokerCluster::CountPartitions(const std::vector<std::string>& topics) {
  ByTopic<int32_t> counts;
  if (flows_.size() == 1) {
    for (const std::string& topic : topics) {
      counts.emplace(topic, kafka::CountPartitions(consumer_.client(), topic, kCountTimeoutMs));
    }
    return counts;
  }
  for (const auto& [topic, shape] : AskShapes(topics)) {
    if (!shape.ok()) {
      counts.emplace(topic, shape.status());
      continue;
    }
    const auto [known, is_new] = counts_.try_emplace(topic, shape->partitions);
    // The consumer hears of new partitions at once only if it asks itself.
    if (!is_new && std::exchange(known->second, shape->partitions) != shape->partitions) {
      counts.emplace(topic, kafka::CountPartitions(consumer_.client(), topic, kCountTimeoutMs));
    } else {
      counts.emplace(topic, shape->partitions);
    }
  }
  return counts;
}

std::map<std::string, std::string> BrokerCluster::TopicIds(const std::vector<std::string>& topics) {
  rd_kafka_t* const client = flows_.size() == 1 ? consumer_.client() : AskingClient();
  if (client == nullptr) return {};
  return AskTopicIds(client, topics, kTopicIdTimeoutMs);
}

ByTopic<TopicShape> BrokerCluster::AskShapes(const std::vector<std::string>& topics) {
  absl::StatusOr<std::map<std::string, absl::StatusOr<TopicShape>>> known =
      absl::UnavailableError("no client to ask with");
  if (rd_kafka_t* const client = AskingClient(); client != nullptr) {
    for (const std::string& topic : topics) {
      if (!handles_.contains(topic)) {
        handles_.emplace(topic, rd_kafka_topic_new(client, topic.c_str(), nullptr));
      }
    }
    known = ShapesOfHandles(client, kShapesTimeoutMs);
  }
  ByTopic<TopicShape> shapes;
  for (const std::string& topic : topics) {
    if (!known.ok()) {
      shapes.emplace(topic, known.status());
    } else if (const auto found = known->find(topic); found != known->end()) {
      shapes.emplace(topic, found->second);
    } else {
      shapes.emplace(topic, absl::UnavailableError(absl::StrCat("the broker says nothing of topic ", topic)));
    }
  }
  return shapes;
}

rd_kafka_t* BrokerCluster::AskingClient() {
  if (asking_ == nullptr) {
    // The end of a log is that of the consumer: the last stable offset.
    ClientConfig config = ReaderConfig(options_, "read_committed");
    if (auto client = config.MakeConsumer(); client.ok()) asking_ = *std::move(client);
  }
  return asking_.get();
}

absl::Status BrokerCluster::ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                       const std::function<void(const InputRecord&)>& see,
                                       const GoOn& go_on) {
  return kafka::ReadTotals(options_, topic, partitions, see, go_on);
}

}  // namespace lethe::kafka
