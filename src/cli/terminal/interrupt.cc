#include "src/cli/terminal/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace lethe {
namespace {

std::atomic<int> write_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "it is set by a signal's handler");

void OnInterrupt(int) {
  const int error = errno;
  // The pipe is empty, so that there is room.
  [[maybe_unused]] const ssize_t written = write(write_end.load(), "", 1);
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  fd_ = ends[0];
  write_end = ends[1];
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupt::requested() const {
  pollfd wait = {fd_, POLLIN, 0};
  return fd_ >= 0 && poll(&wait, 1, 0) > 0;
}

const std::atomic<bool>& CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted.store(true); };
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace lethe
