#include "connectors/kafka/cluster.h"

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
  return kafka::CountPartitions(consumer_.client(), topic, kCountTimeoutMs);
}

std::string BrokerCluster::TopicId(const std::string& topic) {
  return AskTopicId(consumer_.client(), topic, kTopicIdTimeoutMs);
}

absl::Status BrokerCluster::ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                       const std::function<void(const InputRecord&)>& see,
                                       const GoOn& go_on) {
  return kafka::ReadTotals(options_, topic, partitions, see, go_on);
}

}  // namespace lethe::kafka
