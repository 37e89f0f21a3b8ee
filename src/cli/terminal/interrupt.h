// Ctrl-C, for a command that ends in order.
#ifndef LETHE_SRC_CLI_TERMINAL_INTERRUPT_H_
#define LETHE_SRC_CLI_TERMINAL_INTERRUPT_H_

#include <atomic>

namespace lethe {

// Turns the first SIGINT into something to read; the second ends the process at once, as it would have
// without this. One at a time in a process, and for its rest: it is not undone.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable once SIGINT has come; -1 if the system has no pipe to give, and then SIGINT does what it did.
  int fd() const { return fd_; }
  bool requested() const;

 private:
  int fd_ = -1;
};

// Has SIGINT and SIGTERM set this flag, for a command that looks at it now and then; a second one ends the
// process.
const std::atomic<bool>& CatchInterrupts();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_INTERRUPT_H_
