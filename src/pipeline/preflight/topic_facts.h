// What the cluster says of topics.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_FACTS_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topics.h"

namespace lethe {

using TopicConfig = std::map<std::string, std::string>;

// A topic as the cluster describes it.
struct TopicFacts {
  std::string name;
  int32_t partitions = 0;
  TopicConfig config = {};       // empty if it is not known
  bool may_be_described = true;  // false: the user lacks the permission
  int replicas = 0;              // 0: not known

  // Of several inputs: the most that any of them has or takes.
  void Join(const TopicFacts& other);

  // Empty if it is not known.
  std::string Value(const std::string& property) const;
  int64_t Number(const std::string& property, int64_t fallback) const;
  // max.message.bytes, or Kafka's default of it.
  int64_t max_message_bytes() const;
  // Its reasons to refuse a record, or to delete it for its age: where records get the time of their arrival
  // (LogAppendTime), none for their times.
  RecordRules record_rules() const;
  // The largest batch: a batch must also fit into a segment (segment.bytes).
  int64_t max_batch_bytes() const;
  // The timestamps that the broker accepts, behind and ahead of its clock, in milliseconds; INT64_MAX: any.
  int64_t max_before_ms() const { return TimestampBound(kBefore); }
  int64_t max_after_ms() const { return TimestampBound(kAfter); }

  static constexpr char kBefore[] = "message.timestamp.before.max.ms";
  static constexpr char kAfter[] = "message.timestamp.after.max.ms";
  // Both bounds before Kafka 3.6; from then to 4.0, where the others are not set.
  static constexpr char kDifference[] = "message.timestamp.difference.max.ms";

 private:
  int64_t TimestampBound(const char* property) const;
};

// The topics that the options name.
struct AllTopics {
  TopicFacts input;
  TopicFacts output;
  std::vector<TopicFacts> counters = {};  // in the order of the options; without partitions: not there yet
  std::optional<TopicFacts> divert = {};  // if something may be diverted
  std::optional<TopicFacts> origin = {};  // the source of a routed input
  // Those that lethe creates; nullopt if they do not exist yet.
  std::optional<TopicFacts> snapshots = {};
  std::optional<TopicFacts> repartition = {};  // of Scope::kTopic, when both of its stages are looked at

  // The age of the next record to judge; zero if it is not known.
  absl::Duration lag = absl::ZeroDuration();

  // The topic whose partition numbers records keep in the output.
  const TopicFacts& with_places() const { return origin ? *origin : input; }
};

// Adds the missing permission on the topic, by its role, to a denial; other statuses stay.
absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status);

// A new topic for records of `input`: it has its partitions and replicas, keeps records as long, acknowledges
// them as safely, and takes those as large.
TopicFacts TopicLike(const TopicFacts& input, const std::string& name);

// The parts of the command of Kafka that creates the topic, for a line each where they are too long for one.
std::vector<std::string> CreateCommand(const std::string& brokers, const TopicFacts& topic);

// That the topic does not exist, and how to create it like the other one. `others`: topics whose name may be
// meant.
absl::Status MissingTopic(const DaemonOptions& options, absl::string_view role, const std::string& name,
                          const TopicFacts& like, const std::vector<std::string>& others);

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_TOPIC_FACTS_H_
