#include "src/pipeline/preflight/topic_rules.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "src/pipeline/options/kafka_commands.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/memory_rules.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

// What gzip packs at most.
constexpr int64_t kGzipRatio = 1032;
// Twice what a topic of the default size accepts.
constexpr int64_t kLargeBatch = int64_t{2} << 30;

// Findings of one topic, by its role.
class Rules {
 public:
  Rules(const ProcessOptions& process, const char* role, const TopicFacts& topic,
        std::vector<Finding>& findings)
      : process_(process),
        topic_(topic),
        where_(absl::StrCat(role, " topic ", topic.name)),
        findings_(findings) {}

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
    const bool is_compacted = absl::StrContains(policy, "compact");
    Check(!is_compacted, "cleanup.policy",
          is_compacted ? absl::StrCat("is compacted (cleanup.policy=", policy, ")")
                       : absl::StrCat("has cleanup.policy=", policy),
          Severity::kError, why, "use a topic with cleanup.policy=delete");
  }

  // Some want a compacted output.
  void KeepsEvents() {
    const std::string policy = topic_.Value("cleanup.policy");
    Check(!absl::StrContains(policy, "compact"), "cleanup.policy",
          absl::StrCat("has cleanup.policy=", policy), Severity::kWarning,
          "it refuses records without a key, and compaction deletes earlier events of each key",
          Alter("cleanup.policy=delete"));
  }

  void HasMemory(const DaemonOptions& options) {
    const int64_t least = LeastMemory(options, topic_.partitions);
    if (options.stage.memory_limit_bytes >= least) return;
    Add(Severity::kWarning, kMemoryCheck,
        absl::StrCat(LeastMemoryText(options, topic_.partitions),
                     ": partitions without memory for the smallest filter are not read"),
        absl::StrCat("set memory to ", BytesSetting(least), " or more, or run more instances"));
  }

  void KeepsSnapshots() {
    const std::string policy = topic_.Value("cleanup.policy");
    Check(policy == "compact", "cleanup.policy", absl::StrCat("has cleanup.policy=", policy),
          Severity::kWarning,
          absl::StrCat(
              absl::StrContains(policy, "compact")
                  ? "snapshots that count are deleted with the others when they are old"
                  : "no snapshot is deleted when another has replaced it, and all are when they are old",
              ", and the filters are then rebuilt from the input"),
          Alter("cleanup.policy=compact"));
  }

  void KeepsTotals() {
    const std::string policy = topic_.Value("cleanup.policy");
    Check(policy == "compact", "cleanup.policy", absl::StrCat("has cleanup.policy=", policy),
          Severity::kError,
          "retention would delete totals of idle keys; the topic belongs to another mode, or was not created "
          "for totals",
          absl::StrCat("name another topic, which lethe creates; or, if it is empty, ",
                       Alter("cleanup.policy=compact")));
  }

  // Created with as many partitions as the input; it never gets more, since the route of an id must not
  // change.
  void RoutesTo(int32_t input_partitions) {
    Check(topic_.partitions == input_partitions, kPartitionsCheck, Partitions(input_partitions),
          Severity::kWarning, "that is right only if the input had as many",
          "keep it if lethe has routed records to it; else delete it, and lethe recreates it");
  }

  // A restart reads from the horizon before the next record to judge.
  void IsKeptFor(absl::Duration horizon, absl::Duration lag) {
    const int64_t retention_ms = topic_.Number("retention.ms", -1);
    const std::string kept = retention_ms < 0 ? "for ever" : DurationText(absl::Milliseconds(retention_ms));
    const bool reaches = retention_ms < 0 || absl::Milliseconds(retention_ms) >= horizon + lag;
    const bool has_lag = lag != absl::ZeroDuration();
    const std::string lag_text = DurationText(absl::Trunc(lag, absl::Seconds(1)));
    const std::string needed =
        reaches ? absl::StrCat("and the horizon is ", DurationText(horizon),
                               has_lag ? absl::StrCat(", the lag of the group ", lag_text) : "")
                : absl::StrCat("less than the horizon of ", DurationText(horizon),
                               has_lag ? absl::StrCat(" and the lag of the group of ", lag_text) : "");
    Check(reaches, "retention",
          absl::StrCat("keeps records ", retention_ms < 0 ? "" : "for ", kept,
                       " (retention.ms=", retention_ms, "), ", needed),
          Severity::kWarning, "after a restart older ids are not known, and their retries pass",
          has_lag ? "raise retention.ms, or catch up" : "raise retention.ms");
  }

  void HasPartitionsFor(int32_t needed) {
    if (topic_.partitions > needed) {
      return Add(Severity::kWarning, kPartitionsCheck,
                 absl::StrCat(Partitions(needed), ": records keep their partition, the others stay empty"),
                 "make a topic with as many, if readers rely on the number");
    }
    Check(topic_.partitions == needed, kPartitionsCheck, Partitions(needed), Severity::kError,
          "records keep their partition, so it needs as many",
          KafkaCommand("kafka-topics.sh", process_,
                       absl::StrCat("--alter --topic ", topic_.name, " --partitions ", needed)));
  }

  void KeepsTimes() {
    const bool is_lost = topic_.Value("message.timestamp.type") == "LogAppendTime";
    Check(!is_lost, "timestamps",
          is_lost ? "has message.timestamp.type=LogAppendTime" : "keeps the records' own times",
          Severity::kWarning, "the records' own times are lost there",
          "message.timestamp.type=CreateTime keeps them");
  }

  // lethe reads a batch whole, and librdkafka does not bound what gzip makes of it.
  void BoundsBatches() {
    const std::string codec = topic_.Value("compression.type");
    const int64_t becomes = kGzipRatio * topic_.max_message_bytes();
    if ((codec != "producer" && codec != "gzip") || becomes <= kLargeBatch) return;
    Add(Severity::kWarning, "decompression",
        absl::StrCat("accepts gzip batches of ", FormatBytes(topic_.max_message_bytes()),
                     ", which may decompress to ", FormatBytes(becomes), " in lethe's memory"),
        absl::StrCat("lower max.message.bytes, or ", Alter("compression.type=lz4")));
  }

  // A bound is one that is at least as narrow as lethe's own.
  void BoundsTimes(absl::Duration max_future) {
    std::string what =
        absl::StrCat("accepts records dated far ahead; lethe ignores timestamps more than ",
                     absl::FormatDuration(max_future), " ahead of its clock (max_future), and ",
                     TopicFacts::kAfter, " would refuse them");
    for (const char* bound : {TopicFacts::kDifference, TopicFacts::kAfter}) {
      const int64_t most_ms = topic_.Number(bound, INT64_MAX);
      if (absl::Milliseconds(most_ms) > max_future) continue;
      what = absl::StrCat("refuses records dated ahead (", bound, "=", most_ms, ")");
    }
    if (topic_.Value("message.timestamp.type") == "LogAppendTime") {
      what = "has message.timestamp.type=LogAppendTime: no producer dates records";
    }
    Add(Severity::kOk, "timestamps", what, "");
  }

  // Stream time runs ahead by as much as most timestamps do, and ids are forgotten that much earlier.
  void LimitsFuture(absl::Duration max_future, absl::Duration horizon) {
    if (max_future < horizon || topic_.Value("message.timestamp.type") == "LogAppendTime") return;
    for (const char* bound : {TopicFacts::kDifference, TopicFacts::kAfter}) {
      if (absl::Milliseconds(topic_.Number(bound, INT64_MAX)) < horizon) return;
    }
    Add(Severity::kWarning, "max_future",
        absl::StrCat("accepts records dated ahead by more than the horizon of ", DurationText(horizon),
                     ", and so does lethe (max_future is ", DurationText(max_future),
                     "): if most records of some seconds are, lethe forgets all ids, and copies pass"),
        absl::StrCat("set max_future to a sixteenth of the horizon, ", DurationText(horizon / 16),
                     ", which is its default for a horizon below 16h"));
  }

  // A lag makes records late: a timestamp that the input accepted in time is old for this topic.
  void TakesTimesOf(const TopicFacts& input) {
    const bool takes_all =
        topic_.max_before_ms() == INT64_MAX && topic_.max_after_ms() >= input.max_after_ms();
    std::string wanted;
    for (const char* property : {TopicFacts::kBefore, TopicFacts::kAfter, TopicFacts::kDifference}) {
      if (!topic_.config.contains(property)) continue;
      absl::StrAppend(&wanted, wanted.empty() ? "" : ",", property, "=", INT64_MAX);
    }
    Check(takes_all, "timestamp bounds",
          takes_all ? "takes the timestamps that the input takes"
                    : "refuses timestamps that the input takes, or took before a lag",
          Severity::kWarning, "the output rejects records with other timestamps", Alter(wanted));
  }

  void IsReplicatedAs(const TopicFacts& input) {
    if (topic_.replicas == 0 || input.replicas == 0) return;
    Check(topic_.replicas >= input.replicas, "replicas",
          absl::StrCat("has ", Several(topic_.replicas, "replica"), ", the input has ", input.replicas),
          Severity::kWarning, "its records survive fewer broker failures than those of the input",
          "add replicas as Kafka's documentation says (Increasing replication factor)");
  }

  // Raised above the replicas, it would end all writes.
  void IsAcknowledgedAs(const TopicFacts& input) {
    constexpr char kMinInSync[] = "min.insync.replicas";
    const int64_t own = topic_.Number(kMinInSync, 1);
    const int64_t wanted = input.Number(kMinInSync, 1);
    const std::string set = absl::StrCat(kMinInSync, "=", wanted);
    // The whole name is longer than the column of names.
    Check(own >= wanted, "min.insync", absl::StrCat("has ", kMinInSync, "=", own, ", the input has ", wanted),
          Severity::kWarning,
          "fewer brokers need to have a record before it counts as written, and it may be lost with them",
          topic_.replicas >= wanted || topic_.replicas == 0 ? Alter(set)
                                                            : absl::StrCat("add replicas, then set ", set));
  }

  void TakesRecordsOf(const TopicFacts& input) {
    const int64_t limit = topic_.max_batch_bytes();
    const char* property = limit < topic_.max_message_bytes() ? "segment.bytes" : "max.message.bytes";
    const int64_t sent = input.max_message_bytes();
    Check(limit >= sent, "size",
          absl::StrCat("takes up to ", limit, " bytes at once (", property, "), the input ", sent),
          Severity::kWarning, "larger records cannot be delivered, and are counted as undeliverable",
          Alter(absl::StrCat(property, "=", sent)));
  }

  void Add(Severity severity, std::string check, std::string what, std::string remedy) {
    findings_.push_back({severity, std::move(check), where_, std::move(what), std::move(remedy)});
  }

 private:
  // `what` alone if all is well, else with the problem, how severe it is, and its remedy.
  void Check(bool is_well, const char* check, absl::string_view what, Severity severity,
             absl::string_view problem, std::string remedy) {
    if (is_well) return Add(Severity::kOk, check, std::string(what), "");
    Add(severity, check, absl::StrCat(what, ": ", problem), std::move(remedy));
  }

  std::string Partitions(int32_t input_partitions) const {
    return absl::StrCat("has ", Several(topic_.partitions, "partition"), ", the input has ",
                        input_partitions);
  }

  std::string Alter(absl::string_view config) const { return AlterTopic(process_, topic_.name, config); }

  const ProcessOptions& process_;
  const TopicFacts& topic_;
  const std::string where_;
  std::vector<Finding>& findings_;
};

}  // namespace

std::vector<Finding> ApplyTopicRules(const DaemonOptions& options, const AllTopics& topics) {
  std::vector<Finding> findings;
  const TopicFacts& input = topics.input;
  const TopicFacts& origin = topics.with_places();
  Rules input_rules(options.process, "input", input, findings);
  input_rules.Add(Severity::kOk, kPartitionsCheck,
                  absl::StrCat("has ", Several(input.partitions, "partition")), "");
  if (!options.half.routing) input_rules.HasMemory(options);
  if (options.half.routed_from.empty()) input_rules.LimitsFuture(options.max_future, options.stage.horizon);
  if (input_rules.IsDescribed()) {
    input_rules.IsNotCompacted("compaction may keep the retry and remove the first");
    // Filters are rebuilt from the topic that is judged.
    const bool is_judged = options.scope == Scope::kPartition || !options.half.routed_from.empty();
    if (is_judged) input_rules.IsKeptFor(options.stage.horizon, topics.lag);
    input_rules.BoundsTimes(options.max_future);
    input_rules.BoundsBatches();
  }
  Rules output_rules(options.process, "output", topics.output, findings);
  // Merged inputs may have different numbers of partitions; routed records may go to any.
  const auto has_places = [&](const TopicFacts& topic) {
    return !options.merged.empty() && topic.partitions >= origin.partitions;
  };
  if (!options.half.routing && !has_places(topics.output)) output_rules.HasPartitionsFor(origin.partitions);
  output_rules.IsReplicatedAs(origin);
  if (output_rules.IsDescribed()) {
    output_rules.KeepsEvents();
    output_rules.KeepsTimes();
    if (!origin.config.empty()) output_rules.TakesRecordsOf(origin);
    if (!origin.config.empty()) output_rules.IsAcknowledgedAs(origin);
  }
  if (topics.repartition) {
    Rules repartition_rules(options.process, "repartition", *topics.repartition, findings);
    if (!has_places(*topics.repartition)) repartition_rules.RoutesTo(input.partitions);
    repartition_rules.IsReplicatedAs(input);
    if (repartition_rules.IsDescribed()) {
      repartition_rules.IsNotCompacted("compaction may keep the retry and remove the first");
      repartition_rules.IsKeptFor(options.stage.horizon, topics.lag);
      repartition_rules.KeepsTimes();
      if (!input.config.empty()) {
        repartition_rules.TakesRecordsOf(input);
        repartition_rules.IsAcknowledgedAs(input);
        repartition_rules.TakesTimesOf(input);
      }
    }
  }
  if (topics.snapshots) {
    Rules snapshot_rules(options.process, "snapshot", *topics.snapshots, findings);
    if (snapshot_rules.IsDescribed()) snapshot_rules.KeepsSnapshots();
  }
  for (size_t i = 0; i < topics.counters.size(); ++i) {
    const TopicFacts& counter = topics.counters[i];
    Rules counter_rules(options.process, "counter", counter, findings);
    const bool keeps_totals = options.counters[i].mode == CounterMode::kTotal;
    if (counter.partitions == 0) {
      counter_rules.Add(Severity::kOk, "create", "is not there yet; lethe makes it", "");
      continue;
    }
    if (keeps_totals) counter_rules.HasPartitionsFor(input.partitions);
    counter_rules.IsReplicatedAs(origin);
    if (!counter_rules.IsDescribed()) continue;
    if (!origin.config.empty()) counter_rules.IsAcknowledgedAs(origin);
    if (keeps_totals) {
      counter_rules.KeepsTotals();
    } else {
      counter_rules.IsNotCompacted(
          "deltas are events, and compaction would keep only the last one of each key");
    }
  }
  if (topics.divert) {
    Rules divert_rules(options.process, "divert", *topics.divert, findings);
    if (!has_places(*topics.divert)) divert_rules.HasPartitionsFor(origin.partitions);
    divert_rules.IsReplicatedAs(origin);
    if (divert_rules.IsDescribed()) {
      if (!origin.config.empty()) divert_rules.IsAcknowledgedAs(origin);
      divert_rules.IsNotCompacted(
          "diverted records are events, and compaction would keep only the last one of each key");
    }
  }
  return findings;
}

absl::StatusOr<std::vector<std::string>> WarningsAtStart(
    const std::vector<Finding>& findings, absl::FunctionRef<absl::StatusOr<bool>()> has_begun) {
  std::vector<std::string> warnings;
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::kOk) continue;
    if (IsForBeginners(finding)) {
      const auto begun = has_begun();
      if (!begun.ok()) return begun.status();
      if (!*begun) return absl::FailedPreconditionError(finding.Text());
    } else if (finding.severity == Severity::kError) {
      return absl::FailedPreconditionError(finding.Text());
    }
    warnings.push_back(finding.Text());
  }
  return warnings;
}

Topics TopicsOf(const AllTopics& described) {
  Topics topics;
  topics.partitions = described.input.partitions;
  topics.output_partitions = described.output.partitions;
  topics.input_max_bytes = described.input.max_message_bytes();
  topics.output_max_bytes = described.output.max_batch_bytes();
  topics.output_rules = described.output.record_rules();
  for (const TopicFacts& counter : described.counters) {
    topics.counter_max_bytes.push_back(counter.max_batch_bytes());
  }
  if (described.divert) topics.divert_max_bytes = described.divert->max_batch_bytes();
  return topics;
}

}  // namespace lethe
