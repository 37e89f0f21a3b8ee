// Topics as the cluster describes them.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_FACTS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "src/pipeline/options/topics.h"

namespace lethe::kafka {

// A topic as the cluster describes it.
struct TopicFacts {
  std::string name;
  int32_t partitions = 0;
  std::map<std::string, std::string> config;  // empty if it is not known
  bool may_be_described = true;               // false: the user lacks the permission
  int replicas = 0;                           // 0: not known

  // Empty if it is not known.
  std::string Value(const std::string& property) const;
  int64_t Number(const std::string& property, int64_t fallback) const;
  // max.message.bytes, or Kafka's default of it.
  int64_t max_message_bytes() const;
  // What it refuses for other reasons than size.
  RecordRules record_rules() const;
  // What it takes in one batch: a batch must also fit into a segment (segment.bytes).
  int64_t max_batch_bytes() const;
  // How far behind or ahead of its clock the broker takes timestamps, in milliseconds; INT64_MAX: any.
  int64_t max_before_ms() const { return TimestampBound(kBefore); }
  int64_t max_after_ms() const { return TimestampBound(kAfter); }

  static constexpr char kBefore[] = "message.timestamp.before.max.ms";
  static constexpr char kAfter[] = "message.timestamp.after.max.ms";
  // Both, before Kafka 3.6; since then until 4.0 where the others are not set.
  static constexpr char kDifference[] = "message.timestamp.difference.max.ms";

 private:
  int64_t TimestampBound(const char* property) const;
};

// All topics of the options.
struct AllTopics {
  TopicFacts input;
  TopicFacts output;
  std::vector<TopicFacts> counters = {};  // in the order of the options; without partitions: not there yet
  std::optional<TopicFacts> divert = {};  // if something may be diverted
  std::optional<TopicFacts> origin = {};  // from which the input was routed, if it was
  // That are there already: lethe makes them itself.
  std::optional<TopicFacts> snapshots = {};
  std::optional<TopicFacts> repartition = {};  // of Scope::kTopic, when both of its stages are looked at

  // How long ago the records were sent that the group has to judge next; zero if that is not known.
  absl::Duration lag = absl::ZeroDuration();

  // The one whose partitions records keep in the output.
  const TopicFacts& with_places() const { return origin ? *origin : input; }
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPIC_FACTS_H_
