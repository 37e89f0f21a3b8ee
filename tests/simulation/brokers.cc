#include "tests/simulation/brokers.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tests/simulation/source.h"

namespace lethe::simulation {

absl::Time TimeOfNext(const Log& log, int64_t offset) {
  const int64_t end = log.stable_end();
  for (int64_t at = std::max(offset, log.start()); at < end; ++at) {
    const Entry& entry = log.at(at);
    if (entry.kind == Entry::Kind::kRecord) return absl::FromUnixMillis(entry.record.timestamp_ms);
  }
  return absl::InfiniteFuture();
}

absl::Time TimeOfNextCommitted(const Broker& broker, const Log& log, int64_t offset) {
  for (int64_t at = std::max(offset, log.start()); at < log.stable_end(); ++at) {
    const Entry& entry = log.at(at);
    const bool is_seen = entry.kind == Entry::Kind::kRecord && broker.is_committed(entry.transaction);
    if (is_seen) return absl::FromUnixMillis(entry.record.timestamp_ms);
  }
  return absl::InfiniteFuture();
}

absl::Status SimulatedBrokers::Ask() {
  thread_.Pass();
  if (!broker_.is_away() && connection_.is_up()) return absl::OkStatus();
  return absl::UnavailableError("no broker answers");
}

absl::StatusOr<const Topic*> SimulatedBrokers::AskOf(const std::string& topic) {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  const Topic* const found = broker_.Find(topic);
  if (found == nullptr) return absl::NotFoundError(absl::StrCat("there is no topic ", topic));
  return found;
}

absl::StatusOr<int> SimulatedBrokers::CountBrokers() {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  return 1;
}

absl::StatusOr<std::map<std::string, int32_t>> SimulatedBrokers::ListTopics() {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  std::map<std::string, int32_t> topics;
  for (const std::string& name : broker_.TopicNames()) topics.emplace(name, broker_.CountPartitions(name));
  return topics;
}

absl::StatusOr<int32_t> SimulatedBrokers::CountPartitions(const std::string& topic) {
  const auto found = AskOf(topic);
  if (!found.ok()) return found.status();
  return static_cast<int32_t>((*found)->logs.size());
}

absl::StatusOr<TopicFacts> SimulatedBrokers::DescribeTopic(const std::string& topic) {
  const auto found = AskOf(topic);
  if (!found.ok()) return found.status();
  return TopicFacts{.name = topic,
                    .partitions = static_cast<int32_t>((*found)->logs.size()),
                    .config = (*found)->config,
                    .replicas = 1};
}

absl::Status SimulatedBrokers::CreateTopic(const TopicFacts& topic, bool validate_only) {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  if (validate_only || broker_.Find(topic.name) != nullptr) return absl::OkStatus();
  broker_.CreateTopic(topic.name, topic.partitions, topic.config);
  thread_.Pass();
  return absl::OkStatus();
}

ByTopic<std::vector<CommittedOffset>> SimulatedBrokers::AskCommittedOf(
    const std::map<std::string, int32_t>& partitions) {
  const absl::Status asked = Ask();
  ByTopic<std::vector<CommittedOffset>> committed;
  for (const auto& [topic, count] : partitions) {
    if (asked.ok()) {
      committed.emplace(topic, group_.Committed(topic, count));
    } else {
      committed.emplace(topic, asked);
    }
  }
  if (asked.ok()) thread_.Pass();
  return committed;
}

absl::StatusOr<EndsByTopic> SimulatedBrokers::AskOffsets(const PartitionsByTopic& partitions, absl::Time at,
                                                         absl::Duration /*timeout*/) {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  EndsByTopic offsets;
  for (const auto& [topic, of_topic] : partitions) {
    if (broker_.Find(topic) == nullptr) return absl::NotFoundError(absl::StrCat("there is no topic ", topic));
    for (const int32_t partition : of_topic) {
      const Log* const log = broker_.FindLog(topic, partition);
      if (log == nullptr) continue;
      const int64_t end = EndOf(*log);
      int64_t offset = at == absl::InfiniteFuture() ? end : log->start();
      while (offset < end && TimeOfNext(*log, offset) < at) ++offset;
      if (offset < end || at == absl::InfiniteFuture()) offsets[topic][partition] = offset;
    }
  }
  thread_.Pass();
  return offsets;
}

absl::StatusOr<OffsetRange> SimulatedBrokers::AskBounds(const std::string& topic, int32_t partition) {
  if (const auto found = AskOf(topic); !found.ok()) return found.status();
  const Log* const log = broker_.FindLog(topic, partition);
  if (log == nullptr) return absl::NotFoundError(absl::StrCat(topic, " has no partition ", partition));
  return OffsetRange{log->start(), EndOf(*log)};
}

absl::StatusOr<std::vector<absl::Time>> SimulatedBrokers::AskTimes(const std::vector<LogPlace>& places) {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  std::vector<absl::Time> times;
  for (const LogPlace& place : places) {
    const Log* const log = broker_.FindLog(place.topic, place.partition);
    if (log == nullptr) return absl::NotFoundError(absl::StrCat("there is no topic ", place.topic));
    times.push_back(TimeOfNextCommitted(broker_, *log, place.offset));
  }
  return times;
}

absl::Status SimulatedBrokers::Read(const std::string& topic, const std::map<int32_t, OffsetRange>& ranges,
                                    absl::Duration /*patience*/,
                                    const std::function<void(const InputRecord&)>& see) {
  if (const auto found = AskOf(topic); !found.ok()) return found.status();
  std::deque<std::unique_ptr<InputHeaders>> headers;
  for (const auto& [partition, range] : ranges) {
    const Log& log = *broker_.FindLog(topic, partition);
    for (int64_t at = std::max(range.begin, log.start()); at < std::min(range.end, EndOf(log)); ++at) {
      const Entry& entry = log.at(at);
      const bool is_seen = entry.kind == Entry::Kind::kRecord && broker_.is_committed(entry.transaction);
      if (is_seen) see(ViewOf(entry.record, {0, partition}, at, headers));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NamedMember>> SimulatedBrokers::AskMembers() {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  return group_.Members();
}

absl::StatusOr<Brokers::Answers> SimulatedBrokers::DeleteRecords(const EndsByTopic& below) {
  if (absl::Status asked = Ask(); !asked.ok()) return asked;
  Answers answers;
  for (const auto& [topic, of_topic] : below) {
    for (const auto& [partition, offset] : of_topic) {
      Log* const log = broker_.FindLog(topic, partition);
      if (log != nullptr) log->DeleteBefore(offset);
      answers[topic][partition] =
          log != nullptr ? absl::OkStatus() : absl::NotFoundError("no such partition");
    }
  }
  thread_.Pass();
  return answers;
}

}  // namespace lethe::simulation
