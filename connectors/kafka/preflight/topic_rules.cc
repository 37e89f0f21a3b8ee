#include "connectors/kafka/preflight/topic_rules.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/text/format.h"

namespace lethe::kafka {
namespace {

using Severity = Finding::Severity;

// Findings of one topic, by its role.
class Rules {
 public:
  Rules(const char* role, const TopicFacts& topic, std::vector<Finding>& findings)
      : topic_(topic), where_(absl::StrCat(role, " topic ", topic.name)), findings_(findings) {}

  // False if nothing is known but the partitions.
  bool IsDescribed() {
    if (!topic_.may_be_described) {
      Add(Severity::kWarning, "description",
          "may not be described by this user: its cleanup policy, retention and size limit are not checked",
          absl::StrCat("grant DescribeConfigs on topic ", topic_.name));
    }
    return !topic_.config.empty();
  }

  void IsNotCompacted(absl::string_view why) {
    const std::string policy = topic_.Value("cleanup.policy");
    if (!absl::StrContains(policy, "compact")) {
      Add(Severity::kOk, "cleanup.policy", absl::StrCat("has cleanup.policy=", policy), "");
      return;
    }
    Add(Severity::kError, "cleanup.policy",
        absl::StrCat("is compacted (cleanup.policy=", policy, "), and ", why),
        "use a topic with cleanup.policy=delete");
  }

  void IsCompacted() {
    const std::string policy = topic_.Value("cleanup.policy");
    if (policy == "compact") {
      Add(Severity::kOk, "cleanup.policy", "has cleanup.policy=compact", "");
      return;
    }
    Add(Severity::kWarning, "cleanup.policy",
        absl::StrCat(
            "has cleanup.policy=", policy, ": ",
            absl::StrContains(policy, "compact")
                ? "snapshots that count are deleted with the others when they are old"
                : "no snapshot is deleted when another has replaced it, and all are when they are old",
            ", and the filters are then rebuilt from the input"),
        absl::StrCat("kafka-configs.sh --alter --entity-type topics --entity-name ", topic_.name,
                     " --add-config cleanup.policy=compact"));
  }

  void KeepsTotals() {
    const std::string policy = topic_.Value("cleanup.policy");
    if (policy == "compact") {
      Add(Severity::kOk, "cleanup.policy", "has cleanup.policy=compact", "");
      return;
    }
    Add(Severity::kError, "cleanup.policy",
        absl::StrCat("has cleanup.policy=", policy,
                     ": totals of keys that are not counted for a while would be deleted; it is the topic of "
                     "another mode, or not made for totals"),
        absl::StrCat("name another topic, which lethe makes; or, if nothing is in it, kafka-configs.sh "
                     "--alter --entity-type topics --entity-name ",
                     topic_.name, " --add-config cleanup.policy=compact"));
  }

  // Made with as many partitions as the input, and not changed with it: the way of an id must not change.
  void RoutesTo(int32_t input_partitions) {
    const std::string what =
        absl::StrCat("has ", topic_.partitions, " partitions, the input has ", input_partitions);
    if (topic_.partitions == input_partitions) {
      Add(Severity::kOk, kPartitionsCheck, what, "");
      return;
    }
    Add(Severity::kWarning, kPartitionsCheck,
        absl::StrCat(what, ": that is right only if the input had as many"),
        "leave it as it is once ids were routed to it; if none were, delete it, and lethe recreates it");
  }

  // A restart reads the horizon before the record that is to be judged next.
  void IsKeptFor(absl::Duration horizon, absl::Duration lag) {
    const int64_t retention_ms = topic_.Number("retention.ms", -1);
    const std::string kept = retention_ms < 0 ? "for ever" : DurationText(absl::Milliseconds(retention_ms));
    const bool reaches = retention_ms < 0 || absl::Milliseconds(retention_ms) >= horizon + lag;
    const std::string what = absl::StrCat(
        "keeps records ", retention_ms < 0 ? "" : "for ", kept, " (retention.ms=", retention_ms, "), ",
        reaches ? "and" : "less than", " the horizon ", reaches ? "is " : "of ", DurationText(horizon),
        lag == absl::ZeroDuration()
            ? ""
            : absl::StrCat(reaches ? ", the lag of the group " : " and the lag of the group of ",
                           DurationText(absl::Trunc(lag, absl::Seconds(1)))));
    if (reaches) {
      Add(Severity::kOk, "retention", what, "");
    } else {
      Add(Severity::kWarning, "retention",
          absl::StrCat(what, ": after a restart older ids are not known, and their retries pass"),
          lag == absl::ZeroDuration() ? "raise retention.ms" : "raise retention.ms, or catch up");
    }
  }

  void HasPartitionsFor(int32_t needed) {
    const std::string what = absl::StrCat("has ", topic_.partitions, " partitions, the input has ", needed);
    if (topic_.partitions == needed) {
      Add(Severity::kOk, kPartitionsCheck, what, "");
    } else if (topic_.partitions > needed) {
      Add(Severity::kWarning, "partitions",
          absl::StrCat(what, ": records keep their partition, the others stay empty"),
          "make a topic with as many, if readers rely on the number");
    } else {
      Add(Severity::kError, "partitions",
          absl::StrCat(what, ": records keep their partition, so it needs as many"),
          absl::StrCat("kafka-topics.sh --alter --topic ", topic_.name, " --partitions ", needed));
    }
  }

  void KeepsTimes() {
    const bool is_lost = topic_.Value("message.timestamp.type") == "LogAppendTime";
    if (!is_lost) {
      Add(Severity::kOk, "timestamps", "keeps the records' own times", "");
      return;
    }
    Add(Severity::kWarning, "timestamps",
        "has message.timestamp.type=LogAppendTime: the records' own times are lost there",
        "message.timestamp.type=CreateTime keeps them");
  }

  // A bound is one that is at least as narrow as lethe's own.
  void BoundsTimes(absl::Duration max_future) {
    const char* const kBounds[] = {"message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"};
    if (topic_.Value("message.timestamp.type") == "LogAppendTime") {
      Add(Severity::kOk, "timestamps", "has message.timestamp.type=LogAppendTime: no producer dates records",
          "");
      return;
    }
    for (const char* bound : kBounds) {
      const int64_t most_ms = topic_.Number(bound, INT64_MAX);
      if (absl::Milliseconds(most_ms) > max_future) continue;
      Add(Severity::kOk, "timestamps",
          absl::StrCat("refuses records dated ahead (", bound, "=", most_ms, ")"), "");
      return;
    }
    Add(Severity::kOk, "timestamps",
        absl::StrCat("accepts records dated far ahead; lethe gives those no time that are more than ",
                     absl::FormatDuration(max_future), " ahead of its clock (max_future), and ", kBounds[0],
                     " would refuse them"),
        "");
  }

  // Records come late, when there is a lag; so what the input took in time is old for this topic.
  void TakesTimesOf(const TopicFacts& input) {
    if (topic_.max_before_ms() == INT64_MAX && topic_.max_after_ms() >= input.max_after_ms()) {
      Add(Severity::kOk, "timestamp bounds", "takes the timestamps that the input takes", "");
      return;
    }
    std::string wanted;
    for (const char* property : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
      if (!topic_.config.contains(property)) continue;
      absl::StrAppend(&wanted, wanted.empty() ? "" : ",", property, "=", INT64_MAX);
    }
    Add(Severity::kWarning, "timestamp bounds",
        "refuses timestamps that the input takes, or took before a lag: such records cannot be delivered",
        absl::StrCat("kafka-configs.sh --alter --entity-type topics --entity-name ", topic_.name,
                     " --add-config ", wanted));
  }

  void IsReplicatedAs(const TopicFacts& input) {
    if (topic_.replicas == 0 || input.replicas == 0) return;
    const std::string what =
        absl::StrCat("has ", topic_.replicas, " replicas, the input has ", input.replicas);
    if (topic_.replicas >= input.replicas) return Add(Severity::kOk, "replicas", what, "");
    Add(Severity::kWarning, "replicas",
        absl::StrCat(what,
                     ": what was routed and is not judged yet is lost with fewer brokers than the "
                     "input is"),
        "add replicas with kafka-reassign-partitions.sh");
  }

  void TakesRecordsOf(const TopicFacts& input) {
    const int64_t limit = topic_.max_batch_bytes();
    const char* property = limit < topic_.max_message_bytes() ? "segment.bytes" : "max.message.bytes";
    const int64_t sent = input.max_message_bytes();
    const std::string what =
        absl::StrCat("takes up to ", limit, " bytes at once (", property, "), the input ", sent);
    if (limit >= sent) {
      Add(Severity::kOk, "size", what, "");
      return;
    }
    Add(Severity::kWarning, "size",
        absl::StrCat(what, ": larger records cannot be delivered, and are counted as undeliverable"),
        absl::StrCat("kafka-configs.sh --alter --entity-type topics --entity-name ", topic_.name,
                     " --add-config ", property, "=", sent));
  }

  void Add(Severity severity, std::string check, std::string what, std::string remedy) {
    findings_.push_back({severity, std::move(check), where_, std::move(what), std::move(remedy)});
  }

 private:
  const TopicFacts& topic_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

}  // namespace

std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics) {
  std::vector<Finding> findings;
  const TopicFacts& input = topics.input;
  const TopicFacts& origin = topics.with_places();
  Rules input_rules("input", input, findings);
  input_rules.Add(Severity::kOk, kPartitionsCheck, absl::StrCat("has ", input.partitions, " partitions"), "");
  if (input_rules.IsDescribed()) {
    input_rules.IsNotCompacted("compaction may keep the retry and remove the first");
    // Filters are rebuilt from the topic that is judged.
    const bool is_judged = options.scope == Scope::kPartition || !options.routed_from.empty();
    if (is_judged) input_rules.IsKeptFor(options.stage.horizon, topics.lag);
    input_rules.BoundsTimes(options.max_future);
  }
  Rules output_rules("output", topics.output, findings);
  if (!options.routes)
    output_rules.HasPartitionsFor(origin.partitions);  // what is routed goes where there is one
  if (output_rules.IsDescribed()) {
    output_rules.KeepsTimes();
    if (!origin.config.empty()) output_rules.TakesRecordsOf(origin);
  }
  if (topics.repartition) {
    Rules repartition_rules("repartition", *topics.repartition, findings);
    repartition_rules.RoutesTo(input.partitions);
    repartition_rules.IsReplicatedAs(input);
    if (repartition_rules.IsDescribed()) {
      repartition_rules.IsNotCompacted("compaction may keep the retry and remove the first");
      repartition_rules.IsKeptFor(options.stage.horizon, topics.lag);
      repartition_rules.KeepsTimes();
      if (!input.config.empty()) {
        repartition_rules.TakesRecordsOf(input);
        repartition_rules.TakesTimesOf(input);
      }
    }
  }
  if (topics.snapshots) {
    Rules snapshot_rules("snapshot", *topics.snapshots, findings);
    if (snapshot_rules.IsDescribed()) snapshot_rules.IsCompacted();
  }
  for (size_t i = 0; i < topics.counters.size(); ++i) {
    const TopicFacts& counter = topics.counters[i];
    Rules counter_rules("counter", counter, findings);
    const bool keeps_totals = options.counters[i].mode == CounterMode::kTotal;
    if (counter.partitions == 0) {
      counter_rules.Add(Severity::kOk, "create", "is not there yet; lethe makes it", "");
      continue;
    }
    if (keeps_totals) counter_rules.HasPartitionsFor(input.partitions);
    if (!counter_rules.IsDescribed()) continue;
    if (keeps_totals) {
      counter_rules.KeepsTotals();
    } else {
      counter_rules.IsNotCompacted(
          "deltas are events, of which compaction would keep only the last of each key");
    }
  }
  if (topics.divert) {
    Rules divert_rules("divert", *topics.divert, findings);
    divert_rules.HasPartitionsFor(origin.partitions);
    if (divert_rules.IsDescribed()) {
      divert_rules.IsNotCompacted(
          "what is diverted are events, of which compaction would keep only the last of each key");
    }
  }
  return findings;
}

}  // namespace lethe::kafka
