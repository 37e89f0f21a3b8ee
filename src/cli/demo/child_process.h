// This program, run once more as a child.
#ifndef LETHE_SRC_CLI_DEMO_CHILD_PROCESS_H_
#define LETHE_SRC_CLI_DEMO_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lethe {

// A running `lethe ARGS`. Killed when the object or this process ends. Not thread-safe.
class ChildProcess {
 public:
  // Its standard error is appended to the file `log`.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const std::vector<std::string>& args,
                                                             const std::string& log);
  ~ChildProcess();

  void Kill();  // SIGKILL, and waits for it
  // SIGTERM, then SIGKILL if it has not ended after `patience`. The exit code, or 128 + the signal.
  int Terminate(absl::Duration patience);
  // Whether it still runs.
  bool Running();
  // The most memory that it has had, in bytes; 0 if it has ended.
  int64_t PeakMemoryBytes() const;

 private:
  ChildProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}

  const pid_t pid_;
  const int pidfd_;  // readable once it has ended
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_CLI_DEMO_CHILD_PROCESS_H_
