// What the parts of one worker share, also with other threads: its state.
#ifndef LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
#define LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "src/pipeline/clock/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/clock/stop_flag.h"
#include "src/sync/mutex.h"

namespace lethe {

// Belongs to the worker's thread, except members marked as thread-safe.
class WorkerState {
 public:
  WorkerState(int of_lane, const StopFlag& of_stop, const Clock& of_time = SystemClock())
      : lane(of_lane), stop(of_stop), clock(of_time) {}

  bool ends() const { return stop.requested() || !fatal.ok(); }

  // Waits for the request to stop, at most `duration`; whether it came.
  bool Wait(absl::Duration duration) const { return clock.WaitFor(stop, duration); }
  // Repeats `ask` while it is Unavailable. Cancelled on stop.
  absl::Status Await(const std::function<absl::Status()>& ask);

  // What the worker waits for; empty: nothing. Thread-safe.
  void SetWaiting(const std::string& why);
  std::string waiting() const;

  const int lane;
  const StopFlag& stop;
  const Clock& clock;
  Heartbeat heartbeat;
  absl::Status fatal;            // why the worker cannot go on, for the operator
  int64_t ready_partitions = 0;  // how often one became so
  int64_t replayed_offsets = 0;  // for that

  // Thread-safe.
  std::atomic<bool> is_running{false};
  std::atomic<bool> only_leaves{false};        // all is committed; it only leaves the group
  std::atomic<bool> leaves_unfinished{false};  // the next owner judges its last records again

 private:
  mutable Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_WORKER_STATE_H_
