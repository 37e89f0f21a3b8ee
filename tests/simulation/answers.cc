#include "tests/simulation/answers.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "tests/simulation/brokers.h"
#include "tests/simulation/source.h"

namespace lethe::simulation {
namespace {

constexpr absl::Duration kAskAgainAfter = absl::Milliseconds(20);

absl::Status Away() { return absl::UnavailableError("no broker answers"); }

}  // namespace

ByTopic<Cluster::CommittedOffsets> Answers::AskCommitted(const std::map<std::string, int32_t>& counts) {
  thread_.Pass();
  ByTopic<CommittedOffsets> answers;
  for (const auto& [topic, count] : counts) {
    if (is_away()) {
      answers.emplace(topic, Away());
    } else {
      answers.emplace(topic, group_.Committed(topic, count));
    }
  }
  thread_.Pass();
  return answers;
}

ByTopic<Cluster::Logs> Answers::AskLogs(const std::map<std::string, std::vector<int32_t>>& partitions) {
  thread_.Pass();
  ByTopic<Logs> answers;
  for (const auto& [name, of_topic] : partitions) answers.emplace(name, LogsOf(name, of_topic));
  return answers;
}

absl::StatusOr<Cluster::Logs> Answers::LogsOf(const std::string& name,
                                              const std::vector<int32_t>& partitions) const {
  if (is_away()) return Away();
  Logs logs;
  for (const int32_t partition : partitions) {
    const auto* const log = broker_.FindLog(name, partition);
    if (log == nullptr) return absl::NotFoundError("no such partition");
    logs[partition] = {log->start(), log->stable_end()};
  }
  return logs;
}

absl::StatusOr<std::vector<absl::Time>> Answers::AskTimes(const std::vector<LogPlace>& places) {
  thread_.Pass();
  if (is_away()) return Away();
  std::vector<absl::Time> times;
  for (const LogPlace& place : places) {
    const auto* const log = broker_.FindLog(place.topic, place.partition);
    if (log == nullptr) return absl::NotFoundError("no such partition");
    times.push_back(TimeOfNextCommitted(broker_, *log, place.offset));
  }
  return times;
}

ByTopic<int32_t> Answers::CountPartitions(const std::vector<std::string>& topics) {
  thread_.Pass();
  ByTopic<int32_t> counts;
  for (const std::string& topic : topics) {
    if (is_away()) {
      counts.emplace(topic, Away());
    } else if (broker_.Find(topic) == nullptr) {
      counts.emplace(topic, absl::NotFoundError("no such topic"));
    } else {
      counts.emplace(topic, broker_.CountPartitions(topic));
    }
  }
  return counts;
}

std::map<std::string, std::string> Answers::TopicIds(const std::vector<std::string>& topics) {
  thread_.Pass();
  std::map<std::string, std::string> ids;
  if (is_away()) return ids;
  for (const std::string& name : topics) {
    const Topic* const topic = broker_.Find(name);
    ids[name] = topic == nullptr ? "" : topic->id;
  }
  return ids;
}

absl::Status Answers::ReadTotals(const std::string& topic, const std::vector<int32_t>& partitions,
                                 const std::function<void(const InputRecord&)>& see, const GoOn& go_on) {
  thread_.Pass();
  if (is_away()) return Away();
  std::deque<std::unique_ptr<InputHeaders>> headers;
  for (const int32_t partition : partitions) {
    const lethe::simulation::Log& log = *broker_.topic(topic).logs.at(static_cast<size_t>(partition));
    const int64_t end = log.end();
    for (int64_t next = log.start(); next < end;) {
      if (next >= log.stable_end()) {
        thread_.Sleep(kAskAgainAfter);
        if (!go_on()) return absl::CancelledError("stopped");
        continue;
      }
      const Entry& entry = log.at(next);
      if (entry.kind == Entry::Kind::kRecord && broker_.is_committed(entry.transaction)) {
        see(ViewOf(entry.record, {0, partition}, next, headers));
      }
      ++next;
    }
  }
  thread_.Pass();
  return absl::OkStatus();
}

}  // namespace lethe::simulation
