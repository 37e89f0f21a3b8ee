#include "connectors/kafka/preflight/inspection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/group/group_state.h"
#include "connectors/kafka/options/stage_options.h"
#include "connectors/kafka/preflight/topic_rules.h"
#include "connectors/kafka/topics/topics.h"

namespace lethe::kafka {
namespace {

constexpr int kRequestTimeoutMs = 1500;

absl::StatusOr<Topics> InspectOnce(const DaemonOptions& options, rd_kafka_t* client) {
  const auto described = DescribeTopics(options, client);
  if (!described.ok()) return described.status();
  Topics topics;
  topics.partitions = described->input.partitions;
  topics.output_partitions = described->output.partitions;
  topics.input_max_bytes = described->input.max_message_bytes();
  topics.output_max_bytes = described->output.max_batch_bytes();
  topics.output_rules = described->output.record_rules();
  for (const TopicFacts& counter : described->counters) {
    topics.counter_max_bytes.push_back(counter.max_batch_bytes());
  }
  if (described->divert) topics.divert_max_bytes = described->divert->max_batch_bytes();
  topics.least_partitions = INT32_MAX;
  for (const std::string& topic : TopicsOfSamePartition(options)) {
    const auto count = CountPartitions(client, topic, kRequestTimeoutMs);
    topics.least_partitions = std::min(topics.least_partitions, count.value_or(0));
  }
  for (const Finding& finding : ApplyTopicRules(options, *described)) {
    if (finding.severity == Finding::Severity::kOk) continue;
    if (IsForBeginners(finding)) {
      const auto committed = GroupState(client, options.input).Committed(topics.partitions);
      if (!committed.ok()) return committed.status();
      if (!HasBegun(*committed)) return absl::FailedPreconditionError(finding.Text());
    } else if (finding.severity == Finding::Severity::kError) {
      return absl::FailedPreconditionError(finding.Text());
    }
    topics.warnings.push_back(finding.Text());
  }
  for (int32_t partition = 0; partition < topics.partitions; ++partition) {
    const auto bounds = BoundsOf(client, options.input, partition, kRequestTimeoutMs);
    if (!bounds.ok()) return bounds.status();
    topics.end_offsets.push_back(bounds->end);
  }
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
    auto answer = InspectOnce(options, client);
    if (answer.ok()) topics = std::move(*answer);
    return answer.status();
  });
  if (!asked.ok()) return asked;
  return topics;
}

}  // namespace lethe::kafka
