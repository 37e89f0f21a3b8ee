// A mutex whose use Clang checks: -Wthread-safety is an error of `make tidy`.
#ifndef LETHE_SRC_SYNC_MUTEX_H_
#define LETHE_SRC_SYNC_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace lethe {

// std::mutex with annotations: name it in ABSL_GUARDED_BY() of each member that it guards. It is not
// absl::Mutex because Debian builds Abseil without the hooks of ThreadSanitizer, which then reports races
// that there are not.
class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

  // Tells Clang what it cannot see: the caller of the caller holds it.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class MutexLock;

  std::mutex mutex_;
};

// Holds a mutex while it lives, except between Unlock() and Lock().
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }

  // For std::condition_variable. A condition that reads guarded members is a lambda with
  // ABSL_EXCLUSIVE_LOCKS_REQUIRED().
  std::unique_lock<std::mutex>& held() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace lethe

#endif  // LETHE_SRC_SYNC_MUTEX_H_
