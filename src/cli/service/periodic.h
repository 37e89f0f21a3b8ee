// Work that a thread of its own does again and again.
#ifndef LETHE_SRC_CLI_SERVICE_PERIODIC_H_
#define LETHE_SRC_CLI_SERVICE_PERIODIC_H_

#include <condition_variable>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "src/sync/mutex.h"

namespace lethe {

// Calls a function at once, and then with so much time between two calls, until it is destroyed. Destroying
// waits for a call that has begun.
class Periodic {
 public:
  Periodic(absl::Duration between, std::function<void()> call)
      : call_(std::move(call)), thread_([this, between] { Run(between); }) {}
  ~Periodic() {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Run(absl::Duration between) {
    MutexLock lock(mutex_);
    do {
      lock.Unlock();
      call_();
      lock.Lock();
    } while (!changed_.wait_for(lock.held(), absl::ToChronoMicroseconds(between),
                                [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }));
  }

  const std::function<void()> call_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_PERIODIC_H_
