#include "src/pipeline/preflight/repartition_rules.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/restore/commit_metadata.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

// The most that the two headers add to a record.
constexpr int64_t kHeaderBytes = 256;
// Small segments, so that deleted records free their room soon.
constexpr int64_t kSegmentBytes = 52428800;

// Whether the routers' group has come further than to where it started.
bool HasRouted(const std::vector<CommittedOffset>& committed) {
  return absl::c_any_of(committed, [](const CommittedOffset& each) {
    const auto metadata = CommitMetadata::Parse(each.metadata);
    // Unreadable metadata counts as routed.
    return metadata.ok() ? metadata->origin.offset < each.offset : !absl::IsNotFound(metadata.status());
  });
}

std::string RouteAgain(const DaemonOptions& options) {
  return absl::StrCat(
      "have them routed again: stop every instance, then ",
      ResetOffsets(options.process, RoutingGroup(options), {options.input}, "--to-earliest"),
      ", or --to-datetime with a time before the first unjudged record. Records read again that are in ",
      options.output, " already are written there again",
      options.counters.empty() ? "" : ", and counted again",
      "; copies of records before that time pass (a new --group does the same, from --start)");
}

}  // namespace

TopicConfig RepartitionConfig(const TopicFacts& input) {
  const int64_t max_bytes = std::min<int64_t>(input.max_message_bytes() + kHeaderBytes, INT32_MAX);
  TopicConfig config = {{"cleanup.policy", "delete"},
                        {"retention.ms", "-1"},
                        {"retention.bytes", "-1"},
                        {"segment.bytes", absl::StrCat(std::max(kSegmentBytes, max_bytes))},
                        {"message.timestamp.type", "CreateTime"},
                        {"max.message.bytes", absl::StrCat(max_bytes)}};
  // The brokers' version decides which exist.
  for (const char* bound : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
    if (input.config.contains(bound)) config[bound] = absl::StrCat(INT64_MAX);
  }
  // Routed records are committed in the input's group, so the topic must be as safe as the input.
  constexpr char kMinInSync[] = "min.insync.replicas";
  if (const auto least = input.config.find(kMinInSync); least != input.config.end()) {
    config[kMinInSync] = least->second;
  }
  return config;
}

std::optional<Finding> LostWithTopic(const DaemonOptions& options,
                                     const std::vector<CommittedOffset>& committed) {
  if (!HasRouted(committed)) return std::nullopt;
  return Finding{
      Severity::kError, "create", absl::StrCat("repartition topic ", RepartitionTopic(options)),
      absl::StrCat("is gone, and group ", RoutingGroup(options), " has routed records of ", options.input,
                   " to it: unjudged ones would be lost, and copies of judged ones would pass"),
      absl::StrCat("stop every instance, then ", RouteAgain(options))};
}

std::optional<Finding> LostInTopic(const DaemonOptions& options, const std::vector<CommittedOffset>& routed,
                                   const std::vector<CommittedOffset>& judged) {
  const auto unjudged = absl::c_count_if(judged, [](const CommittedOffset& each) { return each.offset < 0; });
  if (unjudged == 0 || !HasRouted(routed)) return std::nullopt;
  return Finding{
      Severity::kWarning, "create", absl::StrCat("repartition topic ", RepartitionTopic(options)),
      absl::StrCat("may have been deleted and created again: group ", RoutingGroup(options),
                   " has routed records of ", options.input, ", and group ", options.process.group,
                   " has no committed offset of ", unjudged, " of ", judged.size(),
                   " partitions: then unjudged records are lost, and copies of judged ones pass"),
      absl::StrCat("nothing, if lethe was started for the first time a moment ago. Else stop every instance, "
                   "and ",
                   RouteAgain(options))};
}

Finding CreationFinding(const DaemonOptions& options, const TopicFacts& input, const absl::Status& may) {
  const std::string topic = RepartitionTopic(options);
  const std::string where = absl::StrCat("repartition topic ", topic);
  if (may.ok()) {
    return {Severity::kOk, "create", where,
            absl::StrCat("is made at the start, with ", Several(input.partitions, "partition"),
                         "; this user may"),
            ""};
  }
  return {Severity::kError, "create", where, absl::StrCat("cannot be made: ", may.message()),
          absl::StrCat(
              "grant this user Create on topic ", topic, ", or make it: ",
              absl::StrJoin(CreateCommand(options.process.brokers, {.name = topic,
                                                                    .partitions = input.partitions,
                                                                    .config = RepartitionConfig(input),
                                                                    .replicas = std::max(input.replicas, 1)}),
                            " "))};
}

}  // namespace lethe
