// What the parts of one worker share, also with other threads: its state, and what may change while it runs.
#ifndef LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
#define LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// The options that may change while a worker runs. Clients and filters are built with the rest.
struct LaneTuning {
  Policies policies;
  double target_fpp = 0;
};

// Set from any thread; the worker takes it over between two transactions.
class Tuning {
 public:
  explicit Tuning(const DaemonOptions& options)
      : current_{options.policies, options.stage.target_fpp},
        commit_interval_(absl::ToChronoNanoseconds(options.commit_interval)) {}

  // Thread-safe. A policy that diverts needs a topic in the options.
  void Set(const LaneTuning& tuning) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted_ = tuning;
    is_new_ = true;
  }
  void SetCommitInterval(absl::Duration interval) { commit_interval_ = absl::ToChronoNanoseconds(interval); }
  absl::Duration commit_interval() const { return absl::FromChrono(commit_interval_.load()); }

  // The worker's thread: takes a new setting over; false if there is none.
  bool Take() {
    if (!is_new_.exchange(false)) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    current_ = *wanted_;
    return true;
  }
  const LaneTuning& current() const { return current_; }

 private:
  LaneTuning current_;
  std::atomic<std::chrono::nanoseconds> commit_interval_;
  std::atomic<bool> is_new_{false};
  std::mutex mutex_;
  std::optional<LaneTuning> wanted_;  // guarded by mutex_
};

// Belongs to the worker's thread, except members marked as thread-safe.
class WorkerState {
 public:
  WorkerState(int of_lane, const StopFlag& of_stop) : lane(of_lane), stop(of_stop) {}

  bool ends() const { return stop.requested() || !fatal.ok(); }

  // Repeats `ask` while it is Unavailable. Cancelled on stop.
  absl::Status Await(const std::function<absl::Status()>& ask);

  // What the worker waits for; empty: nothing. Thread-safe.
  void SetWaiting(const std::string& why);
  std::string waiting() const;

  const int lane;
  const StopFlag& stop;
  Heartbeat heartbeat;
  absl::Status fatal;  // why the worker cannot go on, for the operator

  // Thread-safe.
  std::atomic<bool> is_running{false};
  std::atomic<bool> only_leaves{false};        // all is committed; it only leaves the group
  std::atomic<bool> leaves_unfinished{false};  // the next owner judges its last records again

 private:
  mutable std::mutex mutex_;
  std::string waiting_;  // guarded by mutex_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
