// Bounds the disorder of the topic that routers write: source partitions that are ahead wait for the others.
#ifndef LETHE_SRC_PIPELINE_OUTPUT_SOURCE_PACE_H_
#define LETHE_SRC_PIPELINE_OUTPUT_SOURCE_PACE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/wake_up.h"
#include "src/pipeline/options/options.h"
#include "src/pipeline/task/workplace.h"
#include "src/sync/mutex.h"

namespace lethe {

// A source partition as others see it, from what is committed.
struct SourceState {
  absl::Time floor = absl::InfinitePast();  // no record to come is older, but for wrong timestamps
  int64_t position = -1;                    // the committed offset; -1: none
  bool at_end = false;                      // all that its log had is routed
};

// The state of a partition of another instance, by the offset that it has committed (-1: none) with this
// metadata, and the end of the log before that was asked. Times after `latest` are not believed.
SourceState CommittedState(int64_t offset, absl::string_view metadata, int64_t log_end, absl::Time latest);

using SourceStates = std::vector<std::pair<TopicPartition, SourceState>>;

// The source partitions of all routers that write one topic: of this process by its lanes, of others by their
// commits. `now` is Clock::Steady(). Thread-safe.
class RoutedSources {
 public:
  // `asked_soon` is woken by AskSoon(), and outlives it; null: nobody waits for that.
  explicit RoutedSources(WakeUp* asked_soon = nullptr) : asked_soon_(asked_soon) {}

  // As of now.
  void Put(const SourceStates& states, absl::Time now);
  // The input has so many partitions. Nothing is known of those that were never put: they hold the others.
  void SetCount(int32_t flow, int32_t partitions);
  // All of them, by partition, into `all`. That a partition is at its end is believed for a few seconds only.
  void CopyTo(SourceStates& all, absl::Time now) const;
  // The ends of the logs, by partition, as the brokers have just told them.
  void PutEnds(const std::map<TopicPartition, int64_t>& ends, absl::Time now);
  // Of a partition; nullopt: not told in the last few seconds.
  std::optional<int64_t> End(TopicPartition partition, absl::Time now) const;

  // A lane waits, and news of others may end that. True once.
  void AskSoon();
  bool TakeAskSoon() { return ask_soon_.exchange(false); }
  // The brokers have answered. Without an answer nobody can tell whether a partition stands still.
  void SetAnswered(bool answered) { answered_ = answered; }
  bool answered() const { return answered_; }

 private:
  template <class T>
  struct Told {
    T value;
    absl::Time at;

    bool is_new(absl::Time now) const;
  };
  WakeUp* const asked_soon_;
  std::atomic<bool> ask_soon_{false};
  std::atomic<bool> answered_{true};
  mutable Mutex mutex_;
  std::map<TopicPartition, Told<SourceState>> states_ ABSL_GUARDED_BY(mutex_);
  std::map<TopicPartition, Told<int64_t>> ends_ ABSL_GUARDED_BY(mutex_);
};

// The pace of those of a worker's partitions that are routed to one topic.
//
// A partition's record is routed if its timestamp is at most Routing::lead after the floor of every
// other partition that has records to read. Else the partition waits, and its floor is that timestamp. So
// whatever follows a record in the repartition topic is at most the lead older. The slowest partition never
// waits.
//
// Wrong timestamps hold nothing: a record is ahead only if the records behind it are, too.
//
// Not thread-safe: it belongs to the worker's thread.
class SourcePace {
 public:
  // `flow` is one of them.
  SourcePace(const Flow& flow, const Workplace& place);

  void AddFlow(int32_t flow) { flows_.insert(flow); }
  // How much of the run may be routed now, from its front. With the rest the partition waits, or looks ahead.
  RecordRun Admit(Task& task, RecordRun run);
  // The log of a partition that waits or looks ahead goes on no further, or cannot be read further, for now.
  // False: it does neither.
  bool ReachEnd(Task& task, const InputRecord& at);
  bool MeetUnreadable(Task& task);
  // Between two batches: what waited long enough goes on.
  struct Looked {
    bool is_any_waiting = false;
    bool is_any_read = false;  // or has records to read
  };
  Looked Look();
  // Partitions that stand still, and are not waited for.
  std::vector<TopicPartition> PassedOver() const;

 private:
  struct Slow {
    TopicPartition partition;
    SourceState state = {.floor = absl::InfiniteFuture()};

    bool is_known() const { return partition.partition >= 0; }
  };

  template <class See>
  void ForEachTask(const See& see) const;
  absl::Time TimeOf(const InputRecord& input, absl::Time now) const;
  bool IsAtEnd(Task& task, absl::Time steady_now) const;
  SourceState StateOf(Task& task, absl::Time steady_now) const;
  // Finds the two slowest partitions.
  void Renew(absl::Time steady_now);
  absl::Time LimitOf(const Task& task) const;
  // Looks at the records of the run; true once it is clear whether the record at the peek's offset is ahead.
  bool LookAt(Pace::Peek& peek, RecordRun run, absl::Time now) const;
  void Decide(Task& task);
  void Resume(Task& task);
  // Stops waiting for the slowest partition if it stands still for too long.
  void WatchSlowest(bool is_waited_for);

  const DaemonOptions& options_;
  const Routing& routing_;
  RoutedSources* const sources_;
  const Flows& all_flows_;
  const WorkerState& state_;
  const Tasks& tasks_;
  Source& source_;

  std::set<int32_t> flows_;
  bool is_new_ = false;  // the two below are of this batch
  Slow slowest_;
  Slow second_;
  SourceStates told_;  // by sources_, or to them: a look at them, or at the time, comes with each batch
  // The slowest partition, for how long it has stood still, and when that was last looked at.
  Slow watched_;
  absl::Duration stands_for_ = absl::ZeroDuration();
  absl::Time watched_at_ = absl::InfinitePast();
  absl::Time waited_for_at_ = absl::InfinitePast();
  std::map<TopicPartition, absl::Time> passed_over_;  // and their floors
};

// Those of a worker, each made when a partition first needs it. Not thread-safe: it belongs to the worker's
// thread.
class SourcePaces {
 public:
  explicit SourcePaces(const Workplace& place) : place_(place) {}

  // As of SourcePace.
  RecordRun Admit(Task& task, RecordRun run);
  bool ReachEnd(Task& task, const InputRecord& at);
  bool MeetUnreadable(Task& task);
  void Look();
  // Since the last look: some partitions wait, and no other one has records to read. Then only news of other
  // lanes and instances helps, and they wait for what this one commits.
  bool is_blocked() const { return is_blocked_; }
  // The names of partitions that stand still, and are not waited for.
  std::vector<std::string> PassedOver() const;

 private:
  // Null: its records need not wait for any.
  SourcePace* Of(const Task& task);

  const Workplace place_;
  std::map<int32_t, std::shared_ptr<SourcePace>> by_flow_;
  std::vector<std::pair<const RoutedSources*, std::shared_ptr<SourcePace>>> all_;
  bool is_blocked_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OUTPUT_SOURCE_PACE_H_
