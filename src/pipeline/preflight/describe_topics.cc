#include "src/pipeline/preflight/describe_topics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
namespace {

absl::StatusOr<TopicFacts> DescribeAs(const DaemonOptions& options, absl::string_view role,
                                      const std::string& name, const TopicFacts& like, Brokers& brokers) {
  auto topic = brokers.DescribeTopic(name);
  if (absl::IsPermissionDenied(topic.status())) {
    return WithGrant(role, name,
                     absl::PermissionDeniedError(absl::StrCat(role, " ", topic.status().message())));
  }
  if (!absl::IsNotFound(topic.status())) return topic;
  // An input exists if its name is right; an output is new at first.
  const std::vector<std::string> none;
  return MissingTopic(options, role, name, like,
                      role == "input" ? brokers.TopicNames().value_or(none) : none);
}

}  // namespace

absl::StatusOr<TopicFacts> DescribeInputs(const DaemonOptions& options, const std::vector<std::string>& names,
                                          Brokers& brokers) {
  TopicFacts all;
  absl::Status missing;
  for (const std::string& name : names) {
    auto topic = DescribeAs(options, "input", name, {}, brokers);
    if (!topic.ok()) {
      if (!absl::IsNotFound(topic.status())) return topic;
      if (missing.ok()) missing = topic.status();
      continue;
    }
    if (all.partitions == 0) {
      all = *std::move(topic);
    } else {
      all.Join(*topic);
    }
  }
  if (all.partitions == 0) return missing;
  return all;
}

absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, Brokers& brokers) {
  AllTopics topics;
  absl::Status asked;
  const auto describe = [&](absl::string_view role, const std::string& name, const TopicFacts& like,
                            auto& into) {
    auto topic = DescribeAs(options, role, name, like, brokers);
    asked = topic.status();
    if (topic.ok()) into = *std::move(topic);
    const bool creates_it = role == "snapshot" || role == "repartition";
    if (creates_it && absl::IsNotFound(asked)) asked = absl::OkStatus();
  };
  describe("input", options.input, {}, topics.input);
  if (asked.ok() && !options.half.routed_from.empty()) {
    auto origin = DescribeInputs(options, options.half.routed_from, brokers);
    asked = origin.status();
    if (origin.ok()) topics.origin = *std::move(origin);
  }
  const TopicFacts like = topics.with_places();
  if (asked.ok()) describe("output", options.output, like, topics.output);
  for (const CounterOptions& each : options.counters) {
    if (!asked.ok()) return asked;
    TopicFacts& counter = topics.counters.emplace_back();
    counter.name = each.output;
    describe(each.mode == CounterMode::kTotal ? "totals" : "counter", each.output, topics.input, counter);
    if (each.mode == CounterMode::kTotal && absl::IsNotFound(asked))
      asked = absl::OkStatus();  // created later
  }
  if (asked.ok() && !options.divert.empty()) describe("divert", options.divert, like, topics.divert);
  if (asked.ok() && !options.process.snapshots.topic.empty()) {
    describe("snapshot", options.process.snapshots.topic, {}, topics.snapshots);
  }
  if (asked.ok() && options.has_two_stages()) {
    describe("repartition", RepartitionTopic(options), {}, topics.repartition);
  }
  if (!asked.ok()) return asked;
  return topics;
}

absl::Status CheckListed(const DaemonOptions& options, const std::map<std::string, int32_t>& listed) {
  std::vector<std::pair<absl::string_view, std::string>> written = {{"output", options.output}};
  for (const CounterOptions& each : options.counters) {
    if (each.mode != CounterMode::kTotal) written.emplace_back("counter", each.output);
  }
  if (!options.divert.empty()) written.emplace_back("divert", options.divert);
  for (const auto& [role, name] : written) {
    // Kafka's own are in no list.
    if (listed.contains(name) || absl::StartsWith(name, "__")) continue;
    TopicFacts like;
    for (const std::string& input : options.inputs()) {
      if (const auto found = listed.find(input); found != listed.end()) {
        like.partitions = std::max(like.partitions, found->second);
      }
    }
    return absl::NotFoundError(absl::StrCat(MissingTopic(options, role, name, like, {}).message(),
                                            "; if it does exist, grant this user Describe and Write on it"));
  }
  return absl::OkStatus();
}

}  // namespace lethe
