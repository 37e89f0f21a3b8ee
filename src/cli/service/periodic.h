// Work that a thread of its own does again and again.
#ifndef LETHE_SRC_CLI_SERVICE_PERIODIC_H_
#define LETHE_SRC_CLI_SERVICE_PERIODIC_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace lethe {

// Calls a function at once, and then with so much time between two calls, until it is destroyed. Destroying
// waits for a call that has begun.
class Periodic {
 public:
  Periodic(absl::Duration between, std::function<void()> call)
      : call_(std::move(call)), thread_([this, between] { Run(between); }) {}
  ~Periodic() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Run(absl::Duration between) {
    std::unique_lock<std::mutex> lock(mutex_);
    do {
      lock.unlock();
      call_();
      lock.lock();
    } while (!changed_.wait_for(lock, absl::ToChronoMicroseconds(between), [this] { return ended_; }));
  }

  const std::function<void()> call_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_SERVICE_PERIODIC_H_
