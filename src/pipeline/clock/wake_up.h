// Ends the wait of a thread that has nothing to do until another asks it.
#ifndef LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_
#define LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/time/time.h"

namespace lethe {

// Thread-safe. One thread waits.
class WakeUp {
 public:
  void Wake() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_all();
  }

  // Until Wake(), also one since the last wait, or for `duration`; whether it was woken.
  bool WaitFor(absl::Duration duration) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto is_woken = [this] { return is_woken_; };
    if (duration == absl::InfiniteDuration()) {
      changed_.wait(lock, is_woken);
    } else {
      changed_.wait_for(lock, absl::ToChronoMilliseconds(duration), is_woken);
    }
    return std::exchange(is_woken_, false);
  }
  bool is_woken() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_woken_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_CLOCK_WAKE_UP_H_
