#include "src/pipeline/preflight/inspect_topics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/patiently.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/describe_topics.h"
#include "src/pipeline/preflight/group_rules.h"
#include "src/pipeline/preflight/retention_rules.h"
#include "src/pipeline/preflight/topic_rules.h"

namespace lethe {
namespace {

// Short enough for a prompt stop; callers ask again, over the same connection.
constexpr absl::Duration kNewTopicPatience = absl::Seconds(3);
constexpr absl::Duration kEndsTimeout = absl::Milliseconds(1500);
constexpr absl::Duration kFindPatience = absl::Seconds(10);
// A coordinator that has just started answers sooner.
constexpr absl::Duration kGroupPatience = absl::Seconds(10);

// In one request: hundreds of topics are inspected in a row.
absl::StatusOr<std::map<int32_t, int64_t>> AskAllEnds(Brokers& brokers, const std::string& topic,
                                                      int32_t count) {
  std::vector<int32_t> partitions(static_cast<size_t>(count));
  std::iota(partitions.begin(), partitions.end(), 0);
  return brokers.AskEnds(topic, partitions, kEndsTimeout);
}

absl::Status AddEndOffsets(Brokers& brokers, const std::string& input, Topics& topics) {
  const auto ends = AskAllEnds(brokers, input, topics.partitions);
  if (!ends.ok()) return ends.status();
  for (int32_t partition = 0; partition < topics.partitions; ++partition) {
    const auto end = ends->find(partition);
    if (end == ends->end()) {
      return absl::UnavailableError(
          absl::StrCat("asking for the end of ", input, "-", partition, ": no answer"));
    }
    topics.end_offsets.push_back(end->second);
  }
  return absl::OkStatus();
}

// By what the group of this half has committed.
std::vector<Finding> FindExpiringIn(const AllTopics& described, const DaemonOptions& options,
                                    Brokers& brokers, absl::Time now) {
  std::vector<KeptIn> kept = {{options.half.routing ? "repartition" : "output", &described.output}};
  if (described.divert) kept.push_back({"divert", &*described.divert});
  // Routed records come there soon.
  std::list<TopicFacts> next;
  const char* role = "output";
  for (const std::string& name :
       options.half.routing ? options.half.routing->to : std::vector<std::string>()) {
    auto topic = name.empty() ? absl::NotFoundError("none") : brokers.DescribeTopic(name);
    if (topic.ok()) kept.push_back({role, &next.emplace_back(*std::move(topic))});
    role = "divert";
  }
  return FindExpiring(options, described.input, kept, brokers, now);
}

std::string JudgedTopic(const DaemonOptions& options) {
  return options.scope == Scope::kTopic ? RepartitionTopic(options) : options.input;
}

// Of a topic that is not there it has begun nothing.
absl::StatusOr<bool> HasBegunWith(Brokers& brokers, const std::string& topic) {
  const auto committed = brokers.AskCommitted(topic);
  if (absl::IsNotFound(committed.status())) return false;
  if (!committed.ok()) return committed.status();
  return HasBegun(*committed);
}

// Whether the group has judged, or its routers' group has routed, any input.
absl::StatusOr<bool> HasEitherBegun(const DaemonOptions& options, Brokers& judging, Brokers* routers) {
  auto begun = HasBegunWith(judging, JudgedTopic(options));
  if (routers == nullptr) return begun;
  for (const std::string& input : options.inputs()) {
    if (!begun.ok() || *begun) return begun;
    begun = HasBegunWith(*routers, input);
  }
  return begun;
}

// Whether the topic has committed records now: offsets alone may be of aborted transactions, or of records
// that were deleted. PermissionDenied: it has offsets, and this user may not read.
absl::StatusOr<bool> HoldsRecords(const std::string& topic, Brokers& brokers) {
  const auto partitions = brokers.CountPartitions(topic);
  if (absl::IsNotFound(partitions.status())) return false;
  if (!partitions.ok()) return partitions.status();
  const auto ends = AskAllEnds(brokers, topic, *partitions);
  if (!ends.ok()) return ends.status();
  std::vector<LogPlace> places;
  for (const auto& [partition, end] : *ends) {
    if (end > 0) places.push_back({topic, partition, 0});
  }
  if (places.empty()) return false;
  const auto times = brokers.AskTimes(places);
  if (!times.ok()) return times.status();
  return absl::c_any_of(*times, [](absl::Time time) { return time != absl::InfiniteFuture(); });
}

}  // namespace

absl::Status AwaitTopics(const DaemonOptions& options, Brokers& brokers, const StopFlag& stop,
                         const Clock& clock, absl::FunctionRef<absl::Status()> ask) {
  std::string said;
  absl::Time missing_since = absl::InfiniteFuture();
  for (;;) {
    absl::Status answer = ask();
    // Some brokers may not know a new topic yet.
    const bool missing = absl::IsNotFound(answer);
    missing_since = missing ? std::min(missing_since, clock.Steady()) : absl::InfiniteFuture();
    const bool wait =
        missing ? clock.Steady() - missing_since < kNewTopicPatience : absl::IsUnavailable(answer);
    if (!wait) return answer;
    const absl::Status met = brokers.LastError();
    if (absl::IsPermissionDenied(met)) return met;
    const std::string why(answer.message());
    // A topic may have been created a moment ago; if it stays missing, the error says so.
    if (said != why && !missing) spdlog::warn("waiting for {}: {}", options.process.brokers, why);
    said = why;
    if (clock.WaitFor(stop, absl::Milliseconds(250))) {
      return absl::CancelledError(
          absl::StrCat("stopped while waiting for ", options.process.brokers, ": ", why));
    }
  }
}

absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, Brokers& brokers, absl::Time now) {
  const auto described = DescribeTopics(options, brokers);
  if (!described.ok()) return described.status();
  Topics topics = TopicsOf(*described);
  topics.least_partitions = INT32_MAX;
  for (const std::string& topic : TopicsOfSamePartition(options)) {
    topics.least_partitions = std::min(topics.least_partitions, brokers.CountPartitions(topic).value_or(0));
  }
  auto warnings = WarningsAtStart(ApplyTopicRules(options, *described), [&]() -> absl::StatusOr<bool> {
    const auto committed = brokers.AskCommitted(options.input, topics.partitions);
    if (!committed.ok()) return committed.status();
    return HasBegun(*committed);
  });
  if (!warnings.ok()) return warnings.status();
  topics.warnings = *std::move(warnings);
  for (const Finding& finding : FindExpiringIn(*described, options, brokers, now)) {
    topics.warnings.push_back(finding.Text());
  }
  if (absl::Status ends = AddEndOffsets(brokers, options.input, topics); !ends.ok()) return ends;
  return topics;
}

absl::StatusOr<std::optional<Finding>> FindWrittenBefore(const DaemonOptions& options, Brokers& judging,
                                                         Brokers* routers) {
  if (options.accept_nonempty_output || options.start != Start::kEarliest) return std::nullopt;
  auto begun = HasEitherBegun(options, judging, routers);
  if (!begun.ok()) return begun.status();
  if (*begun) return std::nullopt;
  const auto holds = HoldsRecords(options.output, judging);
  const bool may_read = !absl::IsPermissionDenied(holds.status());
  if (!holds.ok() && may_read) return holds.status();
  if (may_read && !*holds) return std::nullopt;
  // Another instance may have begun meanwhile: the records are its own.
  begun = HasEitherBegun(options, judging, routers);
  if (!begun.ok()) return begun.status();
  if (*begun) return std::nullopt;
  return WrittenBefore(options, may_read);
}

absl::Status RefuseWritten(const DaemonOptions& options, Brokers& judging, Brokers* routers) {
  const auto written = FindWrittenBefore(options, judging, routers);
  // Other troubles are told where the topics are inspected.
  if (!written.ok()) return absl::IsUnavailable(written.status()) ? written.status() : absl::OkStatus();
  if (!*written) return absl::OkStatus();
  if ((*written)->severity == Finding::Severity::kError) {
    return absl::FailedPreconditionError((*written)->Text());
  }
  spdlog::warn("{}", (*written)->Text());
  return absl::OkStatus();
}

bool MayGoOn(const absl::Status& asked, const Clock& clock, absl::Time& give_up) {
  if (!absl::IsUnavailable(asked)) {
    give_up = absl::InfiniteFuture();
    return false;
  }
  const absl::Time now = clock.Steady();
  give_up = std::min(give_up, now + kGroupPatience);
  if (now < give_up) return false;
  spdlog::warn(
      "{}: so it is not known whether the output has the records of the input already; if the group has not "
      "begun, lethe writes them to it",
      std::string(asked.message()));
  return true;
}

TopicList::HasCommits HasCommitsBy(Brokers& brokers, const std::map<std::string, int32_t>& listed) {
  return [&brokers, &listed](const std::vector<const DaemonOptions*>& inputs) {
    std::map<std::string, int32_t> asked;
    for (const DaemonOptions* each : inputs) {
      if (const auto found = listed.find(JudgedTopic(*each)); found != listed.end()) asked.insert(*found);
    }
    const auto committed = brokers.AskCommittedOf(asked);
    std::vector<absl::StatusOr<bool>> answers;
    for (const DaemonOptions* each : inputs) {
      const auto found = committed.find(JudgedTopic(*each));
      if (found == committed.end() || absl::IsNotFound(found->second.status())) {
        answers.emplace_back(false);
      } else if (!found->second.ok()) {
        answers.emplace_back(found->second.status());
      } else {
        answers.emplace_back(HasBegun(*found->second));
      }
    }
    return answers;
  };
}

absl::StatusOr<TopicList::Inputs> FindInputs(Brokers& brokers, const TopicList& list) {
  const auto listed = Patiently(kFindPatience, [&] { return brokers.ListTopics(); });
  if (!listed.ok()) return listed.status();
  std::set<std::string> names;
  for (const auto& [name, partitions] : *listed) names.insert(name);
  TopicList::Inputs inputs = list.Match(names, {}, HasCommitsBy(brokers, *listed));
  if (names.empty() && inputs.topics.empty()) return SeesNoTopic();
  return inputs;
}

absl::Status SeesNoTopic() {
  return absl::FailedPreconditionError(
      "the brokers name no topic to this user: create one, or grant this user Describe on the topics");
}

}  // namespace lethe
