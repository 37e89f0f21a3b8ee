// Topics as the cluster describes them, and topics that are created in it.
#ifndef LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
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
  // Its reasons other than size to refuse a record.
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

// Asks with a client of its own, and again while the broker is away, or while a topic is missing that may
// have been created a moment ago (Cancelled on stop). PermissionDenied: the brokers refuse this user.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t* client)>& ask);

// A client that asks and reads, and joins no group. `errors` keeps its connection errors.
absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors);

// Empty if no broker answers.
std::string ClusterId(rd_kafka_t* client);

// The topics of the cluster, without Kafka's own; none if no broker answers.
std::vector<std::string> TopicNames(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

using TopicConfig = std::map<std::string, std::string>;

// OK if the topic was created meanwhile. `validate_only` only asks the broker whether it would create it. No
// replicas: the brokers' default.
absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const TopicConfig& config, bool validate_only = false);

// Adds the missing permission on the topic, by its role, to a denial; other statuses stay.
absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status);

// The number of partitions of a topic of lethe's own, which is created if it is missing: with the input's
// partitions and replicas.
absl::StatusOr<int32_t> EnsureTopic(
    const DaemonOptions& options, rd_kafka_t* client, absl::string_view role, const std::string& name,
    const std::function<absl::StatusOr<TopicConfig>(const TopicFacts& input)>& config_for);

// DescribeTopic() with errors that name the topic's role and the remedy.
// Of several inputs, the most that any of those that exist has or takes. NotFound: none exists.
absl::StatusOr<TopicFacts> DescribeInputs(const DaemonOptions& options, const std::vector<std::string>& names,
                                          rd_kafka_t* client);
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
