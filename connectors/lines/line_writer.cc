#include "connectors/lines/line_writer.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace lethe::lines {

LineWriter::LineWriter(int fd, absl::string_view name) : fd_(fd), name_(name) {}

void LineWriter::Append(absl::string_view piece) {
  if (piece.empty()) return;
  if (!pieces_.empty()) {
    iovec& last = pieces_.back();
    if (static_cast<const char*>(last.iov_base) + last.iov_len == piece.data()) {
      last.iov_len += piece.size();
      return;
    }
  }
  pieces_.push_back({const_cast<char*>(piece.data()), piece.size()});  // writev only reads it
}

absl::Status LineWriter::Flush() {
  for (size_t done = 0; status_.ok() && done < pieces_.size();) {
    const size_t count = std::min<size_t>(pieces_.size() - done, IOV_MAX);
    status_ = Write(&pieces_[done], count);
    done += count;
  }
  pieces_.clear();
  return status_;
}

// Writes `count` pieces whole; changes them as it goes.
absl::Status LineWriter::Write(iovec* pieces, size_t count) {
  while (count > 0) {
    const ssize_t result = writev(fd_, pieces, static_cast<int>(count));
    if (result < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        pollfd wait = {fd_, POLLOUT, 0};
        poll(&wait, 1, -1);
      } else if (errno != EINTR) {
        return Error(errno);
      }
      continue;
    }
    size_t written = static_cast<size_t>(result);
    while (count > 0 && written >= pieces->iov_len) {
      written -= pieces->iov_len;
      ++pieces;
      --count;
    }
    if (written > 0) {
      pieces->iov_base = static_cast<char*>(pieces->iov_base) + written;
      pieces->iov_len -= written;
    }
  }
  return absl::OkStatus();
}

absl::Status LineWriter::Error(int error) const {
  const std::string what = absl::StrCat("writing ", name_);
  switch (error) {
    case EPIPE:
      return absl::CancelledError(absl::StrCat(what, ": its reader has closed it"));
    case ENOSPC:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, ": no space left on the device; the output is cut off, make room and run again"));
    case EDQUOT:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": the disk quota is used up; the output is cut off, make room and run again"));
    default:
      return absl::ErrnoToStatus(error, what);
  }
}

}  // namespace lethe::lines
