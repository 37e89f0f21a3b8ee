#include "connectors/kafka/cluster.h"

#include <utility>

#include "connectors/kafka/counters/counter_totals.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/preflight/log_sample.h"
#include "connectors/kafka/topics/topic_id.h"
#include "connectors/kafka/topics/topics.h"

namespace lethe::kafka {
namespace {

// The worker reads nothing meanwhile.
constexpr int kCountTimeoutMs = 500;
constexpr int kTopicIdTimeoutMs = 1000;

}  // namespace

absl::StatusOr<std::vector<CommittedOffset>> BrokerCluster::Committed(const std::string& topic,
                                                                      int32_t partitions) {
  return AskCommitted(consumer_.client(), topic, partitions);
}

absl::StatusOr<LogState> BrokerCluster::Log(const std::string& topic, int32_t partition) {
  return AskLog(consumer_.client(), topic, partition);
}

absl::StatusOr<absl::Time> BrokerCluster::TimeAt(const std::string& topic, int32_t partition,
                                                 int64_t offset) {
  // Another client, since the worker's own is in the middle of its assignment.
  ClientErrors errors;
  auto client = MakeAskingClient(options_, errors);
  if (!client.ok()) return client.status();
  std::vector<int64_t> from(static_cast<size_t>(partition) + 1, -1);
  from.back() = offset;
  const auto times = AskTimes(client->get(), topic, from);
  if (!times.ok()) return times.status();
  return times->back();
}

absl::StatusOr<int32_t> BrokerCluster::CountPartitions(const std::string& topic) {
  if (flows_.size() == 1) return kafka::CountPartitions(consumer_.client(), topic, kCountTimeoutMs);
  rd_kafka_t* const client = AskingClient();
  if (client == nullptr) return absl::UnavailableError("no client to ask with");
  auto count = kafka::CountPartitions(client, topic, kCountTimeoutMs);
  if (!count.ok()) return count;
  const auto [known, is_new] = counts_.try_emplace(topic, *count);
  // The consumer hears of new partitions at once only if it asks itself.
  if (!is_new && std::exchange(known->second, *count) != *count) {
    return kafka::CountPartitions(consumer_.client(), topic, kCountTimeoutMs);
  }
  return count;
}

std::string BrokerCluster::TopicId(const std::string& topic) {
  rd_kafka_t* const client = flows_.size() == 1 ? consumer_.client() : AskingClient();
  return client == nullptr ? "" : AskTopicId(client, topic, kTopicIdTimeoutMs);
}

rd_kafka_t* BrokerCluster::AskingClient() {
  if (asking_ == nullptr) {
    if (auto client = MakeAskingClient(options_, errors_); client.ok()) asking_ = *std::move(client);
  }
  return asking_.get();
}

absl::Status BrokerCluster::ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                       const std::function<void(const InputRecord&)>& see,
                                       const GoOn& go_on) {
  return kafka::ReadTotals(options_, topic, partitions, see, go_on);
}

}  // namespace lethe::kafka
