// All lanes of a process: what `lethe run` runs, and what an embedding program may run in its own process.
#ifndef LETHE_SRC_PIPELINE_DAEMON_DAEMON_H_
#define LETHE_SRC_PIPELINE_DAEMON_DAEMON_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lethe/stage.h"
#include "src/counters/counter_store.h"
#include "src/pipeline/assign/instance_lock.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/daemon/connector.h"
#include "src/pipeline/daemon/lanes.h"
#include "src/pipeline/daemon/log_trimmer.h"
#include "src/pipeline/daemon/source_feed.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/output/source_pace.h"
#include "src/pipeline/preflight/flow_finder.h"
#include "src/pipeline/publish/counter_watch.h"
#include "src/pipeline/report/readiness.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/flow.h"
#include "src/pipeline/totals/totals_feed.h"
#include "src/sync/mutex.h"

namespace lethe {

// Thread-safe but for Run, which is called once.
class Daemon {
 public:
  // InvalidArgument: the options cannot be met. Asks no broker yet. `open_store` gets each counter that has a
  // store, and the input that its totals name. `topics` are the entries of a list (TopicList); none:
  // `options` are those of the only topic.
  using OpenStore =
      std::function<std::unique_ptr<CounterStore>(const CounterOptions& counter, const std::string& input)>;
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(std::unique_ptr<Connector> connector,
                                                        DaemonOptions options, OpenStore open_store = nullptr,
                                                        std::vector<DaemonOptions> topics = {},
                                                        const Clock& clock = SystemClock());

  // Runs until Stop(), until the end as it was at the start (exit_at_end), or until an error that it cannot
  // handle. When it returns OK, all that was carried out is committed, unless LeavesUnfinished().
  absl::Status Run();

  // Ends Run() soon: commits or aborts the open transaction, and leaves the group. From any thread.
  void Stop() {
    hurried_.Request();
    stop_.Request();
  }

  DaemonReport Report() const;
  // The counters of a topic, or of the first that has any, with the `top` largest totals of each, in this
  // instance's partitions. From the second call on they are at most a second or so old.
  CountersView Counters(size_t top, const std::optional<std::string>& topic = std::nullopt);

  // After Stop(): everything is committed, and only leaving the group remains.
  bool OnlyLeaves() const;
  // After Run(): the last records could not be committed, and the next owner replays them.
  bool LeavesUnfinished() const;
  // After Run(): no broker answered at the end, so the group may not know that the lanes have left it.
  bool IsUnanswered() const { return is_unanswered_; }

  // The time since the last heartbeat of the most silent lane; a lane that only waits still beats.
  absl::Duration SilentFor() const;

 private:
  Daemon(std::unique_ptr<Connector> connector, DaemonOptions options, OpenStore open_store,
         const Clock& clock);
  // Before this process ends because another has its instance.
  void PauseForWinner() const;
  MakeBrokers Maker();
  // AwaitTopics() with a client of the group.
  absl::Status Await(const DaemonOptions& options, absl::FunctionRef<absl::Status(Brokers& brokers)> ask);
  absl::StatusOr<Topics> AwaitInspected(const DaemonOptions& options);
  // Adds the flows of the topics that are there; of a list the others come later.
  absl::Status FindTopics();
  // Once all is routed: the ends to which the deduplicators, which have not started, are to read.
  absl::Status InspectRouted();
  // The topic of snapshots is there, if the options name one. Unavailable: ask again; FailedPrecondition,
  // with the remedy: it cannot be used.
  absl::Status EnsureSnapshots(const DaemonOptions& options, Brokers& brokers);
  // Null: the options ask for no snapshots. Errors are those of EnsureSnapshots().
  absl::StatusOr<std::unique_ptr<SnapshotStore>> OpenSnapshots(const DaemonOptions& options);
  // Adds a flow for a topic that can be read and written; at level debug, it is not logged otherwise.
  absl::Status AddFlow(const DaemonOptions& options, Topics topics, bool is_logged);
  // The same for the routers of one input.
  absl::Status AddRouter(const DaemonOptions& options, Topics topics);
  std::vector<TotalsFeed*> Feeds() const;
  // Asks for the ends of all logs; true if the brokers answered.
  bool AskEnds();
  void Trim();
  void Start(Lanes& lanes);
  // Starts the lanes, the routers first, and returns when they must stop.
  absl::Status RunToStop();
  // Waits until every lane is at the end, or the stop; appends the problems of partitions that
  // could not be read.
  void AwaitEnd(const Lanes& lanes, std::vector<std::string>& problems);

  const std::unique_ptr<Connector> connector_;
  const DaemonOptions options_;
  const OpenStore open_store_;
  std::unique_ptr<DedupStage> memory_;  // whose memory limit all flows share
  const Clock& clock_;
  StopFlag stop_;
  StopFlag hurried_;  // Stop() was called
  InstanceLock instance_lock_;
  bool is_unanswered_ = false;
  Lanes judging_;
  std::optional<int32_t> snapshot_partitions_;       // of the topic of snapshots, since it was there
  std::unique_ptr<SnapshotThread> snapshot_thread_;  // ends before the flows; null: there are no snapshots
  std::optional<Lanes> routing_;             // before the others, if ids are to be unique in the topic
  std::vector<Lanes*> lanes_ = {&judging_};  // with routing_ if there are any
  WakeUp asked_soon_;                        // by a router that waits for news of others
  std::map<std::string, std::unique_ptr<RoutedSources>> sources_;  // by the topic to which they are routed
  std::unique_ptr<SourceFeed> source_feed_;
  LogTrimmer trimmer_;
  std::optional<FlowFinder> finder_;  // of a list of topics

  mutable Mutex mutex_;
  std::string awaited_ ABSL_GUARDED_BY(mutex_);  // what Await() waits for
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<TotalsFeed>> feeds_ ABSL_GUARDED_BY(mutex_);  // added, and never removed
  std::deque<std::unique_ptr<CounterWatch>> watches_
      ABSL_GUARDED_BY(mutex_);  // likewise; of flows with counters
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_DAEMON_DAEMON_H_
