#include "src/pipeline/options/stage_options.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "src/engines/memory_parts.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/text/fixed_hash.h"
#include "src/text/format.h"

namespace lethe {
namespace {

// How a topic that is routed begins again. Its records that are routed already would be judged beside those
// that are routed again.
std::string OrRouteAgain(const ProcessOptions& process, const std::string& repartition,
                         const std::string& routing_group, const std::vector<std::string>& inputs) {
  return absl::StrCat(
      "or stop every instance and have all routed and judged again, from start on, with copies of what is in "
      "the output: ",
      KafkaCommand("kafka-topics.sh", process, absl::StrCat("--delete --topic ", repartition)), ", then ",
      DeleteOffsets(process, routing_group, inputs));
}

}  // namespace

std::string StartOver(const DaemonOptions& options) {
  return absl::StrCat("--group ", options.process.group, "-2 --output ", options.output,
                      "-2 (lethe check --create with the same flags creates it like the input)");
}

std::string RepartitionTopic(const DaemonOptions& options) {
  return absl::StrCat(options.process.group, "-", options.merged.empty() ? options.input : options.output,
                      "-repartition");
}

std::string RoutingGroup(const DaemonOptions& options) {
  return absl::StrCat(options.process.group, "-repartition");
}

DaemonOptions RoutingOptions(const DaemonOptions& options, const std::string& input) {
  DaemonOptions routing = options;
  routing.input = input;
  routing.process.group = RoutingGroup(options);
  routing.output = RepartitionTopic(options);
  routing.half.routing = {.to = {options.output, options.divert}, .lead = LeadOf(options.stage.horizon)};
  routing.counters.clear();
  routing.policies = RoutingPolicies(options.policies);
  if (!routing.policies.diverts()) routing.divert.clear();
  routing.process.snapshots = {};
  // Routers remember no ids: a restart reads a second of the log again.
  routing.stage = {.horizon = absl::Seconds(1), .engine = Engine::kExact, .audit_share = 0};
  return routing;
}

absl::Duration LeadOf(absl::Duration horizon) { return horizon / 16; }

Policies RoutingPolicies(const Policies& policies) {
  return {.on_undeliverable = policies.on_undeliverable,
          .on_unreadable = policies.on_unreadable,
          .on_unread_deleted = policies.on_unread_deleted};
}

DaemonOptions JudgingOptions(const DaemonOptions& options) {
  DaemonOptions judging = options;
  judging.input = RepartitionTopic(options);
  judging.half.routed_from = options.inputs();
  // A record may come to the repartition topic a lead early, and its copy a lead late.
  judging.stage.horizon = options.stage.horizon + 2 * LeadOf(options.stage.horizon);
  judging.start = Start::kEarliest;  // `start` applies to the input, for the routers
  return judging;
}

std::string LostRepartitionTopic(const DaemonOptions& half) {
  const std::optional<Routing>& routing = half.half.routing;
  return absl::StrCat(
      "repartition topic ", routing ? half.output : half.input,
      " was deleted: its records that were not judged are lost unless they are routed again. Stop every "
      "instance, then ",
      ResetOffsets(half.process, routing ? half.process.group : RoutingGroup(half),
                   routing ? std::vector<std::string>{half.input} : half.half.routed_from,
                   "--to-datetime TIME"),
      " with a TIME before the first record that was not judged (2026-01-31T12:00:00.000, UTC), and start "
      "lethe: it makes the topic. Records read again are written to ",
      routing ? routing->to.front() : half.output, " again");
}

uint64_t TotalsFingerprint(const CounterOptions& counter) {
  return FixedHash(counter.output, FixedHash(counter.name).a).a;
}

std::string OtherId(const DaemonOptions& options) {
  const std::string id = options.record.id.ToString();
  if (options.half.routing) {
    return absl::StrCat(
        "group ", options.process.group, " has so far routed by another id than ", id, ", or ",
        options.output,
        " has another number of partitions than before: copies would go to different "
        "partitions. Use another group, ",
        OrRouteAgain(options.process, options.output, options.process.group, {options.input}));
  }
  const std::string judged =
      absl::StrCat("group ", options.process.group, " has so far judged by another id than ", id,
                   ": earlier ids would not be recognized");
  if (!options.half.routed_from.empty()) {
    return absl::StrCat(
        judged, ". Use another group, ",
        OrRouteAgain(options.process, options.input, RoutingGroup(options), options.half.routed_from));
  }
  return absl::StrCat(judged, ". Use another group and a new output, for example ", StartOver(options),
                      ". Or go on with this one: ", ResetOrReadAgain(options.process, options.input));
}

std::vector<std::string> TopicsOfOtherScope(const DaemonOptions& options) {
  if (options.half.routing) return {};
  if (!options.half.routed_from.empty()) return options.half.routed_from;
  DaemonOptions merged = options;
  merged.merged = {options.input};
  return {RepartitionTopic(options), RepartitionTopic(merged)};
}

absl::Duration StatedHorizon(const DaemonOptions& options) {
  // JudgingOptions() adds an eighth.
  return options.half.routed_from.empty() ? options.stage.horizon : options.stage.horizon * 8 / 9;
}

std::vector<std::string> WrittenTopics(const DaemonOptions& options) {
  std::vector<std::string> topics = {options.output};
  if (options.has_two_stages()) {
    topics.push_back(RepartitionTopic(options));
  }
  for (const CounterOptions& counter : options.counters) topics.push_back(counter.output);
  if (!options.divert.empty()) topics.push_back(options.divert);
  return topics;
}

std::vector<std::string> TopicsOfSamePartition(const DaemonOptions& options) {
  std::vector<std::string> topics;
  if (options.half.routing) topics = options.half.routing->to;
  for (const CounterOptions& counter : options.counters) {
    if (counter.mode == CounterMode::kTotal) topics.push_back(counter.output);
  }
  if (!options.half.routing && options.half.routed_from.empty()) {
    topics.push_back(options.output);
    topics.push_back(options.divert);
  }
  std::erase(topics, "");
  return topics;
}

absl::StatusOr<SmallestTopic> LeastPartitions(
    const DaemonOptions& options,
    absl::FunctionRef<absl::StatusOr<int32_t>(const std::string& topic)> count) {
  SmallestTopic least = {"", INT32_MAX};
  const std::vector<std::string> same = TopicsOfSamePartition(options);
  for (const std::string& topic : same) {
    const auto counted = count(topic);
    if (!counted.ok()) return counted.status();
    if (*counted < least.partitions) least = {topic, *counted};
  }
  for (const std::string& topic : WrittenTopics(options)) {
    if (absl::c_linear_search(same, topic)) continue;
    if (const auto counted = count(topic); !counted.ok()) return counted.status();
  }
  return least;
}

int64_t LeastMemory(const DaemonOptions& options, int32_t partitions) {
  constexpr int64_t kKiB = 1024;
  return (SmallestLimitBytes(options.stage, LimitsOf(options.stage.engine), partitions) + kKiB - 1) / kKiB *
         kKiB;
}

std::string LeastMemoryText(const DaemonOptions& options, int32_t partitions) {
  return absl::StrCat("memory is ", BytesSetting(options.stage.memory_limit_bytes), ", and the ", partitions,
                      " partitions of ", options.input, " alone need at least ",
                      BytesSetting(LeastMemory(options, partitions)), " where one instance has all of them");
}

}  // namespace lethe
