#include "connectors/kafka/repartition/repartition_topic.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/options/stage_options.h"
#include "connectors/kafka/topics/topics.h"
#include "src/pipeline/restore/commit_metadata.h"

namespace lethe::kafka {
namespace {

// What the two headers add to a record, generously: what the input took must fit.
constexpr int64_t kHeaderBytes = 256;
// Records that are no longer needed go soon, and not only when a gigabyte of them has come together.
constexpr int64_t kSegmentBytes = 52428800;
constexpr int kCreateTimeoutMs = 5000;

// The client is of the group that copies.
absl::Status EnsureOnce(const DaemonOptions& options, rd_kafka_t* client) {
  const std::string name = RepartitionTopic(options);
  const absl::Status exists = CountPartitions(client, name, kCreateTimeoutMs).status();
  if (!absl::IsNotFound(exists)) return WithGrant("repartition", name, exists);
  const auto input = DescribeInput(options, client);
  if (!input.ok()) return input.status();
  const auto committed = GroupState(client, options.input).Committed(input->partitions);
  if (absl::IsPermissionDenied(committed.status())) {
    const std::string group = RoutingOptions(options).group;
    return absl::PermissionDeniedError(absl::StrCat("group ", group, ": ", committed.status().message(),
                                                    ": grant this user Read on group ", group));
  }
  if (!committed.ok()) return committed.status();
  // Another instance may have made it a moment ago: who waits for topics asks again.
  if (const auto lost = LostWithTopic(options, *committed)) return absl::NotFoundError(lost->Text());
  if (absl::Status created =
          CreateTopic(client, name, {input->partitions, input->replicas}, RepartitionConfig(*input));
      !created.ok())
    return WithGrant("repartition", name, created);
  spdlog::info("topic {} was made, with {} partitions", name, input->partitions);
  return absl::OkStatus();
}

}  // namespace

std::map<std::string, std::string> RepartitionConfig(const TopicFacts& input) {
  const int64_t max_bytes = std::min<int64_t>(input.max_message_bytes() + kHeaderBytes, INT32_MAX);
  std::map<std::string, std::string> config = {
      {"cleanup.policy", "delete"},
      {"retention.ms", "-1"},
      {"retention.bytes", "-1"},
      {"segment.bytes", absl::StrCat(std::max(kSegmentBytes, max_bytes))},
      {"message.timestamp.type", "CreateTime"},
      {"max.message.bytes", absl::StrCat(max_bytes)}};
  // Which of them there are depends on the brokers' version.
  for (const char* bound : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
    if (input.config.contains(bound)) config[bound] = absl::StrCat(INT64_MAX);
  }
  // What was routed is committed in the input's group: it must be as safe as the input is.
  constexpr char kMinInSync[] = "min.insync.replicas";
  if (const auto least = input.config.find(kMinInSync); least != input.config.end()) {
    config[kMinInSync] = least->second;
  }
  return config;
}

std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed) {
  const bool has_copied = std::any_of(committed.begin(), committed.end(), [](const CommittedOffset& each) {
    const auto metadata = CommitMetadata::Parse(each.metadata);
    // Of a metadata that cannot be read it is not known.
    return metadata.ok() ? metadata->origin < each.offset : !absl::IsNotFound(metadata.status());
  });
  if (!has_copied) return std::nullopt;
  const std::string group = RoutingOptions(options).group;
  return Finding{
      Finding::Severity::kError, "create", absl::StrCat("repartition topic ", RepartitionTopic(options)),
      absl::StrCat("is gone, and group ", group, " has routed records of ", options.input,
                   " to it: what of them was not judged yet would be left out, and copies of what was would "
                   "pass"),
      absl::StrCat("stop every instance, then have them routed again: kafka-consumer-groups.sh "
                   "--bootstrap-server ",
                   options.brokers, " --group ", group, " --topic ", options.input,
                   " --reset-offsets --to-earliest --execute, or --to-datetime with a time before the first "
                   "that was not judged; what is read again and is in ",
                   options.output, " already is written there once more",
                   options.counters.empty() ? "" : ", and counted again",
                   ", and copies of what is not read again pass (a new "
                   "--group does the same, from where --start says)")};
}

absl::Status EnsureRepartitionTopic(const DaemonOptions& options, const StopFlag& stop) {
  return AwaitTopics(RoutingOptions(options), stop,
                     [&](rd_kafka_t* client) { return EnsureOnce(options, client); });
}

absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, rd_kafka_t* client,
                                       const TopicFacts& input) {
  return CreateTopic(client, RepartitionTopic(options), {input.partitions, input.replicas},
                     RepartitionConfig(input), /*validate_only=*/true);
}

}  // namespace lethe::kafka
