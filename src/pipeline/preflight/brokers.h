// What is asked of the brokers, beside the streams of workers.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_BROKERS_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_BROKERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/preflight/topic_facts.h"
#include "src/pipeline/task/cluster.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// Kafka's isolation.level: whether the end of a log is its last stable offset, or its high watermark.
enum class Isolation { kReadCommitted, kReadUncommitted };

using PartitionsByTopic = std::map<std::string, std::vector<int32_t>>;
using EndsByTopic = std::map<std::string, std::map<int32_t, int64_t>>;  // of logs, by partition

// Offsets of one partition, without `end`.
struct OffsetRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// A client of one group, which it does not join, at one isolation level. Answers, and decides nothing. A call
// takes a few seconds at most. Unavailable: ask again. Not thread-safe.
class Brokers {
 public:
  virtual ~Brokers() = default;

  // The last error of its connections; OK if there was none. PermissionDenied: its credentials are refused.
  virtual absl::Status LastError() = 0;
  virtual absl::StatusOr<int> CountBrokers() = 0;
  // The number of partitions of all topics but Kafka's own that this user may describe.
  virtual absl::StatusOr<std::map<std::string, int32_t>> ListTopics() = 0;
  // NotFound: there is no such topic (yet).
  virtual absl::StatusOr<int32_t> CountPartitions(const std::string& topic) = 0;
  virtual absl::StatusOr<TopicFacts> DescribeTopic(const std::string& topic) = 0;
  // With the name, partitions, replicas (0: the brokers' default) and configuration of `topic`. OK if it was
  // created meanwhile. `validate_only` only asks whether it would be created.
  virtual absl::Status CreateTopic(const TopicFacts& topic, bool validate_only) = 0;
  // By partition, for 0 .. partitions - 1 of any topics, in one question.
  virtual ByTopic<std::vector<CommittedOffset>> AskCommittedOf(
      const std::map<std::string, int32_t>& partitions) = 0;
  // The first offset at or after the time; InfiniteFuture: the end of the log. Without those that got no
  // answer, or have none. NotFound: a topic was deleted.
  virtual absl::StatusOr<EndsByTopic> AskOffsets(const PartitionsByTopic& partitions, absl::Time at,
                                                 absl::Duration timeout) = 0;
  virtual absl::StatusOr<OffsetRange> AskBounds(const std::string& topic, int32_t partition) = 0;
  // The timestamp of the first record at or after each place. InfiniteFuture: there is none; InfinitePast: it
  // has none, or did not come within ten seconds. PermissionDenied: the user may not read.
  virtual absl::StatusOr<std::vector<absl::Time>> AskTimes(const std::vector<LogPlace>& places) = 0;
  // Reads ranges of a topic by partition, all at once, until they are done or the patience is over. Errors as
  // AskTimes.
  virtual absl::Status Read(const std::string& topic, const std::map<int32_t, OffsetRange>& ranges,
                            absl::Duration patience, const std::function<void(const InputRecord&)>& see) = 0;
  // The members of its group.
  virtual absl::StatusOr<std::vector<NamedMember>> AskMembers() = 0;
  // Deletes the records below these offsets; says what became of each partition.
  using Answers = std::map<std::string, std::map<int32_t, absl::Status>>;  // by topic
  virtual absl::StatusOr<Answers> DeleteRecords(const EndsByTopic& below) = 0;

  absl::StatusOr<std::vector<std::string>> TopicNames() {
    const auto topics = ListTopics();
    if (!topics.ok()) return topics.status();
    std::vector<std::string> names;
    for (const auto& [name, partitions] : *topics) names.push_back(name);
    return names;
  }
  // What the group has committed of a topic.
  absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(const std::string& topic, int32_t partitions) {
    return std::move(AskCommittedOf({{topic, partitions}}).at(topic));
  }
  absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(const std::string& topic) {
    const auto partitions = CountPartitions(topic);
    if (!partitions.ok()) return partitions.status();
    return AskCommitted(topic, *partitions);
  }
  absl::StatusOr<EndsByTopic> AskEnds(const PartitionsByTopic& partitions, absl::Duration timeout) {
    return AskOffsets(partitions, absl::InfiniteFuture(), timeout);
  }
  // Of one topic.
  absl::StatusOr<std::map<int32_t, int64_t>> AskEnds(const std::string& topic,
                                                     const std::vector<int32_t>& partitions,
                                                     absl::Duration timeout) {
    auto ends = AskEnds({{topic, partitions}}, timeout);
    if (!ends.ok()) return ends.status();
    return std::move((*ends)[topic]);
  }
};

// Makes a client of the options' group.
using MakeBrokers =
    std::function<absl::StatusOr<std::unique_ptr<Brokers>>(const DaemonOptions& options, Isolation)>;

// A routed record is committed by routers and others alike, and its commit answered before it is stable.
inline Isolation IsolationOf(const DaemonOptions& options) {
  return options.half.routed_from.empty() ? Isolation::kReadCommitted : Isolation::kReadUncommitted;
}

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_BROKERS_H_
