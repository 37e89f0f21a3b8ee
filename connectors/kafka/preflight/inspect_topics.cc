#include "connectors/kafka/preflight/inspect_topics.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/counters/counter_totals.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/repartition/repartition_topic.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/topic_rules.h"

namespace lethe::kafka {
namespace {

constexpr int kInspectTimeoutMs = 1500;
constexpr absl::Duration kFindPatience = absl::Seconds(10);
constexpr int kFindTimeoutMs = 3000;

// In one request: hundreds of topics are inspected in a row.
absl::Status AddEndOffsets(rd_kafka_t* client, const std::string& input, Topics& topics) {
  std::vector<int32_t> partitions(static_cast<size_t>(topics.partitions));
  std::iota(partitions.begin(), partitions.end(), 0);
  const auto ends = AskEnds(client, input, partitions, absl::Milliseconds(kInspectTimeoutMs));
  if (!ends.ok()) return ends.status();
  for (const int32_t partition : partitions) {
    if (const auto end = ends->find(partition); end != ends->end()) {
      topics.end_offsets.push_back(end->second);
      continue;
    }
    // The embedded broker answers for one partition only.
    const auto bounds = BoundsOf(client, input, partition, kInspectTimeoutMs);
    if (!bounds.ok()) return bounds.status();
    topics.end_offsets.push_back(bounds->end);
  }
  return absl::OkStatus();
}

// Unavailable: ask again.
absl::StatusOr<Topics> InspectTopicsOnce(const DaemonOptions& options, rd_kafka_t* client) {
  const auto described = DescribeTopics(options, client);
  if (!described.ok()) return described.status();
  Topics topics = TopicsOf(*described);
  topics.least_partitions = INT32_MAX;
  for (const std::string& topic : TopicsOfSamePartition(options)) {
    const auto count = CountPartitions(client, topic, kInspectTimeoutMs);
    topics.least_partitions = std::min(topics.least_partitions, count.value_or(0));
  }
  auto warnings = WarningsAtStart(ApplyTopicRules(options, *described), [&]() -> absl::StatusOr<bool> {
    const auto committed = AskCommitted(client, options.input, topics.partitions);
    if (!committed.ok()) return committed.status();
    return HasBegun(*committed);
  });
  if (!warnings.ok()) return warnings.status();
  topics.warnings = *std::move(warnings);
  const absl::Status ends = AddEndOffsets(client, options.input, topics);
  if (!ends.ok()) return ends;
  return topics;
}

}  // namespace

absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop) {
  for (const std::string& other : WrittenTopics(options)) {
    if (other == options.input) {
      return absl::InvalidArgumentError(
          absl::StrCat("topic ", options.input, " is input and output at once: it would feed itself"));
    }
  }
  Topics topics;
  absl::Status asked = AwaitTopics(options, stop, [&](rd_kafka_t* client) {
    auto answer = InspectTopicsOnce(options, client);
    if (answer.ok()) topics = std::move(*answer);
    return answer.status();
  });
  if (!asked.ok()) return asked;
  return topics;
}

absl::StatusOr<TopicList::Inputs> FindInputs(rd_kafka_t* client, const TopicList& list) {
  const auto names = Patiently(kFindPatience, [&]() -> absl::StatusOr<std::vector<std::string>> {
    std::vector<std::string> answer = TopicNames(client);
    if (answer.empty()) return absl::UnavailableError("asking for the topics of the cluster: no answer");
    return answer;
  });
  if (!names.ok()) return names.status();
  return list.Match({names->begin(), names->end()});
}

std::vector<std::string> BrokerInspector::Names() { return TopicNames(client_); }

absl::StatusOr<std::vector<CommittedOffset>> BrokerInspector::AskCommitted(const std::string& topic) {
  const auto partitions = CountPartitions(client_, topic, kFindTimeoutMs);
  if (!partitions.ok()) return partitions.status();
  return kafka::AskCommitted(client_, topic, *partitions);
}

absl::Status BrokerInspector::EnsureTotals(const DaemonOptions& options) {
  return EnsureTotalsTopicsOnce(options, client_);
}

absl::Status BrokerInspector::EnsureRepartition(const DaemonOptions& options) {
  if (routing_client_ == nullptr) {
    auto client = MakeAskingClient(RoutingOptions(options, options.input), routing_errors_);
    if (!client.ok()) return client.status();
    routing_client_ = *std::move(client);
  }
  rd_kafka_t* const client = routing_client_.get();
  if (absl::Status made = EnsureRepartitionTopicOnce(options, client); !made.ok()) return made;
  const absl::Status there = CountPartitions(client, RepartitionTopic(options), kFindTimeoutMs).status();
  // It was created a moment ago.
  return absl::IsNotFound(there) ? absl::UnavailableError(there.message()) : there;
}

void BrokerInspector::WarnOfLoss(const DaemonOptions& options) {
  kafka::WarnOfLoss(options, routing_client_.get(), client_);
}

absl::StatusOr<Topics> BrokerInspector::Inspect(const DaemonOptions& options) {
  return InspectTopicsOnce(options, options.half.routing ? routing_client_.get() : client_);
}

}  // namespace lethe::kafka
