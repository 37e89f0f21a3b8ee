#include "src/pipeline/report/readiness.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace lethe {
namespace {

std::string WholeSeconds(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

std::string WaitsForAssignment(const std::string& lane, const MemberReport& member) {
  std::string text = absl::StrCat(lane, " waits for the group to assign partitions");
  if (member.unassigned_for >= absl::Seconds(1)) {  // it has asked to join
    absl::StrAppend(&text, ", for ", WholeSeconds(member.unassigned_for), " so far; after a crash up to ",
                    absl::FormatDuration(member.session_timeout), " (session.timeout.ms)");
  }
  return text;
}

std::string IsRestoring(const PartitionReport& partition) {
  const RestoreReport& restore = partition.restore;
  std::string text =
      absl::StrCat(partition.Name(), " is restoring: ", restore.left, " offsets to go, up to ", restore.to);
  if (restore.time_left < absl::InfiniteDuration()) {
    absl::StrAppend(&text, ", in some ",
                    absl::FormatDuration(absl::Ceil(restore.time_left, absl::Seconds(1))));
  }
  return text;
}

}  // namespace

std::vector<TopicProblem> Problems(const std::vector<LaneReport>& lanes) {
  struct Problem {
    TopicProblem first;
    int more = 0;
  };
  std::vector<Problem> problems;
  std::map<std::pair<std::string, std::string>, size_t> known;  // by topic and reason
  for (const LaneReport& lane : lanes) {
    for (const PartitionReport& partition : lane.partitions) {
      if (partition.problem.empty()) continue;
      absl::string_view reason = partition.problem;
      absl::ConsumePrefix(&reason, partition.Name());
      const auto [found, is_new] = known.try_emplace({partition.topic, std::string(reason)}, problems.size());
      if (is_new) {
        problems.push_back({{partition.topic, partition.problem}});
      } else {
        ++problems[found->second].more;
      }
    }
  }
  std::vector<TopicProblem> texts;
  for (Problem& problem : problems) {
    if (problem.more > 0) {
      absl::StrAppend(&problem.first.text, " (and ", problem.more, " more partitions)");
    }
    texts.push_back(std::move(problem.first));
  }
  return texts;
}

void AddReasons(const LaneGroup& group, const std::vector<LaneReport>& lanes,
                std::vector<std::string>& reasons, std::vector<TopicProblem>& problems) {
  // Failures first: a restore ends by itself.
  for (TopicProblem& problem : Problems(lanes)) problems.push_back(std::move(problem));
  if (!group.unanswered.ok()) {
    reasons.push_back(absl::StrCat("the brokers at ", group.brokers, " have not told where logs end, for ",
                                   WholeSeconds(group.unanswered_for), ": ", group.unanswered.message()));
  }
  std::map<std::string, std::string> gone;  // each lane says so
  std::map<std::string, size_t> restoring;  // by topic, the place of its line
  std::map<size_t, int> more;               // by that place
  for (const LaneReport& lane : lanes) {
    const std::string name = absl::StrCat(group.is_routing ? "routing lane " : "lane ", lane.lane);
    // A routed topic that is not there is told by itself.
    const bool has_nothing = group.is_routing && group.topics == 0;
    // The group assigns nothing of topics that were deleted.
    const bool has_none_left = !lane.gone.empty() && static_cast<int32_t>(lane.gone.size()) >= group.topics;
    if (!lane.member.joined && !has_nothing && !has_none_left)
      reasons.push_back(WaitsForAssignment(name, lane.member));
    if (!lane.waiting.empty()) reasons.push_back(absl::StrCat(name, ": ", lane.waiting));
    gone.insert(lane.gone.begin(), lane.gone.end());
    for (const PartitionReport& partition : lane.partitions) {
      if (partition.phase != Phase::kChecking && partition.phase != Phase::kRestoring) continue;
      // Of a list, one line a topic: there may be thousands of partitions.
      const auto [first, is_new] = restoring.try_emplace(partition.topic, problems.size());
      if (is_new || group.topics == 1) {
        problems.push_back({partition.topic, IsRestoring(partition)});
      } else {
        ++more[first->second];
      }
    }
  }
  for (const auto& [problem, partitions] : more) {
    absl::StrAppend(&problems[problem].text, " (and ", partitions, " more partitions)");
  }
  for (const auto& [topic, why] : gone) problems.push_back({topic, why});
}

void SetReadiness(const std::vector<std::string>& reasons, const std::vector<TopicProblem>& problems,
                  DaemonReport& report) {
  std::set<absl::string_view> troubled;
  for (const TopicProblem& problem : problems) troubled.insert(problem.topic);
  const auto is_fine = [&](const TopicReport& topic) {
    // Of merged inputs one may be away.
    const bool has_input = topic.routed_from.empty() ||
                           std::any_of(topic.routed_from.begin(), topic.routed_from.end(),
                                       [&](const std::string& input) { return !troubled.contains(input); });
    return has_input && !troubled.contains(topic.input);
  };
  const bool is_any_fine =
      report.topics.size() > 1 && std::any_of(report.topics.begin(), report.topics.end(), is_fine);
  std::vector<std::string>& texts = reasons.empty() && is_any_fine ? report.but_for : report.not_ready;
  for (const TopicProblem& problem : problems) texts.push_back(problem.text);
  report.not_ready.insert(report.not_ready.end(), reasons.begin(), reasons.end());
}

int CountUnread(const DaemonReport& report, bool named) {
  std::set<absl::string_view> gone;
  for (const std::vector<LaneReport>* lanes : {&report.lanes, &report.routing_lanes}) {
    for (const LaneReport& lane : *lanes) {
      for (const auto& [topic, why] : lane.gone) gone.insert(topic);
    }
  }
  return static_cast<int>(absl::c_count_if(report.topics, [&](const TopicReport& topic) {
    if (topic.is_named != named) return false;
    return !topic.problem.empty() || gone.contains(topic.input) ||
           absl::c_any_of(topic.routed_from, [&](const std::string& input) { return gone.contains(input); });
  }));
}

void SetUnanswered(DaemonReport& report) {
  report.is_answered = false;
  for (std::vector<LaneReport>* lanes : {&report.lanes, &report.routing_lanes}) {
    for (LaneReport& lane : *lanes) {
      for (PartitionReport& partition : lane.partitions) partition.log.is_answered = false;
    }
  }
}

}  // namespace lethe
