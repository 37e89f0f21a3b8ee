// Writes to a file, a pipe or a socket without copying.
#ifndef LETHE_CONNECTORS_LINES_LINE_WRITER_H_
#define LETHE_CONNECTORS_LINES_LINE_WRITER_H_

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lethe::lines {

// Gathers pieces of output, and writes them with as few calls as possible: pieces that follow one another in
// memory are one, so lines that a LineReader gave and that all pass are written as they were read.
//
// Does not own the descriptor. The process must ignore SIGPIPE, or it ends where Cancelled is promised here.
// Not thread-safe.
class LineWriter {
 public:
  // `name` is for messages ("standard output").
  LineWriter(int fd, absl::string_view name);
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Adds a piece. It is not copied: it must stay where it is until the next Flush().
  void Append(absl::string_view piece);

  // Writes what was added, all of it, waiting as long as it takes. Cancelled if nobody reads the output any
  // more (EPIPE), ResourceExhausted if the device or the quota is full, else what writing said. After an
  // error part of it may have been written, and every later Flush() returns the same error.
  absl::Status Flush();

 private:
  absl::Status Write(iovec* pieces, size_t count);
  absl::Status Error(int error) const;

  const int fd_;
  const std::string name_;
  std::vector<iovec> pieces_;
  absl::Status status_;
};

}  // namespace lethe::lines

#endif  // LETHE_CONNECTORS_LINES_LINE_WRITER_H_
