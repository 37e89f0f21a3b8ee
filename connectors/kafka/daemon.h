// All lanes of a process: what `lethe run` runs, and what an embedding program may run in its own process.
#ifndef LETHE_CONNECTORS_KAFKA_DAEMON_H_
#define LETHE_CONNECTORS_KAFKA_DAEMON_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/client/log_reader.h"
#include "connectors/kafka/counters/counter_watch.h"
#include "connectors/kafka/counters/totals_feed.h"
#include "connectors/kafka/lane.h"
#include "connectors/kafka/options/stage_options.h"
#include "connectors/kafka/preflight/topic_rules.h"
#include "connectors/kafka/repartition/repartition_topic.h"
#include "lethe/stage.h"
#include "src/counters/counter_store.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/report/report.h"
#include "src/pipeline/task/task.h"

namespace lethe::kafka {

// Thread-safe but for Run, which is called once.
class Daemon {
 public:
  // InvalidArgument: the options cannot be met. Asks nothing of the broker yet.
  // `open_store` is given each counter that has a store, and the input that its totals name.
  using OpenStore =
      std::function<std::unique_ptr<CounterStore>(const CounterOptions& counter, const std::string& input)>;
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(DaemonOptions options,
                                                        const OpenStore& open_store = nullptr);
  ~Daemon();

  // Reads, judges and writes until Stop(), until the end that was read at the start (exit_at_end), or until
  // something makes it impossible to go on. Everything that was carried out is committed when it returns OK,
  // unless LeavesUnfinished().
  absl::Status Run();

  // Ends Run() soon: the open transaction is committed (or given up, if it cannot be), and the group is left.
  // From any thread.
  void Stop() {
    is_hurried_ = true;
    stop_.Request();
  }

  DaemonReport Report() const;
  // The counters with the `top` largest totals of each, as far as this instance knows them, at most a second
  // or so old from the second call on. Asks the lanes for more.
  CountersView Counters(size_t top);

  // After Stop(): nothing is left to be committed, and the group alone is waited for.
  bool OnlyLeaves() const;
  // After Run(): what was judged last could not be committed, and the next owner reads it again.
  bool LeavesUnfinished() const;

  // How long nothing has been heard of the lane that was last heard of: one that only waits is not silent.
  absl::Duration SilentFor() const;

  // How long transactions stay open from now on. From any thread.
  void SetCommitInterval(absl::Duration interval);
  // What becomes of records from the next transactions on. FailedPrecondition if something is diverted: the
  // topic for it is opened at the start, and only if it is needed then. From any thread.
  absl::Status SetPolicies(const Policies& policies);
  // As DedupStage::SetTargetFpp; partitions follow with their next transactions. From any thread.
  absl::Status SetTargetFpp(double target_fpp);
  // As DedupStage::SetMemoryLimit, at once.
  absl::Status SetMemoryLimit(int64_t bytes);

 private:
  // Lanes that do the same: they judge, or route. Options and topics do not change once there are lanes.
  struct Stage {
    explicit Stage(DaemonOptions of_it) : options(std::move(of_it)) {}
    DaemonOptions options;
    std::unique_ptr<DedupStage> dedup;
    std::unique_ptr<Snapshots> snapshots;  // null: none are taken; guarded by mutex_
    KeptPartitions kept;                   // their filters end before `dedup`, and before snapshots of them
    Topics topics;
    LogEnds ends;      // of what the lanes read
    ClientErrors met;  // by the client that asks for them
    ClientPtr asking;
    std::vector<std::unique_ptr<Lane>> lanes;  // guarded by mutex_
    std::vector<std::thread> threads;

    std::vector<LaneReport> Reports() const;
    // Asks where the partitions end that the lanes have; not while the topic is away, say.
    void AskEnds();
  };

  explicit Daemon(DaemonOptions options)
      : options_(std::move(options)),
        judging_(options_.scope == Scope::kTopic ? JudgingOptions(options_) : options_),
        counter_watch_(options_.counters, options_.lanes) {}
  absl::Status LockInstance();
  absl::Status Inspect();
  absl::Status Inspect(Stage& stage);
  absl::Status OpenSnapshots();
  std::vector<int32_t> OwnedPartitions() const;
  std::vector<const Stage*> Stages() const;
  std::vector<Stage*> Stages();
  void Start(Stage& stage);
  // What holds for the lanes of a stage.
  LaneTuning TuningFor(const Stage& stage) const;
  // Starts the lanes, the routing ones first, and returns when they are to stop.
  absl::Status RunToStop();
  // Waits until every lane of the stage has reached the end, or the stop is requested.
  void AwaitEnd(const Stage& stage, std::vector<std::string>& problems);
  // Why it is not ready, in words.
  static void AddReasons(const Stage& stage, const std::vector<LaneReport>& lanes,
                         std::vector<std::string>& reasons);

  const DaemonOptions options_;
  StopFlag stop_;
  int instance_lock_ = -1;
  Stage judging_;
  std::optional<Stage> routing_;  // the first of two, if ids are to be unique in the topic
  std::optional<LogTrimmer> trimmer_;
  std::vector<std::unique_ptr<TotalsFeed>> feeds_;
  CounterWatch counter_watch_;
  std::atomic<bool> is_hurried_{false};  // Stop() was called

  mutable std::mutex mutex_;
  absl::Duration commit_interval_ = options_.commit_interval;        // guarded by mutex_
  LaneTuning tuning_{options_.policies, options_.stage.target_fpp};  // likewise
  absl::Status first_error_;                                         // likewise
};

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_DAEMON_H_
