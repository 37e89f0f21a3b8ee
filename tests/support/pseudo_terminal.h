// A terminal of a test's own in the place of stderr.
#ifndef LETHE_TESTS_SUPPORT_PSEUDO_TERMINAL_H_
#define LETHE_TESTS_SUPPORT_PSEUDO_TERMINAL_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace lethe::test {

struct TerminalEnds {
  int reader = -1;
  int writer = -1;  // the terminal
};

// Both close on exec. A root folder may have been given a /dev without its pts: then a file system of its own
// is mounted for so long as it takes to open them, which needs root's rights.
inline TerminalEnds OpenTerminal() {
  constexpr int kMode = O_RDWR | O_NOCTTY | O_CLOEXEC;
  TerminalEnds ends = {posix_openpt(kMode)};
  std::string folder;
  if (ends.reader < 0) {
    folder = testing::TempDir() + "lethe-pts-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    EXPECT_EQ(mount("devpts", folder.c_str(), "devpts", 0, "newinstance,ptmxmode=0666"), 0)
        << strerror(errno);
    ends.reader = open((folder + "/ptmx").c_str(), kMode);
  }
  EXPECT_GE(ends.reader, 0) << strerror(errno);
  EXPECT_EQ(unlockpt(ends.reader), 0);
  ends.writer = ioctl(ends.reader, TIOCGPTPEER, kMode);
  EXPECT_GE(ends.writer, 0) << strerror(errno);
  if (!folder.empty()) {
    umount2(folder.c_str(), MNT_DETACH);
    rmdir(folder.c_str());
  }
  return ends;
}

// What is written to stderr while it lives can be read from it. Not thread-safe, but for those who write.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(int columns) {
    const TerminalEnds ends = OpenTerminal();
    reader_ = ends.reader;
    const int writer = ends.writer;
    winsize size = {};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = 24;
    EXPECT_EQ(ioctl(writer, TIOCSWINSZ, &size), 0);
    std::fflush(stderr);
    before_ = dup(STDERR_FILENO);
    dup2(writer, STDERR_FILENO);
    close(writer);
  }
  ~PseudoTerminal() {
    std::fflush(stderr);
    dup2(before_, STDERR_FILENO);
    close(before_);
    close(reader_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // All that was written so far; waits up to `timeout_ms` for more.
  const std::string& Text(int timeout_ms = 0) {
    pollfd readable = {reader_, POLLIN, 0};
    char buffer[4096];
    while (poll(&readable, 1, timeout_ms) == 1 && (readable.revents & POLLIN) != 0) {
      const ssize_t size = read(reader_, buffer, sizeof buffer);
      if (size <= 0) break;
      text_.append(buffer, static_cast<size_t>(size));
      timeout_ms = 0;
    }
    return text_;
  }

  // Waits until that was written; false if it is not within ten seconds.
  bool Await(const std::string& part) {
    for (int i = 0; i < 100; ++i) {
      if (Text(100).find(part) != std::string::npos) return true;
    }
    return false;
  }

 private:
  int reader_ = -1;
  int before_ = -1;
  std::string text_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_PSEUDO_TERMINAL_H_
