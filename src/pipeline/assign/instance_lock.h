// One process of a user on a host runs as an instance.
#ifndef LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_LOCK_H_
#define LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_LOCK_H_

#include "absl/status/status.h"
#include "src/pipeline/options/options.h"

namespace lethe {

// A name in the abstract space of sockets: it is free again as soon as its process has ended, however it
// ended. Not thread-safe.
class InstanceLock {
 public:
  InstanceLock() = default;
  ~InstanceLock();
  InstanceLock(const InstanceLock&) = delete;
  InstanceLock& operator=(const InstanceLock&) = delete;

  // AlreadyExists: another process of this user has it. Without the lock, but OK, if another user has it, or
  // if no brokers are named: an embedding program's own connector may have none.
  absl::Status Take(const ProcessOptions& process);
  // Now and then: others have asked whose it is.
  void CloseQuestions() const;

 private:
  int socket_ = -1;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_INSTANCE_LOCK_H_
