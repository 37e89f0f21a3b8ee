#include "src/cli/demo/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "src/pipeline/clock/steady_time.h"

namespace lethe {
namespace {

int ExitCode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& args,
                                                                  const std::string& log) {
  std::vector<char*> argv = {const_cast<char*>("lethe")};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) return absl::ErrnoToStatus(errno, log);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(out);
    return absl::ErrnoToStatus(errno, "fork");
  }
  if (pid == 0) {
    // Only calls that are safe between fork and exec.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    dup2(out, STDERR_FILENO);
    dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(out);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(error, "pidfd_open");
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, pidfd));
}

ChildProcess::~ChildProcess() {
  Kill();
  close(pidfd_);
}

void ChildProcess::Kill() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  exit_code_ = ExitCode(status);
}

bool ChildProcess::Running() {
  int status = 0;
  if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    ended_ = true;
    exit_code_ = ExitCode(status);
  }
  return !ended_;
}

int ChildProcess::Terminate(absl::Duration patience) {
  if (!Running()) return exit_code_;
  kill(pid_, SIGTERM);
  const absl::Time deadline = SteadyNow() + patience;
  while (Running()) {
    const absl::Duration left = std::min(deadline - SteadyNow(), absl::Minutes(1));
    if (left <= absl::ZeroDuration()) break;
    pollfd ended = {pidfd_, POLLIN, 0};
    poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
  }
  Kill();
  return exit_code_;
}

int64_t ChildProcess::PeakMemoryBytes() const {
  if (ended_) return 0;
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    if (words >> name >> kib && name == "VmHWM:") return kib * 1024;
  }
  return 0;
}

}  // namespace lethe
