// Asks about the topics before the first record.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_

#include <librdkafka/rdkafka.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/preflight/flow_finder.h"
#include "src/pipeline/task/cluster.h"

namespace lethe::kafka {

// Waits for a broker that is away (Cancelled on stop). NotFound: a topic is missing. FailedPrecondition: the
// topics do not fit. PermissionDenied: the brokers refuse this user, or the description of a topic.
absl::StatusOr<Topics> InspectTopics(const DaemonOptions& options, const StopFlag& stop);

// The topics of the list that are there now. Not OK: no broker answers.
absl::StatusOr<TopicList::Inputs> FindInputs(rd_kafka_t* client, const TopicList& list);

// Asks by the client of the group that judges, and about routers by one of their group. Not thread-safe.
class BrokerInspector final : public TopicInspector {
 public:
  // The client asks from now on.
  BrokerInspector& By(rd_kafka_t* client) {
    client_ = client;
    return *this;
  }

  std::vector<std::string> Names() override;
  absl::StatusOr<std::vector<CommittedOffset>> AskCommitted(const std::string& topic) override;
  absl::Status EnsureTotals(const DaemonOptions& options) override;
  absl::Status EnsureRepartition(const DaemonOptions& options) override;
  void WarnOfLoss(const DaemonOptions& options) override;
  absl::StatusOr<Topics> Inspect(const DaemonOptions& options) override;

 private:
  rd_kafka_t* client_ = nullptr;
  ClientErrors routing_errors_;
  ClientPtr routing_client_;
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_INSPECT_TOPICS_H_
