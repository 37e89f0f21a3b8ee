#include "src/pipeline/assign/assigned_topic.h"

#include <algorithm>
#include <utility>

#include "src/pipeline/assign/assigner.h"
#include "src/pipeline/options/stage_options.h"

namespace lethe {
absl::Status AssignmentQuestions::Ask(std::vector<AssignedTopic>& topics, Patience patience) {
  if (absl::Status asked = AskCommitted(topics); !asked.ok()) return asked;
  if (absl::Status asked = CheckScopes(topics); !asked.ok()) return asked;
  std::vector<std::string> names;
  for (const AssignedTopic& topic : topics) names.push_back(topic.flow->options.input);
  const std::map<std::string, std::string> ids = cluster_.TopicIds(names);
  for (AssignedTopic& topic : topics) {
    if (const auto id = ids.find(topic.flow->options.input); id != ids.end()) topic.topic_id = id->second;
  }
  // After the committed offsets: a log that ends before one of them was truncated.
  return AskLogs(topics, patience);
}

absl::Status AssignmentQuestions::AskCommitted(std::vector<AssignedTopic>& topics) {
  return state_.Await([&] {
    std::map<std::string, int32_t> wanted;
    for (const AssignedTopic& topic : topics) {
      if (topic.problem.ok() && topic.committed.empty()) {
        wanted[topic.flow->options.input] = topic.all_partitions;
      }
    }
    auto answers = cluster_.AskCommitted(wanted);
    absl::Status waits;
    for (AssignedTopic& topic : topics) {
      const auto answer = answers.find(topic.flow->options.input);
      if (answer == answers.end()) continue;
      if (answer->second.ok()) {
        topic.committed = *std::move(answer->second);
      } else if (absl::IsUnavailable(answer->second.status())) {
        waits = answer->second.status();
      } else {
        topic.problem = answer->second.status();
      }
    }
    return waits;
  });
}

absl::Status AssignmentQuestions::CheckScopes(std::vector<AssignedTopic>& topics) {
  std::map<std::string, int32_t> wanted;
  for (const AssignedTopic& topic : topics) {
    if (!topic.problem.ok() || topic.has_begun) continue;
    for (const std::string& other : TopicsOfOtherScope(topic.flow->options)) {
      int32_t& partitions = wanted[other];  // of one that several inputs are merged in: all
      partitions = std::max(partitions, topic.all_partitions);
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  ByTopic<Cluster::CommittedOffsets> answers;
  const absl::Status asked = state_.Await([&] {
    answers = cluster_.AskCommitted(wanted);
    for (const auto& [topic, answer] : answers) {
      if (absl::IsUnavailable(answer.status())) return answer.status();
    }
    return absl::OkStatus();
  });
  if (!asked.ok()) return asked;
  for (AssignedTopic& topic : topics) {
    if (!topic.problem.ok() || topic.has_begun) continue;
    topic.problem = CheckScope(topic.flow->options, topic.all_partitions,
                               [&](const std::string& other, int32_t) { return answers.at(other); });
  }
  return absl::OkStatus();
}

absl::Status AssignmentQuestions::AskLogs(std::vector<AssignedTopic>& topics, Patience patience) {
  const absl::Time begin = state_.clock.Steady();
  return state_.Await([&] {
    std::map<std::string, std::vector<int32_t>> wanted;
    for (const AssignedTopic& topic : topics) {
      if (topic.problem.ok() && topic.logs.empty()) wanted[topic.flow->options.input] = topic.partitions;
    }
    auto answers = cluster_.AskLogs(wanted);
    const absl::Duration waited = state_.clock.Steady() - begin;
    const bool is_any_known =
        topics.size() == 1 || wanted.size() < topics.size() ||
        std::any_of(answers.begin(), answers.end(), [](const auto& each) { return each.second.ok(); });
    absl::Status waits;
    for (AssignedTopic& topic : topics) {
      const auto answer = answers.find(topic.flow->options.input);
      if (answer == answers.end()) continue;
      const absl::Status& status = answer->second.status();
      const bool is_unknown = absl::IsNotFound(status);
      if (status.ok()) {
        topic.logs = *std::move(answer->second);
      } else if (is_unknown ? waited < patience.unknown
                            : absl::IsUnavailable(status) && (!is_any_known || waited < patience.leader)) {
        waits = absl::UnavailableError(status.message());
      } else {
        topic.problem = status;
        topic.has_no_answer = is_unknown || absl::IsUnavailable(status);
      }
    }
    return waits;
  });
}

}  // namespace lethe
