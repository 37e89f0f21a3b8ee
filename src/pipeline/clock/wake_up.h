// Ends the wait of a thread that has nothing to do until another asks it.
#ifndef LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_
#define LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_

#include <condition_variable>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "src/sync/mutex.h"

namespace lethe {

// Thread-safe. One thread waits.
class WakeUp {
 public:
  void Wake() {
    {
      const MutexLock lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_all();
  }

  // Until Wake(), also one since the last wait, or for `duration`; whether it was woken.
  bool WaitFor(absl::Duration duration) {
    MutexLock lock(mutex_);
    const auto is_woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return is_woken_; };
    if (duration == absl::InfiniteDuration()) {
      changed_.wait(lock.held(), is_woken);
    } else {
      changed_.wait_for(lock.held(), absl::ToChronoMilliseconds(duration), is_woken);
    }
    return std::exchange(is_woken_, false);
  }
  bool is_woken() const {
    const MutexLock lock(mutex_);
    return is_woken_;
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_
