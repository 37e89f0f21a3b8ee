// A child program of a test: started, watched, and gone when the test is.
#ifndef LETHE_TESTS_SUPPORT_PROCESS_H_
#define LETHE_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lethe::test {

// A system call that fails in a child, from its first moment to its last (seccomp(2)).
struct FailingCall {
  int number = 0;  // SYS_fsync, say
  int error = 0;   // EIO, say
  // Unless 0: only where this argument has this bit.
  uint32_t flag = 0;
  int flag_argument = 0;
};

struct ProcessOptions {
  std::vector<std::string> args;  // args[0] is the program, looked up in PATH if it has no slash

  // Set in addition to this process's environment, or instead of what it has there.
  std::vector<std::pair<std::string, std::string>> env;

  // Files that get the output (appended; both may be the same). An empty one: the output is kept in memory.
  std::string stdout_file;
  std::string stderr_file;

  // Use this process's standard input, output and error instead. Otherwise the input is empty.
  bool inherit = false;

  std::optional<FailingCall> failing_call;
};

// One child process. Invariant: whoever destroys a Process has no child left; the kernel kills the child
// too when the thread that started it ends, so start children from threads that outlive them.
// Thread-compatible.
class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Start(const ProcessOptions& options);
  ~Process();  // SIGKILL, if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();

  // FailedPrecondition if it has ended.
  absl::Status Signal(int signal);

  // The exit code, or 128 + the signal that ended it, as a shell says it. DeadlineExceeded if it still runs.
  absl::StatusOr<int> Wait(absl::Duration timeout);

  // SIGTERM, and SIGKILL to one that has not ended within `grace`.
  absl::StatusOr<int> Terminate(absl::Duration grace);

  // What it has written so far, wherever that goes; empty for one that inherited its output.
  std::string Stdout() const;
  std::string Stderr() const;

 private:
  Process(std::string name, pid_t pid, int pidfd, int stdout_fd, int stderr_fd);

  const std::string name_;
  const pid_t pid_;
  const int pidfd_;
  const int stdout_fd_;  // readable; -1 if inherited
  const int stderr_fd_;
  std::optional<int> exit_code_;  // set once the child has been reaped
};

struct Finished {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs a program to its end. A program that fails is no error here; one that does not end in time is.
absl::StatusOr<Finished> RunToEnd(const ProcessOptions& options, absl::Duration timeout);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_PROCESS_H_
