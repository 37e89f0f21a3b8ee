#include "src/pipeline/preflight/check.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/assign/totals.h"
#include "src/pipeline/clock/patiently.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/describe_topics.h"
#include "src/pipeline/preflight/group_rules.h"
#include "src/pipeline/preflight/inspect_topics.h"
#include "src/pipeline/preflight/log_rules.h"
#include "src/pipeline/preflight/memory_rules.h"
#include "src/pipeline/preflight/own_topics.h"
#include "src/pipeline/preflight/probe_rules.h"
#include "src/pipeline/preflight/repartition_rules.h"
#include "src/pipeline/preflight/retention_rules.h"
#include "src/pipeline/preflight/topic_rules.h"
#include "src/text/format.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

constexpr absl::Duration kCheckPatience = absl::Seconds(8);
constexpr absl::Duration kTotalsTimeout = absl::Seconds(8);
// A record of this size is sent to see whether it is refused; larger ones are not worth it.
constexpr int64_t kLargestProbe = int64_t{16} << 20;

// "12 partitions, 3 replicas, retention.ms=604800000"
std::string SettingsOf(const TopicFacts& topic) {
  std::string text = Several(topic.partitions, "partition");
  if (topic.replicas > 0) absl::StrAppend(&text, ", ", Several(topic.replicas, "replica"));
  for (const auto& [property, value] : topic.config) absl::StrAppend(&text, ", ", property, "=", value);
  return text;
}

class Checker {
 public:
  Checker(const DaemonOptions& process, Probes& probes, const Clock& clock, Missing missing)
      : probes_(probes), clock_(clock), creates_(missing == Missing::kCreate), options_(process) {}

  std::vector<Finding> CheckOne() && {
    if (MeetBrokers()) CheckTopic();
    return std::move(*this).All();
  }

  std::vector<Finding> CheckList(const TopicList& list, const ShowTopics& show) && {
    if (!MeetBrokers()) return std::move(*this).All();
    const auto inputs = FindInputs(*brokers_, list);
    if (!inputs.ok()) {
      AddShared({Severity::kError, "topics", "topics",
                 absl::StrCat("cannot be listed: ", inputs.status().message()), "check again"});
      return std::move(*this).All();
    }
    for (const TopicList::Refused& refused : inputs->refused) {
      findings_.push_back({Severity::kError, "topics", absl::StrCat("input topic ", refused.topic),
                           absl::StrCat("is not read: ", refused.why), "", refused.topic});
    }
    for (const TopicList::Unmatched& each : inputs->unmatched) {
      std::string what = "matches no topic";
      if (!each.left_out.empty()) {
        absl::StrAppend(&what, " but ", each.left_out.front());
        if (each.left_out.size() > 1) absl::StrAppend(&what, " and ", each.left_out.size() - 1, " others");
        absl::StrAppend(&what, ", which lethe writes, Kafka keeps for itself, or another entry names");
      }
      AddShared({Severity::kWarning, "topics", absl::StrCat("pattern ", each.pattern), std::move(what),
                 "correct it, or create a topic"});
    }
    MemoryNeed need;
    for (const DaemonOptions& topic : inputs->topics) {
      show(need.topics, static_cast<int64_t>(inputs->topics.size()));
      // Merged inputs share what is written, and each has its own log.
      int32_t partitions = 0;
      double rate = 0;
      for (const std::string& input : topic.inputs()) {
        options_ = topic;
        options_.input = input;
        CheckTopic();
        partitions = std::max(partitions, seen_.topics.input.partitions);
        rate += seen_.rate;
      }
      need.Add(topic, partitions, rate);
    }
    // What one topic needs says little about memory that all of them share.
    std::erase_if(findings_, [](const Finding& each) { return each.check == kMemoryCheck; });
    if (need.partitions > 0) shared_.push_back(ApplyMemoryRule(need, options_.stage.memory_limit_bytes));
    return std::move(*this).All();
  }

 private:
  // Of the topic at hand.
  struct Seen {
    AllTopics topics = {};
    bool has_begun = false;                       // the group that judges
    std::vector<CommittedOffset> committed = {};  // of that group; empty if it is not known
    std::vector<CommittedOffset> routed = {};     // of the routers' group, likewise
    // By partition of the topic that is judged; empty if they are not known.
    std::vector<absl::Duration> lags = {};
    double rate = 0;  // records a second in the last hour
  };

  std::vector<Finding> All() && {
    absl::c_move(findings_, std::back_inserter(shared_));
    return std::move(shared_);
  }

  void CheckTopic() {
    const size_t before = findings_.size();
    LookAtTopic();
    for (size_t i = before; i < findings_.size(); ++i) findings_[i].topic = options_.input;
  }

  void LookAtTopic() {
    seen_ = {};
    if (!LookAtTopics()) return;
    if (options_.scope == Scope::kTopic) {
      LookAtBothStages();
    } else {
      LookAtStage(options_, seen_.topics.input.partitions, seen_.topics.output.partitions);
    }
    LookAtOutput();
    LookAtRetention();
    TryWriting("output", seen_.topics.output);
    for (const TopicFacts& counter : seen_.topics.counters) {
      if (counter.partitions > 0) TryWriting("counter", counter);
    }
    if (seen_.topics.divert) TryWriting("divert", *seen_.topics.divert);
    LookAtTotals();
    LookAtLog();
  }

  void Add(Severity severity, const char* check, std::string where, std::string what,
           std::string remedy = "") {
    findings_.push_back({severity, check, std::move(where), std::move(what), std::move(remedy)});
  }

  // About the process: said once, whichever topics find it.
  void AddShared(Finding finding) {
    if (!absl::c_linear_search(shared_, finding)) shared_.push_back(std::move(finding));
  }

  bool MeetBrokers() {
    auto brokers = probes_.MakeBrokers(options_, IsolationOf(options_));
    const absl::Status made = brokers.ok() ? probes_.MakeClients(options_) : brokers.status();
    if (!made.ok()) {
      AddShared({Severity::kError, "configuration", "kafka",
                 absl::StrCat("is not accepted: ", made.message()), "see the properties under kafka"});
      return false;
    }
    brokers_ = *std::move(brokers);
    absl::Status met;
    const absl::StatusOr<int> count = Patiently(kCheckPatience, [&]() -> absl::StatusOr<int> {
      auto answer = brokers_->CountBrokers();
      met = brokers_->LastError();
      if (absl::IsPermissionDenied(met)) return met;
      return answer;
    });
    const std::string where = absl::StrCat("brokers ", options_.process.brokers);
    if (count.ok()) {
      AddShared({Severity::kOk, "brokers", where, absl::StrCat("answer, ", *count, " of them"), ""});
      return true;
    }
    const absl::Status& why = met.ok() ? count.status() : met;
    AddShared({Severity::kError, "brokers", where, absl::StrCat("do not answer: ", why.message()),
               absl::IsPermissionDenied(why) ? "correct the credentials"
                                             : "see the address, the network and security.protocol"});
    return false;
  }

  bool LookAtTopics() {
    if (creates_) CreateMissing();
    auto topics = Patiently(kCheckPatience, [&] { return DescribeTopics(options_, *brokers_); });
    if (!topics.ok()) {
      // The message ends with its remedy: a command that is to be copied, say.
      Add(Severity::kError, "topics", "topics", absl::StrCat("cannot be used: ", topics.status().message()),
          "");
      return false;
    }
    seen_.topics = *std::move(topics);
    LookAtJudged();
    for (Finding& finding : ApplyTopicRules(options_, seen_.topics)) {
      if (IsForBeginners(finding) && seen_.has_begun) finding.severity = Severity::kWarning;
      findings_.push_back(std::move(finding));
    }
    return true;
  }

  // The committed offsets of the judging group, and its lag. A later check reports what cannot be asked.
  void LookAtJudged() {
    if (options_.scope == Scope::kTopic && !seen_.topics.repartition) return;
    const DaemonOptions stage = options_.scope == Scope::kTopic ? JudgingOptions(options_) : options_;
    const TopicFacts& judged = seen_.topics.repartition ? *seen_.topics.repartition : seen_.topics.input;
    const auto committed = AskCommitted(stage, judged.partitions);
    if (!committed.ok()) return;
    seen_.has_begun = HasBegun(*committed);
    seen_.committed = *committed;
    std::vector<int64_t> next;
    for (const CommittedOffset& offset : *committed) next.push_back(offset.offset);
    auto lags = AskLag(*brokers_, stage.input, next, clock_.Wall());
    if (!lags.ok()) return;
    seen_.lags = *std::move(lags);
    seen_.topics.lag = *std::max_element(seen_.lags.begin(), seen_.lags.end());
  }

  // Once for merged inputs, which share it.
  void LookAtOutput() {
    if (options_.input != options_.inputs().front()) return;
    std::unique_ptr<Brokers> routers;
    if (options_.scope == Scope::kTopic) {
      const DaemonOptions routing = RoutingOptions(options_, options_.input);
      auto made = probes_.MakeBrokers(routing, IsolationOf(routing));
      if (!made.ok()) return;
      routers = *std::move(made);
    }
    auto written =
        Patiently(kCheckPatience, [&] { return FindWrittenBefore(options_, *brokers_, routers.get()); });
    if (written.ok() && *written) findings_.push_back(**std::move(written));
  }

  void LookAtRetention() {
    std::vector<KeptIn> kept = {{"output", &seen_.topics.output}};
    if (seen_.topics.divert) kept.push_back({"divert", &*seen_.topics.divert});
    if (options_.scope == Scope::kPartition) return AddExpiring(options_, seen_.topics.input, kept);
    if (seen_.topics.repartition) {
      // Merged inputs share it.
      if (options_.input == options_.inputs().front()) {
        AddExpiring(JudgingOptions(options_), *seen_.topics.repartition, kept);
      }
      kept.push_back({"repartition", &*seen_.topics.repartition});
    }
    AddExpiring(RoutingOptions(options_, options_.input), seen_.topics.input, kept);
  }

  // Of what this half has yet to read.
  void AddExpiring(const DaemonOptions& half, const TopicFacts& input, const std::vector<KeptIn>& kept) {
    const auto brokers = probes_.MakeBrokers(half, IsolationOf(half));
    if (!brokers.ok()) return;
    absl::c_move(FindExpiring(half, input, kept, **brokers, clock_.Wall()), std::back_inserter(findings_));
  }

  // Creates the topics that are missing and that lethe does not create itself.
  void CreateMissing() {
    const auto inputs =
        Patiently(kCheckPatience, [&] { return DescribeInputs(options_, options_.inputs(), *brokers_); });
    if (!inputs.ok()) return;  // which is said where topics are described
    std::vector<std::pair<const char*, std::string>> written = {{"output", options_.output}};
    if (!options_.divert.empty()) written.emplace_back("divert", options_.divert);
    for (const CounterOptions& each : options_.counters) {
      if (each.mode != CounterMode::kTotal) written.emplace_back("counter", each.output);
    }
    for (const auto& each : written) {
      const std::string& name = each.second;
      const auto count = [&] { return brokers_->CountPartitions(name); };
      if (!absl::IsNotFound(Patiently(kCheckPatience, count).status())) continue;
      const TopicFacts topic = TopicLike(*inputs, name);
      const absl::Status created = brokers_->CreateTopic(topic, /*validate_only=*/false);
      const std::string where = absl::StrCat(each.first, " topic ", name);
      if (!created.ok()) {
        Add(Severity::kError, "create", where, absl::StrCat("cannot be created: ", created.message()),
            absl::IsPermissionDenied(created) ? absl::StrCat("grant this user Create on topic ", name)
                                              : "see the reason, and create it yourself");
        continue;
      }
      Add(Severity::kOk, "create", where,
          absl::StrCat("was created like the input, with ", SettingsOf(topic)));
      // The brokers hear of it one after the other.
      Patiently(kCheckPatience, [&]() -> absl::StatusOr<int32_t> {
        auto there = count();
        return absl::IsNotFound(there.status()) ? absl::UnavailableError(there.status().message()) : there;
      }).IgnoreError();
    }
  }

  // Routers have a group of their own, and deduplicators read their topic.
  void LookAtBothStages() {
    const int32_t input_partitions = seen_.topics.input.partitions;
    const auto routed = AskCommitted(RoutingOptions(options_, options_.input), input_partitions);
    if (routed.ok()) seen_.routed = *routed;
    if (seen_.topics.repartition) {
      const int32_t partitions = seen_.topics.repartition->partitions;
      auto lost = routed.ok() ? LostInTopic(options_, *routed, seen_.committed) : std::nullopt;
      if (lost) findings_.push_back(*std::move(lost));
      LookAtStage(RoutingOptions(options_, options_.input), input_partitions, partitions);
      LookAtStage(JudgingOptions(options_), partitions, seen_.topics.output.partitions);
      LookAtRoutedLog(partitions);
      TryWriting("repartition", *seen_.topics.repartition);
      return;
    }
    const auto may = Patiently(kCheckPatience, [&]() -> absl::StatusOr<bool> {
      if (absl::Status status = MayCreateRepartitionTopic(options_, *brokers_, seen_.topics.input);
          !status.ok())
        return status;
      return true;
    });
    auto lost = routed.ok() ? LostWithTopic(options_, *routed) : std::nullopt;
    findings_.push_back(lost ? *std::move(lost)
                             : CreationFinding(options_, seen_.topics.input, may.status()));
    LookAtStage(RoutingOptions(options_, options_.input), input_partitions, input_partitions);
    LookAtScope(JudgingOptions(options_), input_partitions);
    // The other group's offsets are in a topic that does not exist yet.
    const absl::Status group = AskCommitted(options_, input_partitions).status();
    AddGroup(options_, group, "can be used");
  }

  // Lanes that read `stage.input`.
  void LookAtStage(const DaemonOptions& stage, int32_t partitions, int32_t output_partitions) {
    const CommittedOffset first = LookAtGroup(stage, partitions, IdFingerprint(stage, output_partitions));
    if (options_.process.delivery == Delivery::kExactlyOnce) TryTransaction(stage, first);
  }

  absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(const DaemonOptions& stage, int32_t partitions) {
    std::unique_ptr<Brokers> own;  // a client is of one group
    if (stage.process.group != options_.process.group) {
      auto brokers = probes_.MakeBrokers(stage, IsolationOf(stage));
      if (!brokers.ok()) return brokers.status();
      own = *std::move(brokers);
    }
    Brokers& brokers = own == nullptr ? *brokers_ : *own;
    return Patiently(kCheckPatience, [&] { return brokers.AskCommitted(stage.input, partitions); });
  }

  void AddGroup(const DaemonOptions& stage, const absl::Status& asked, const std::string& what) {
    const std::string where = absl::StrCat("group ", stage.process.group);
    if (asked.ok()) return Add(Severity::kOk, "group", where, what);
    AddShared(WithoutCommits(stage.process.group, asked));
  }

  // Returns its committed offset of the first partition.
  CommittedOffset LookAtGroup(const DaemonOptions& stage, int32_t partitions,
                              const std::string& fingerprint) {
    const auto committed = AskCommitted(stage, partitions);
    if (!committed.ok()) {
      AddGroup(stage, committed.status(), "");
      return {};
    }
    Finding found = ApplyCommitRules(stage, fingerprint, *committed);
    if (found.severity == Severity::kError || LookAtScope(stage, partitions)) {
      findings_.push_back(std::move(found));
    }
    return committed->front();
  }

  // Whether the group has judged with this scope, or not at all.
  bool LookAtScope(const DaemonOptions& stage, int32_t partitions) {
    const absl::Status problem = CheckScope(
        stage, partitions,
        [this](const std::string& topic, int32_t count) { return brokers_->AskCommitted(topic, count); });
    if (!absl::IsFailedPrecondition(problem)) return true;
    findings_.push_back(CannotGoOn(stage, problem));
    return false;
  }

  // Only a transaction shows whether its id may be used, and offsets of the group be committed. It sends the
  // committed offset again, and aborts. Once a group.
  void TryTransaction(const DaemonOptions& stage, const CommittedOffset& first) {
    if (!tried_groups_.insert(stage.process.group).second) return;
    const std::string& group = stage.process.group;
    const std::string id = absl::StrCat(group, "/", options_.process.instance, "/check");
    constexpr int kMost = 5;
    for (int i = 0; i < kMost; ++i) {
      const TriedTransaction tried = probes_.TryTransaction(stage, id, std::max<int64_t>(first.offset, 0));
      // Another check has taken the id, which says nothing about this user's permissions.
      if (absl::IsAborted(tried.begun) || absl::IsAborted(tried.offsets)) continue;
      for (Finding& finding : ApplyTransactionRules(id, group, tried)) AddShared(std::move(finding));
      return;
    }
    AddShared({Severity::kWarning, "transactions", absl::StrCat("group ", group),
               "were not tried: other checks of this instance run at the same time", "check again"});
  }

  // The topic refuses a record that is too large, if not for the missing permission then for its size. So
  // nothing is written.
  void TryWriting(const char* role, const TopicFacts& topic) {
    const int64_t limit = topic.max_message_bytes();
    findings_.push_back(
        topic.config.empty() || limit > kLargestProbe
            ? WriteNotTried(role, topic.name)
            : ApplyWriteRule(role, topic.name, probes_.TryWriting(options_, topic.name, limit + 1)));
  }

  // Whether totals that the group's commits say of are still there.
  void LookAtTotals() {
    const DaemonOptions stage = options_.scope == Scope::kTopic ? JudgingOptions(options_) : options_;
    for (size_t i = 0; i < seen_.topics.counters.size(); ++i) {
      const CounterOptions& counter = options_.counters[i];
      if (counter.mode != CounterMode::kTotal) continue;
      std::map<int32_t, int64_t> keys;  // by partition
      for (size_t partition = 0; partition < seen_.committed.size(); ++partition) {
        const auto metadata = CommitMetadata::Parse(seen_.committed[partition].metadata);
        const int64_t of_partition = metadata.ok() ? KeysOf(metadata->totals, TotalsFingerprint(counter)) : 0;
        if (of_partition > 0) keys[static_cast<int32_t>(partition)] = of_partition;
      }
      if (seen_.topics.counters[i].partitions > 0) LeaveEmpty(counter.output, keys);
      if (seen_.topics.counters[i].partitions > 0) LookForOthers(stage, counter, seen_.topics.counters[i]);
      if (keys.empty()) continue;
      const auto& [partition, of_partition] = *keys.begin();
      Add(Severity::kError, "totals", absl::StrCat("counter topic ", counter.output),
          absl::StrCat("lacks totals in ", keys.size(), " of ", seen_.committed.size(),
                       " partitions: ", LostTotals(stage, counter, partition, of_partition)));
    }
  }

  // Whether the topic has totals by another name. Those of a counter that was renamed stay as they were, so
  // they are among the oldest records.
  void LookForOthers(const DaemonOptions& stage, const CounterOptions& counter, const TopicFacts& topic) {
    constexpr int64_t kMostTotals = 20'000;
    const auto logs = AskLogs(*brokers_, topic.name, topic.partitions);
    if (!logs.ok()) return AddUnreadable("counter", topic.name, logs.status());
    std::map<int32_t, OffsetRange> oldest;
    for (const LogSample::Partition& log : *logs) {
      oldest[log.partition] = {log.start, std::min(log.end, log.start + kMostTotals / topic.partitions + 1)};
    }
    OtherTotals others(stage, counter);
    const absl::Status read =
        brokers_->Read(topic.name, oldest, kTotalsTimeout, [&](const InputRecord& record) {
          const auto total = CounterTotal::Parse(record.key.value_or(""), record.value);
          if (total.ok()) others.Add(*total, !record.value);
        });
    if (!read.ok()) return AddUnreadable("counter", topic.name, read);
    if (std::string text = others.Text(); !text.empty()) {
      Add(Severity::kWarning, "totals", absl::StrCat("counter topic ", topic.name), std::move(text),
          OtherTotals::kRemedy);
    }
  }

  // Erases partitions of the topic that were written to, and all if the brokers do not tell.
  void LeaveEmpty(const std::string& topic, std::map<int32_t, int64_t>& keys) {
    if (keys.empty()) return;
    std::vector<int32_t> partitions;
    for (const auto& each : keys) partitions.push_back(each.first);
    const auto ends = brokers_->AskEnds(topic, partitions, kTotalsTimeout);
    std::erase_if(keys, [&](const auto& each) {
      if (!ends.ok()) return true;
      const auto end = ends->find(each.first);
      return end == ends->end() || end->second > 0;
    });
  }

  void AddUnreadable(const char* role, const std::string& topic, const absl::Status& why) {
    const bool denied = absl::IsPermissionDenied(why);
    Add(denied ? Severity::kError : Severity::kWarning, "read", absl::StrCat(role, " topic ", topic),
        absl::StrCat("cannot be read: ", why.message()),
        denied ? absl::StrCat("grant this user Read on topic ", topic) : "check again");
  }

  void LookAtLog() {
    auto sample = Patiently(kCheckPatience, [&] {
      return SampleLog(options_, *brokers_, seen_.topics.input.partitions, clock_.Wall());
    });
    if (!sample.ok()) return AddUnreadable("input", options_.input, sample.status());
    Add(Severity::kOk, "read", absl::StrCat("input topic ", options_.input), "may be read");
    const absl::Time now = clock_.Wall();
    LookAtOffsets(*sample);
    if (options_.scope == Scope::kPartition) {
      for (size_t i = 0; i < std::min(seen_.lags.size(), sample->partitions.size()); ++i) {
        sample->partitions[i].lag = seen_.lags[i];
      }
      absl::c_move(ApplyRestartRules(options_, seen_.committed, now, *sample), std::back_inserter(findings_));
    }
    seen_.rate = sample->rate();
    absl::c_move(ApplyLogRules(options_, seen_.topics.input, *sample, now), std::back_inserter(findings_));
    if (sample->records > 0 && !seen_.topics.output.config.empty()) {
      findings_.push_back(ApplySizeRule(options_.process, seen_.topics.output, *sample));
    }
  }

  // Whether the log of the repartition topic has the offsets of the group that judges it.
  void LookAtRoutedLog(int32_t partitions) {
    const DaemonOptions stage = JudgingOptions(options_);
    const auto brokers = probes_.MakeBrokers(stage, IsolationOf(stage));
    if (!brokers.ok()) return;
    auto logs = Patiently(kCheckPatience, [&] { return AskLogs(**brokers, stage.input, partitions); });
    if (!logs.ok()) return AddUnreadable("repartition", stage.input, logs.status());
    LogSample sample;
    sample.partitions = *std::move(logs);
    absl::c_move(ApplyOffsetRules(stage, seen_.committed, sample), std::back_inserter(findings_));
  }

  // Those of the group that reads the sampled log.
  void LookAtOffsets(LogSample& sample) {
    const bool is_routed = options_.scope == Scope::kTopic;
    const DaemonOptions stage = is_routed ? RoutingOptions(options_, options_.input) : options_;
    absl::c_move(ApplyOffsetRules(stage, is_routed ? seen_.routed : seen_.committed, sample),
                 std::back_inserter(findings_));
  }

  Probes& probes_;
  const Clock& clock_;
  const bool creates_;
  DaemonOptions options_;  // of the topic at hand
  std::vector<Finding> shared_;
  std::vector<Finding> findings_;
  std::set<std::string> tried_groups_;
  std::unique_ptr<Brokers> brokers_;
  Seen seen_;
};

}  // namespace

std::vector<Finding> Check(const DaemonOptions& options, Probes& probes, const Clock& clock,
                           Missing missing) {
  return Checker(options, probes, clock, missing).CheckOne();
}

std::vector<Finding> Check(const DaemonOptions& process, const TopicList& list, Probes& probes,
                           const Clock& clock, const ShowTopics& show, Missing missing) {
  return Checker(process, probes, clock, missing).CheckList(list, show);
}

}  // namespace lethe
