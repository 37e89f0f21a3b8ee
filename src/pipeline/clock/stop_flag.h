// A request to stop, which also ends a wait.
#ifndef LETHE_SRC_PIPELINE_CLOCK_STOP_FLAG_H_
#define LETHE_SRC_PIPELINE_CLOCK_STOP_FLAG_H_

#include <atomic>
#include <chrono>
#include <condition_variable>

#include "absl/time/time.h"
#include "src/sync/mutex.h"

namespace lethe {

// Thread-safe.
class StopFlag {
 public:
  void Request() {
    {
      const MutexLock lock(mutex_);
      requested_ = true;
    }
    changed_.notify_all();
  }

  bool requested() const { return requested_.load(std::memory_order_relaxed); }

  // Waits for the request, at most `duration`; whether it came.
  bool WaitFor(absl::Duration duration) const {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock.held(), absl::ToChronoMilliseconds(duration),
                             [this] { return requested(); });
  }

 private:
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> requested_{false};
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_STOP_FLAG_H_
