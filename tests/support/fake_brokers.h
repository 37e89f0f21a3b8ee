// Brokers in memory: topics, commits and ends, as a test sets them.
#ifndef LETHE_TESTS_SUPPORT_FAKE_BROKERS_H_
#define LETHE_TESTS_SUPPORT_FAKE_BROKERS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/pipeline/preflight/brokers.h"

namespace lethe {

// What the brokers have. Not thread-safe.
struct FakeTopics {
  struct Record {
    int32_t partition = 0;
    int64_t offset = 0;
    absl::Time time = absl::UnixEpoch();
    std::string key = {};
    std::optional<std::string> value = "";
  };
  struct Topic {
    int32_t partitions = 1;
    TopicConfig config = {};
    std::map<int32_t, int64_t> ends = {};                              // by partition; none: 0
    std::map<std::string, std::vector<CommittedOffset>> commits = {};  // by group
    std::map<int32_t, int64_t> starts = {};                            // as ends
    std::vector<Record> records = {};                                  // ascending by offset
    absl::Status may_be_read = {};
  };
  std::map<std::string, Topic> by_name = {};
  std::map<std::string, absl::Status> trouble =
      {};  // of topics: what every question about them is answered with
  std::map<std::string, absl::Status> group_trouble = {};        // the same, of groups and their commits
  std::map<std::string, std::vector<NamedMember>> members = {};  // by group
  absl::Status refusal = {};                                     // of the clients' credentials
  bool is_away = false;
  absl::Status may_create = {};
  std::vector<std::string> created = {};
  EndsByTopic deleted_below = {};
  std::set<std::string> hidden = {};  // topics that no list of topics has
  int questions = 0;                  // requests, of all clients
};

// A client of this group.
class FakeBrokers final : public Brokers {
 public:
  FakeBrokers(FakeTopics& topics, std::string group) : topics_(topics), group_(std::move(group)) {}

  absl::Status LastError() override { return topics_.refusal.ok() ? Away() : topics_.refusal; }
  absl::StatusOr<int> CountBrokers() override {
    ++topics_.questions;
    if (absl::Status away = LastError(); !away.ok()) return away;
    return 1;
  }
  absl::StatusOr<std::map<std::string, int32_t>> ListTopics() override {
    ++topics_.questions;
    if (absl::Status away = Away(); !away.ok()) return away;
    std::map<std::string, int32_t> topics;
    for (const auto& [name, topic] : topics_.by_name) {
      if (!topics_.hidden.contains(name)) topics.emplace(name, topic.partitions);
    }
    return topics;
  }
  absl::StatusOr<int32_t> CountPartitions(const std::string& topic) override {
    ++topics_.questions;
    if (absl::Status found = Find(topic); !found.ok()) return found;
    return topics_.by_name[topic].partitions;
  }
  absl::StatusOr<TopicFacts> DescribeTopic(const std::string& topic) override {
    ++topics_.questions;
    if (absl::Status found = Find(topic); !found.ok()) return found;
    return TopicFacts{.name = topic,
                      .partitions = topics_.by_name[topic].partitions,
                      .config = topics_.by_name[topic].config};
  }
  absl::Status CreateTopic(const TopicFacts& topic, bool validate_only) override {
    ++topics_.questions;
    if (absl::Status away = Away(); !away.ok()) return away;
    if (!topics_.may_create.ok() || validate_only) return topics_.may_create;
    topics_.created.push_back(topic.name);
    topics_.by_name[topic.name] = {.partitions = topic.partitions, .config = topic.config};
    return absl::OkStatus();
  }
  ByTopic<std::vector<CommittedOffset>> AskCommittedOf(
      const std::map<std::string, int32_t>& partitions) override {
    ++topics_.questions;
    ByTopic<std::vector<CommittedOffset>> answers;
    for (const auto& [topic, count] : partitions) {
      absl::StatusOr<std::vector<CommittedOffset>>& answer = answers[topic];
      if (absl::Status found = Find(topic); !found.ok()) {
        answer = found;
      } else if (topics_.group_trouble.contains(group_)) {
        answer = topics_.group_trouble[group_];
      } else {
        answer = topics_.by_name[topic].commits[group_];
        answer->resize(static_cast<size_t>(count));
      }
    }
    return answers;
  }
  absl::StatusOr<EndsByTopic> AskOffsets(const PartitionsByTopic& partitions, absl::Time at,
                                         absl::Duration) override {
    ++topics_.questions;
    EndsByTopic offsets;
    for (const auto& [topic, of_topic] : partitions) {
      if (absl::Status found = Find(topic); !found.ok()) return found;
      FakeTopics::Topic& known = topics_.by_name[topic];
      for (const int32_t partition : of_topic) {
        if (at == absl::InfiniteFuture()) offsets[topic][partition] = known.ends[partition];
        for (const FakeTopics::Record& record : known.records) {
          if (record.partition != partition || record.time < at) continue;
          offsets[topic].try_emplace(partition, record.offset);
        }
      }
    }
    return offsets;
  }
  absl::StatusOr<OffsetRange> AskBounds(const std::string& topic, int32_t partition) override {
    ++topics_.questions;
    if (absl::Status found = Find(topic); !found.ok()) return found;
    FakeTopics::Topic& known = topics_.by_name[topic];
    return OffsetRange{known.starts[partition], known.ends[partition]};
  }
  absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) override {
    std::vector<absl::Time> times;
    for (const LogPlace& place : places) {
      if (absl::Status found = Find(place.topic); !found.ok()) return found;
      times.push_back(absl::InfiniteFuture());
      for (const FakeTopics::Record& record : topics_.by_name[place.topic].records) {
        if (record.partition != place.partition || record.offset < place.offset) continue;
        times.back() = record.time;
        break;
      }
    }
    return times;
  }
  absl::Status Read(const std::string& topic, const std::map<int32_t, OffsetRange>& ranges, absl::Duration,
                    const std::function<void(const InputRecord&)>& see) override {
    if (absl::Status found = Find(topic); !found.ok()) return found;
    if (!topics_.by_name[topic].may_be_read.ok()) return topics_.by_name[topic].may_be_read;
    for (const FakeTopics::Record& record : topics_.by_name[topic].records) {
      const auto range = ranges.find(record.partition);
      if (range == ranges.end() || record.offset < range->second.begin || record.offset >= range->second.end)
        continue;
      see({.partition = record.partition,
           .offset = record.offset,
           .key = record.key,
           .value = record.value,
           .timestamp_ms = absl::ToUnixMillis(record.time)});
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<NamedMember>> AskMembers() override { return topics_.members[group_]; }
  absl::StatusOr<Answers> DeleteRecords(const EndsByTopic& below) override {
    if (absl::Status away = Away(); !away.ok()) return away;
    Answers answers;
    for (const auto& [topic, of_topic] : below) {
      for (const auto& [partition, offset] : of_topic) {
        answers[topic][partition] = Find(topic);
        if (answers[topic][partition].ok()) topics_.deleted_below[topic][partition] = offset;
      }
    }
    return answers;
  }

 private:
  absl::Status Away() const {
    return topics_.is_away ? absl::UnavailableError("no broker answers") : absl::OkStatus();
  }
  absl::Status Find(const std::string& topic) const {
    if (absl::Status away = Away(); !away.ok()) return away;
    const auto trouble = topics_.trouble.find(topic);
    if (trouble != topics_.trouble.end()) return trouble->second;
    return topics_.by_name.contains(topic) ? absl::OkStatus()
                                           : absl::NotFoundError(absl::StrCat("no ", topic));
  }

  FakeTopics& topics_;
  const std::string group_;
};

inline MakeBrokers MakerOf(FakeTopics& topics) {
  return [&topics](const DaemonOptions& options, Isolation) {
    return std::make_unique<FakeBrokers>(topics, options.process.group);
  };
}

}  // namespace lethe

#endif  // LETHE_TESTS_SUPPORT_FAKE_BROKERS_H_
