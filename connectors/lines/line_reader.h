// Lines from a file, a pipe or a socket, plain or compressed with gzip.
#ifndef LETHE_CONNECTORS_LINES_LINE_READER_H_
#define LETHE_CONNECTORS_LINES_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lethe::lines {

// Reads the available bytes and returns them line by line, in place: plain bytes are not copied, except the
// part of a line that a read may leave at the end of the buffer.
//
// Detects gzip by its first two bytes, which no text in UTF-8 has. Several members are one text, as for
// gunzip, and zeros behind the last are padding. Does not own the descriptor. Not thread-safe.
class LineReader {
 public:
  static constexpr size_t kDefaultMaxLineBytes = size_t{64} << 20;

  // `name` is for messages ("standard input"). max_line_bytes is without the newline; the buffer grows to at
  // most four times the longest line. Reading stops once `stop_fd` is readable (-1: never).
  LineReader(int fd, absl::string_view name, size_t max_line_bytes = kDefaultMaxLineBytes, int stop_fd = -1);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next lines: at least one, as many as one read of the descriptor gave; none at the end. Waits only if
  // no whole line has come. Each has its newline, except perhaps the last one; a carriage return is part of
  // the line. Valid until the next Read().
  //
  // ResourceExhausted: a line is too long. DataLoss: damaged or cut compressed data. Cancelled: stopped. Else
  // the error of read(). Whole lines before the error come first.
  absl::StatusOr<absl::Span<const absl::string_view>> Read();

 private:
  struct Inflater;

  absl::Status Fill();
  absl::Status FillPlain();
  absl::Status FillInflated();
  absl::StatusOr<size_t> ReadDescriptor(char* to, size_t size);
  absl::Status DetectGzip();
  void MakeRoom();
  void CollectLines(size_t from);
  absl::Status Damaged(absl::string_view what) const;

  const int fd_;
  const std::string name_;
  const size_t max_line_bytes_;
  const int stop_fd_;

  // buffer_[begin_, end_) was read and not yet returned; callers may still view bytes before begin_.
  std::unique_ptr<char[]> buffer_;
  size_t capacity_;
  size_t begin_ = 0;
  size_t end_ = 0;

  std::vector<absl::string_view> lines_;
  int64_t lines_given_ = 0;
  bool started_ = false;
  bool at_end_ = false;                 // the buffer gets no more bytes
  absl::Status error_;                  // set if it is not the end of the input
  std::unique_ptr<Inflater> inflater_;  // null for plain input
};

}  // namespace lethe::lines

#endif  // LETHE_CONNECTORS_LINES_LINE_READER_H_
