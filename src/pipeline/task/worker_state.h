// What the parts of one worker share: which it is, whether it must end, and what it waits for.
#ifndef LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
#define LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/heartbeat.h"
#include "src/pipeline/clock/stop_flag.h"

namespace lethe {

// Belongs to the worker's thread, but for what is marked as thread-safe.
class WorkerState {
 public:
  WorkerState(int of_lane, const StopFlag& of_stop) : lane(of_lane), stop(of_stop) {}

  // Whether the worker must end, since it was asked to or cannot go on.
  bool ends() const { return stop.requested() || !fatal.ok(); }

  // Asks again and again while the answer is Unavailable. Cancelled on stop.
  absl::Status Await(const std::function<absl::Status()>& ask);

  // What the worker waits for, in words; empty: nothing. Thread-safe.
  void SetWaiting(const std::string& why);
  std::string waiting() const;

  const int lane;
  const StopFlag& stop;
  Heartbeat heartbeat;
  absl::Status fatal;  // what makes it impossible to go on, in words for the operator

  // Thread-safe.
  std::atomic<bool> is_running{false};
  std::atomic<bool> only_leaves{false};        // all is committed, and it leaves the group
  std::atomic<bool> leaves_unfinished{false};  // what it judged last is replayed by the next owner

 private:
  mutable std::mutex mutex_;
  std::string waiting_;  // guarded by mutex_
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
