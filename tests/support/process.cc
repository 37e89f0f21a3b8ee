#include "tests/support/process.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"

extern char** environ;

namespace lethe::test {
namespace {

// A descriptor for a child's output, readable by us.
absl::StatusOr<int> OpenOutput(const std::string& file) {
  const int fd = file.empty() ? memfd_create("child output", MFD_CLOEXEC)
                              : open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the output file '", file, "'"));
  return fd;
}

std::string ReadFromStart(int fd) {
  std::string text;
  if (fd < 0) return text;
  char buffer[1 << 16];
  for (off_t offset = 0;;) {
    const ssize_t n = pread(fd, buffer, sizeof buffer, offset);
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    offset += n;
  }
}

std::vector<std::string> Environment(const std::vector<std::pair<std::string, std::string>>& extra) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const auto& e) {
      return absl::StartsWith(*entry, absl::StrCat(e.first, "="));
    });
    if (!replaced) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : extra) result.push_back(absl::StrCat(name, "=", value));
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// The kernel's program of a FailingCall.
std::array<sock_filter, 6> FilterOf(const FailingCall& call) {
  const auto argument =
      static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(call.flag_argument));
  const uint8_t if_not_set = call.flag == 0 ? 0 : 1;  // instructions to skip
  return {sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
          sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 3, static_cast<uint32_t>(call.number)},
          sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, argument},
          sock_filter{BPF_JMP | BPF_JSET | BPF_K, 0, if_not_set, call.flag},
          sock_filter{BPF_RET | BPF_K, 0, 0,
                      SECCOMP_RET_ERRNO | (static_cast<uint32_t>(call.error) & SECCOMP_RET_DATA)},
          sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
}

bool Install(sock_fprog* filter) {
  if (filter->len == 0) return true;
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) == 0;
}

// Runs in the child, between fork and exec: only calls that are safe there.
[[noreturn]] void BecomeProgram(pid_t parent, char** argv, char** envp, int in, int out, int err, int report,
                                sock_fprog* filter) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A terminal's Ctrl-C is for us; we end our children in our own order.
  if (in >= 0) setpgid(0, 0);
  if (getppid() == parent && (in < 0 || (dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)) &&
      Install(filter)) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvpe(argv[0], argv, envp);
  }
  const int error = errno;
  // Nobody is left to tell if this fails.
  [[maybe_unused]] const ssize_t ignored = write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

Process::Process(std::string name, pid_t pid, int pidfd, int stdout_fd, int stderr_fd)
    : name_(std::move(name)), pid_(pid), pidfd_(pidfd), stdout_fd_(stdout_fd), stderr_fd_(stderr_fd) {}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const ProcessOptions& options) {
  if (options.args.empty()) return absl::InvalidArgumentError("a process needs a program to run");
  int in = -1, out = -1, err = -1;
  if (!options.inherit) {
    in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const absl::StatusOr<int> out_fd = OpenOutput(options.stdout_file);
    const absl::StatusOr<int> err_fd = OpenOutput(options.stderr_file);
    out = out_fd.value_or(-1);
    err = err_fd.value_or(-1);
    if (!out_fd.ok() || !err_fd.ok()) {
      for (const int fd : {in, out, err}) {
        if (fd >= 0) close(fd);
      }
      return out_fd.ok() ? err_fd.status() : out_fd.status();
    }
  }
  std::vector<std::string> args = options.args;
  std::vector<std::string> env = Environment(options.env);
  std::vector<char*> argv = Pointers(args);
  std::vector<char*> envp = Pointers(env);
  std::array<sock_filter, 6> calls = {};
  sock_fprog filter = {0, calls.data()};
  if (options.failing_call) {
    calls = FilterOf(*options.failing_call);
    filter.len = calls.size();
  }
  // The child's end closes when the program starts, and carries errno if it cannot.
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(parent, argv.data(), envp.data(), in, out, err, report[1], &filter);
  const int fork_error = errno;
  close(report[1]);
  if (in >= 0) close(in);
  int exec_error = 0;
  const bool failed = pid > 0 && read(report[0], &exec_error, sizeof exec_error) == sizeof exec_error;
  close(report[0]);
  if (pid < 0) return absl::ErrnoToStatus(fork_error, absl::StrCat("cannot fork for ", args[0]));
  if (failed) {
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(exec_error, absl::StrCat("cannot run ", args[0]));
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(error, "pidfd_open");
  }
  return std::unique_ptr<Process>(new Process(args[0], pid, pidfd, out, err));
}

Process::~Process() {
  if (Running()) {
    kill(pid_, SIGKILL);
    Wait(absl::InfiniteDuration()).IgnoreError();
  }
  close(pidfd_);
  if (stdout_fd_ >= 0) close(stdout_fd_);
  if (stderr_fd_ >= 0) close(stderr_fd_);
}

bool Process::Running() { return !Wait(absl::ZeroDuration()).ok(); }

absl::Status Process::Signal(int signal) {
  if (!Running()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, " (pid ", pid_, ") has already ended, with ", *exit_code_));
  }
  if (kill(pid_, signal) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("kill ", pid_));
  return absl::OkStatus();
}

absl::StatusOr<int> Process::Wait(absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  while (!exit_code_) {
    int status = 0;
    const pid_t reaped = waitpid(pid_, &status, WNOHANG);
    if (reaped == pid_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat(name_, " (pid ", pid_, ") still runs after ", absl::FormatDuration(timeout)));
    }
    pollfd ended = {pidfd_, POLLIN, 0};
    const absl::Duration nap = std::min(left, absl::Minutes(1));
    poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(nap, absl::Milliseconds(1)))));
  }
  return *exit_code_;
}

absl::StatusOr<int> Process::Terminate(absl::Duration grace) {
  if (Running()) kill(pid_, SIGTERM);
  absl::StatusOr<int> code = Wait(grace);
  if (code.ok()) return code;
  kill(pid_, SIGKILL);
  return Wait(absl::InfiniteDuration());
}

std::string Process::Stdout() const { return ReadFromStart(stdout_fd_); }
std::string Process::Stderr() const { return ReadFromStart(stderr_fd_); }

absl::StatusOr<Finished> RunToEnd(const ProcessOptions& options, absl::Duration timeout) {
  absl::StatusOr<std::unique_ptr<Process>> process = Process::Start(options);
  if (!process.ok()) return process.status();
  absl::StatusOr<int> code = (*process)->Wait(timeout);
  if (!code.ok()) {
    return absl::DeadlineExceededError(
        absl::StrCat(code.status().message(), "; its last words: ", (*process)->Stderr()));
  }
  return Finished{*code, (*process)->Stdout(), (*process)->Stderr()};
}

}  // namespace lethe::test
