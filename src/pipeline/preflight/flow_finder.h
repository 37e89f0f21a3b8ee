// Finds the input topics of a process in the cluster.
#ifndef LETHE_SRC_PIPELINE_PREFLIGHT_FLOW_FINDER_H_
#define LETHE_SRC_PIPELINE_PREFLIGHT_FLOW_FINDER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/options/topic_list.h"
#include "src/pipeline/options/topics.h"
#include "src/pipeline/preflight/brokers.h"
#include "src/pipeline/task/flow.h"
#include "src/sync/mutex.h"

namespace lethe {

// Adds a flow for each topic of a list as soon as it can be read and written: when its pattern matches a new
// topic, when a missing output was created. A topic that cannot holds up no other, nor do merged inputs that
// are missing those that are there.
//
// Thread safety: belongs to one thread; but Problems() and IsNamed() may be called from any.
class FlowFinder {
 public:
  // `add` adds a flow with these topics, and logs it if asked to.
  using Add = std::function<absl::Status(const DaemonOptions& options, Topics topics, bool is_logged)>;
  // `make_routers` makes the client that asks for the routers' group.
  FlowFinder(TopicList list, const Flows& flows, MakeBrokers make_routers, Add add, const Clock& clock)
      : list_(std::move(list)),
        flows_(flows),
        make_routers_(std::move(make_routers)),
        add_(std::move(add)),
        clock_(clock) {}

  // Asks once, for a few milliseconds a topic that has no flow yet, by a client of the group that judges.
  // Unavailable: no broker answers, or this user sees no topic.
  absl::Status Look(Brokers& brokers);
  // Whether a topic of the last look may soon be readable without anyone's help, such as one that lethe has
  // just created.
  bool expects_more() const { return expects_more_; }
  // Why topics of the list have no flow, by topic.
  std::map<std::string, std::string> Problems() const;
  // Whether an entry of the list names the topic: others only match a pattern, also those of strangers.
  bool IsNamed(const std::string& topic) const { return list_.IsNamed(topic); }

 private:
  // Those of its inputs that no router reads yet, of `scope: topic`.
  std::vector<std::string> Unrouted(const DaemonOptions& options) const;
  // The records of a topic that was created since the first look are all new, also for Start::kLatest.
  DaemonOptions FromItsStart(DaemonOptions options) const;
  // `missing`: why inputs are not read, of which others are.
  absl::Status AddTopic(const DaemonOptions& options, Brokers& brokers, bool is_judged, bool is_logged,
                        std::map<std::string, std::string>& missing);
  absl::Status MakeRouters(const DaemonOptions& options);
  absl::Status InspectRouters(const DaemonOptions& options,
                              std::vector<std::pair<DaemonOptions, Topics>>& found,
                              std::map<std::string, std::string>& missing);

  const TopicList list_;
  const Flows& flows_;
  const MakeBrokers make_routers_;
  const Add add_;
  const Clock& clock_;
  std::unique_ptr<Brokers> routers_;               // made when it is first needed
  std::map<std::string, std::string> said_;        // the problems that were logged
  std::set<std::string> routed_;                   // inputs
  std::optional<std::set<std::string>> at_start_;  // topics of the cluster at the first look
  bool expects_more_ = false;
  absl::Time give_up_ = absl::InfiniteFuture();  // asking what a group has committed that does not tell
  std::set<std::string> warned_of_loss_;         // outputs that were looked at for it

  mutable Mutex mutex_;
  std::map<std::string, std::string> problems_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_PREFLIGHT_FLOW_FINDER_H_
