#include "src/pipeline/preflight/own_topics.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/describe_topics.h"
#include "src/pipeline/preflight/repartition_rules.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// So that a restart reads little more than one record for each key.
const TopicConfig kTotalsConfig = {
    {"cleanup.policy", "compact"}, {"segment.ms", "3600000"}, {"segment.bytes", "104857600"}};
// Frees the room of old snapshots soon.
const TopicConfig kSnapshotsConfig = {
    {"cleanup.policy", "compact"}, {"segment.ms", "600000"}, {"delete.retention.ms", "600000"}};

using ConfigFor = absl::FunctionRef<absl::StatusOr<TopicConfig>(const TopicFacts& input)>;

// The number of its partitions.
absl::StatusOr<int32_t> EnsureTopic(const DaemonOptions& options, Brokers& brokers, absl::string_view role,
                                    const std::string& name, ConfigFor config_for) {
  const auto partitions = brokers.CountPartitions(name);
  if (partitions.ok()) return partitions;
  if (!absl::IsNotFound(partitions.status())) return WithGrant(role, name, partitions.status());
  const auto input = DescribeInputs(options, options.inputs(), brokers);
  if (!input.ok()) return input.status();
  const auto config = config_for(*input);
  if (!config.ok()) return config.status();
  const absl::Status created = brokers.CreateTopic(
      {.name = name, .partitions = input->partitions, .config = *config, .replicas = input->replicas},
      /*validate_only=*/false);
  if (!created.ok()) return WithGrant(role, name, created);
  spdlog::info("topic {} created, with {}", name, Several(input->partitions, "partition"));
  return input->partitions;
}

// The configuration of a repartition topic that may be created: nothing is lost with it.
absl::StatusOr<TopicConfig> ConfigIfNew(const DaemonOptions& options, Brokers& routers,
                                        const TopicFacts& input) {
  for (const std::string& each : options.inputs()) {
    const auto committed = routers.AskCommitted(each);
    if (absl::IsNotFound(committed.status())) continue;  // another one exists
    if (absl::IsPermissionDenied(committed.status())) {
      const std::string group = RoutingGroup(options);
      return absl::PermissionDeniedError(absl::StrCat("group ", group, ": ", committed.status().message(),
                                                      ": grant this user Read on group ", group));
    }
    if (!committed.ok()) return committed.status();
    DaemonOptions of_input = options;
    of_input.input = each;
    // Another instance may have created it a moment ago: the caller asks again.
    if (const auto lost = LostWithTopic(of_input, *committed)) return absl::NotFoundError(lost->Text());
  }
  return RepartitionConfig(input);
}

// Whether another instance is in the group: not a former life of this one, which may have crashed.
bool HasOthers(const ProcessOptions& process, Brokers& brokers) {
  const auto members = brokers.AskMembers();
  return members.ok() && absl::c_any_of(*members, [&](const NamedMember& each) {
           return !InstanceClaim::HasName(process, each);
         });
}

}  // namespace

absl::Status EnsureTotalsTopics(const DaemonOptions& options, Brokers& brokers) {
  for (const CounterOptions& counter : options.counters) {
    if (counter.mode != CounterMode::kTotal) continue;
    const auto made = EnsureTopic(options, brokers, "totals", counter.output,
                                  [](const TopicFacts&) { return kTotalsConfig; });
    if (!made.ok()) return made.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> EnsureSnapshotTopic(const DaemonOptions& options, Brokers& brokers) {
  return EnsureTopic(options, brokers, "snapshot", options.process.snapshots.topic,
                     [](const TopicFacts&) { return kSnapshotsConfig; });
}

absl::Status EnsureRepartitionTopic(const DaemonOptions& options, Brokers& routers) {
  const std::string topic = RepartitionTopic(options);
  const auto made = EnsureTopic(options, routers, "repartition", topic, [&](const TopicFacts& input) {
    return ConfigIfNew(options, routers, input);
  });
  if (!made.ok()) return made.status();
  const absl::Status there = routers.CountPartitions(topic).status();
  return absl::IsNotFound(there) ? absl::UnavailableError(there.message()) : there;
}

absl::Status MayCreateRepartitionTopic(const DaemonOptions& options, Brokers& brokers,
                                       const TopicFacts& input) {
  return brokers.CreateTopic({.name = RepartitionTopic(options),
                              .partitions = input.partitions,
                              .config = RepartitionConfig(input),
                              .replicas = input.replicas},
                             /*validate_only=*/true);
}

void WarnOfLoss(const DaemonOptions& options, Brokers& routers, Brokers& deduplicators) {
  // The routers' first: what they have routed since is not judged.
  for (const std::string& input : options.inputs()) {
    const auto routed = routers.AskCommitted(input);
    const auto judged = deduplicators.AskCommitted(RepartitionTopic(options));
    if (!routed.ok() || !judged.ok()) continue;
    DaemonOptions of_input = options;
    of_input.input = input;
    const auto lost = LostInTopic(of_input, *routed, *judged);
    if (!lost) continue;
    if (!HasOthers(options.process, routers)) spdlog::warn("{}", lost->Text());
    return;
  }
}

}  // namespace lethe
