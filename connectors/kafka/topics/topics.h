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
#include "src/pipeline/options/record_rules.h"

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

// Asks with a client of its own, and again while the broker is away, or a topic is missing that may have been
// made a moment ago (Cancelled on stop). PermissionDenied: the brokers do not let this user in.
absl::Status AwaitTopics(const DaemonOptions& options, const StopFlag& stop,
                         const std::function<absl::Status(rd_kafka_t* client)>& ask);

// A client that asks and reads, and is no member of a group. What it meets by itself is `errors`' to keep.
absl::StatusOr<ClientPtr> MakeAskingClient(const DaemonOptions& options, ClientErrors& errors);

// Of the cluster, without those of Kafka itself; none if it does not answer.
std::vector<std::string> TopicNames(rd_kafka_t* client);

// Asks once; for a few seconds at most. Unavailable: ask again. NotFound: there is no such topic (yet).
absl::StatusOr<TopicFacts> DescribeTopic(rd_kafka_t* client, const std::string& name);

using TopicConfig = std::map<std::string, std::string>;

// Makes a topic; OK if another has made it a moment ago. `validate_only`: only asks the broker whether it
// would. No replicas: as many as is the brokers' default.
absl::Status CreateTopic(rd_kafka_t* client, const std::string& name, const TopicShape& shape,
                         const TopicConfig& config, bool validate_only = false);

// A denial, with what this user must be granted on the topic, by its role; any other status as it is.
absl::Status WithGrant(absl::string_view role, const std::string& topic, const absl::Status& status);

// How many partitions a topic of lethe's own has, which is created if it is missing: with as many partitions
// and replicas as the input.
absl::StatusOr<int32_t> EnsureTopic(
    const DaemonOptions& options, rd_kafka_t* client, absl::string_view role, const std::string& name,
    const std::function<absl::StatusOr<TopicConfig>(const TopicFacts& input)>& config_for);

// As DescribeTopic. The errors name the topic's role, and say what to do.
absl::StatusOr<TopicFacts> DescribeInput(const DaemonOptions& options, rd_kafka_t* client);
absl::StatusOr<AllTopics> DescribeTopics(const DaemonOptions& options, rd_kafka_t* client);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_TOPICS_TOPICS_H_
