#include "src/pipeline/preflight/flow_finder.h"

#include <spdlog/spdlog.h>

#include <set>

#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/stage_options.h"
#include "src/pipeline/preflight/describe_topics.h"
#include "src/pipeline/preflight/inspect_topics.h"
#include "src/pipeline/preflight/own_topics.h"

namespace lethe {
namespace {

// Topics that the log names at once; a pattern may match hundreds.
constexpr int kMostLogged = 10;

}  // namespace

absl::Status FlowFinder::Look(Brokers& brokers) {
  const auto listed = brokers.ListTopics();
  if (!listed.ok()) return listed.status();
  std::set<std::string> names;
  for (const auto& [name, partitions] : *listed) names.insert(name);
  if (!at_start_) at_start_ = names;
  std::set<std::string> present;
  for (int32_t flow = 0; flow < flows_.size(); ++flow) {
    const DaemonOptions& options = flows_.at(flow).options;
    present.insert(options.half.routed_from.empty() ? options.input : options.half.routed_from.front());
  }
  TopicList::Inputs inputs = list_.Match(names, present, HasCommitsBy(brokers, *listed));
  if (names.empty() && inputs.topics.empty()) return absl::UnavailableError(SeesNoTopic().message());
  std::map<std::string, std::string> problems;
  std::set<std::string> passing;  // of these, what may pass by itself
  int added_count = 0;
  for (TopicList::Refused& each : inputs.refused) problems.emplace(each.topic, std::move(each.why));
  for (size_t i = 0; i < inputs.topics.size(); ++i) {
    const DaemonOptions& options = inputs.topics[i];
    const bool is_judged = present.contains(options.input);
    if (is_judged && Unrouted(options).empty()) continue;
    std::map<std::string, std::string> missing;  // of merged inputs
    // Strangers may create as many topics that a pattern matches as they like.
    absl::Status added = i < inputs.named ? absl::OkStatus() : CheckListed(options, *listed);
    if (added.ok()) added = AddTopic(options, brokers, is_judged, added_count < kMostLogged, missing);
    added_count += added.ok() && !is_judged ? 1 : 0;
    problems.merge(missing);
    if (!added.ok()) problems.emplace(options.input, std::string(added.message()));
    if (absl::IsUnavailable(added)) passing.insert(options.input);
  }
  if (added_count > kMostLogged) {
    spdlog::info("{} more topics are read, {} in all: /status lists them", added_count - kMostLogged,
                 flows_.size());
  }
  expects_more_ = !passing.empty();
  const MutexLock lock(mutex_);
  int new_problems = 0;
  for (const auto& [topic, why] : problems) {
    // A topic that was made a moment ago has no leader, and has one at the next look.
    const bool may_pass = passing.contains(topic) && !problems_.contains(topic);
    if (may_pass || said_[topic] == why) continue;
    said_[topic] = why;
    if (++new_problems <= kMostLogged) spdlog::error("{} is not read: {}", topic, why);
  }
  if (new_problems > kMostLogged) {
    spdlog::error("{} more topics are not read: /status says why", new_problems - kMostLogged);
  }
  std::erase_if(said_, [&](const auto& said) { return !problems.contains(said.first); });
  problems_ = std::move(problems);
  return absl::OkStatus();
}

std::vector<std::string> FlowFinder::Unrouted(const DaemonOptions& options) const {
  if (options.scope != Scope::kTopic) return {};
  std::vector<std::string> unrouted = options.inputs();
  std::erase_if(unrouted, [&](const std::string& input) { return routed_.contains(input); });
  return unrouted;
}

DaemonOptions FlowFinder::FromItsStart(DaemonOptions options) const {
  if (!at_start_->contains(options.input)) options.start = Start::kEarliest;
  return options;
}

absl::Status FlowFinder::AddTopic(const DaemonOptions& options, Brokers& brokers, bool is_judged,
                                  bool is_logged, std::map<std::string, std::string>& missing) {
  std::vector<std::pair<DaemonOptions, Topics>> found;
  if (options.scope == Scope::kTopic) {
    // Before anything is routed.
    const auto ask = [&](const std::string& topic, int32_t) { return brokers.AskCommitted(topic); };
    if (absl::Status scope = CheckScope(JudgingOptions(options), 0, ask); !scope.ok()) return scope;
    if (absl::Status made = MakeRouters(options); !made.ok()) return made;
  }
  if (!is_judged) {
    Brokers* const routers = options.scope == Scope::kTopic ? routers_.get() : nullptr;
    const absl::Status refused = RefuseWritten(options, brokers, routers);
    if (!MayGoOn(refused, clock_, give_up_) && !refused.ok()) return refused;
  }
  if (options.scope == Scope::kTopic) {
    if (absl::Status routers = InspectRouters(options, found, missing); !routers.ok()) return routers;
    if (found.empty()) return absl::OkStatus();
    if (!is_judged && warned_of_loss_.insert(options.output).second) {
      WarnOfLoss(options, *routers_, brokers);
    }
  }
  // What may fail comes first: nothing is routed to a topic that is not judged.
  if (!is_judged) {
    DaemonOptions judging = options.scope == Scope::kTopic ? JudgingOptions(options) : FromItsStart(options);
    if (absl::Status made = EnsureTotalsTopics(judging, brokers); !made.ok()) return made;
    auto topics = InspectTopics(judging, brokers, clock_.Wall());
    if (!topics.ok()) return topics.status();
    if (absl::Status added = add_(judging, *std::move(topics), is_logged); !added.ok()) return added;
  }
  for (auto& [routing, its_topics] : found) {
    if (is_judged) spdlog::info("{} is read, too, for {}", routing.input, options.output);
    if (absl::Status added = add_(routing, std::move(its_topics), is_logged); !added.ok()) return added;
    routed_.insert(routing.input);
  }
  return absl::OkStatus();
}

absl::Status FlowFinder::MakeRouters(const DaemonOptions& options) {
  if (routers_ != nullptr) return absl::OkStatus();
  const DaemonOptions routing = RoutingOptions(options, options.input);
  auto routers = make_routers_(routing, IsolationOf(routing));
  if (!routers.ok()) return routers.status();
  routers_ = *std::move(routers);
  return absl::OkStatus();
}

absl::Status FlowFinder::InspectRouters(const DaemonOptions& options,
                                        std::vector<std::pair<DaemonOptions, Topics>>& found,
                                        std::map<std::string, std::string>& missing) {
  if (absl::Status made = EnsureRepartitionTopic(options, *routers_); !made.ok()) return made;
  for (const std::string& input : Unrouted(options)) {
    DaemonOptions routing = FromItsStart(RoutingOptions(options, input));
    auto topics = InspectTopics(routing, *routers_, clock_.Wall());
    if (absl::IsNotFound(topics.status())) {
      missing.emplace(input, std::string(topics.status().message()));
    } else if (!topics.ok()) {
      return topics.status();
    } else {
      found.emplace_back(std::move(routing), *std::move(topics));
    }
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> FlowFinder::Problems() const {
  const MutexLock lock(mutex_);
  return problems_;
}

}  // namespace lethe
