// Finds the input topics of a process in the cluster.
#ifndef LETHE_CONNECTORS_KAFKA_PREFLIGHT_FLOW_FINDER_H_
#define LETHE_CONNECTORS_KAFKA_PREFLIGHT_FLOW_FINDER_H_

#include <librdkafka/rdkafka.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/task/flow.h"

namespace lethe::kafka {

// The topics of the list that are there now. Not OK: no broker answers.
absl::StatusOr<TopicList::Inputs> FindInputs(rd_kafka_t* client, const TopicList& list);

// Adds a flow for each topic of a list as soon as it can be read and written: when its pattern matches a new
// topic, when a missing output was created. A topic that cannot holds up no other, nor do merged inputs that
// are missing those that are there.
//
// Thread safety: Look() belongs to one thread; Problems() may be called from any.
class FlowFinder {
 public:
  // `add` adds a flow with these topics, and logs it if asked to.
  using Add = std::function<absl::Status(const DaemonOptions& options, Topics topics, bool is_logged)>;
  FlowFinder(TopicList list, const Flows& flows, Add add)
      : list_(std::move(list)), flows_(flows), add_(std::move(add)) {}

  // Asks the cluster once, for a few milliseconds a topic that has no flow yet. Not OK: no broker answers.
  absl::Status Look(rd_kafka_t* client);
  // Why topics of the list have no flow, by topic.
  std::map<std::string, std::string> Problems() const;

 private:
  // Those of its inputs that no router reads yet, of `scope: topic`.
  std::vector<std::string> Unrouted(const DaemonOptions& options) const;
  // `missing`: why inputs are not read, of which others are.
  absl::Status AddTopic(const DaemonOptions& options, rd_kafka_t* client, bool is_judged, bool is_logged,
                        std::map<std::string, std::string>& missing);
  // By their group.
  absl::Status InspectRouters(const DaemonOptions& options,
                              std::vector<std::pair<DaemonOptions, Topics>>& found,
                              std::map<std::string, std::string>& missing);

  const TopicList list_;
  const Flows& flows_;
  const Add add_;
  std::map<std::string, std::string> said_;  // the problems that were logged
  std::set<std::string> routed_;             // inputs
  ClientErrors routing_errors_;
  ClientPtr routing_client_;  // of the routers' group

  mutable std::mutex mutex_;
  std::map<std::string, std::string> problems_;  // guarded by mutex_
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_PREFLIGHT_FLOW_FINDER_H_
