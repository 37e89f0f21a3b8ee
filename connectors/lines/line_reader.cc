#include "connectors/lines/line_reader.h"

#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lethe::lines {
namespace {

constexpr size_t kFirstCapacity = size_t{1} << 20;
constexpr size_t kCompressedBytes = size_t{256} << 10;
constexpr char kGzipMagic[] = {'\x1f', '\x8b'};
constexpr int kGzipOnly = 16 + MAX_WBITS;  // zlib: expect a gzip header, largest window

}  // namespace

// The compressed side: bytes that were read and not yet inflated are input[next, end).
struct LineReader::Inflater {
  z_stream stream = {};
  std::unique_ptr<char[]> input = std::make_unique<char[]>(kCompressedBytes);
  size_t next = 0;
  size_t end = 0;
  bool in_member = true;  // false between two members, and behind the last
  bool more = false;      // zlib may hold back inflated bytes that found no room
  bool padded = false;    // zeros have begun: only zeros may follow

  ~Inflater() { inflateEnd(&stream); }
};

LineReader::LineReader(int fd, absl::string_view name, size_t max_line_bytes, int stop_fd)
    : fd_(fd),
      name_(name),
      max_line_bytes_(max_line_bytes),
      stop_fd_(stop_fd),
      buffer_(std::make_unique<char[]>(kFirstCapacity)),
      capacity_(kFirstCapacity) {}

LineReader::~LineReader() = default;

absl::Status LineReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("reading ", name_, ": ", what, ", after line ", lines_given_));
}

absl::StatusOr<absl::Span<const absl::string_view>> LineReader::Read() {
  lines_.clear();
  while (lines_.empty() && !at_end_) {
    MakeRoom();
    const size_t searched = end_;
    error_ = Fill();
    if (!error_.ok()) at_end_ = true;
    CollectLines(searched);
  }
  if (lines_.empty() && !error_.ok()) return error_;
  if (lines_.empty() && begin_ < end_) {
    lines_.emplace_back(&buffer_[begin_], end_ - begin_);
    begin_ = end_;
  }
  lines_given_ += static_cast<int64_t>(lines_.size());
  return absl::MakeConstSpan(lines_);
}

// Moves the rest of the buffer to its front, and makes as much room behind it.
void LineReader::MakeRoom() {
  const size_t held = end_ - begin_;
  if (begin_ > 0) std::memmove(&buffer_[0], &buffer_[begin_], held);
  begin_ = 0;
  end_ = held;
  if (held <= capacity_ / 2) return;
  auto larger = std::make_unique<char[]>(capacity_ * 2);
  std::memcpy(larger.get(), buffer_.get(), held);
  buffer_ = std::move(larger);
  capacity_ *= 2;
}

// Takes whole lines out of the buffer, whose newlines are at `from` or later. A line that is too long ends
// the input.
void LineReader::CollectLines(size_t from) {
  while (true) {
    const void* found = from < end_ ? std::memchr(&buffer_[from], '\n', end_ - from) : nullptr;
    const size_t line_end =
        found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - buffer_.get()) : end_;
    if (line_end - begin_ > max_line_bytes_) {
      error_ = absl::ResourceExhaustedError(
          absl::StrCat("reading ", name_, ": line ", lines_given_ + static_cast<int64_t>(lines_.size()) + 1,
                       " is longer than ", max_line_bytes_, " bytes; is this newline-delimited text?"));
      at_end_ = true;
      return;
    }
    if (found == nullptr) return;
    from = line_end + 1;
    lines_.emplace_back(&buffer_[begin_], from - begin_);
    begin_ = from;
  }
}

// Adds to the buffer, or sets at_end_.
absl::Status LineReader::Fill() {
  if (!started_) {
    started_ = true;
    if (absl::Status status = DetectGzip(); !status.ok()) return status;
    if (inflater_ == nullptr) return absl::OkStatus();
  }
  return inflater_ != nullptr ? FillInflated() : FillPlain();
}

absl::Status LineReader::FillPlain() {
  const absl::StatusOr<size_t> got = ReadDescriptor(&buffer_[end_], capacity_ - end_);
  if (!got.ok()) return got.status();
  end_ += *got;
  at_end_ = *got == 0;
  return absl::OkStatus();
}

// Reads up to two bytes into the buffer. If they are gzip's, they move to the inflater.
absl::Status LineReader::DetectGzip() {
  while (!at_end_ && (end_ == 0 || (end_ == 1 && buffer_[0] == kGzipMagic[0]))) {
    if (absl::Status status = FillPlain(); !status.ok()) return status;
  }
  if (end_ < 2 || std::memcmp(buffer_.get(), kGzipMagic, sizeof(kGzipMagic)) != 0) return absl::OkStatus();
  inflater_ = std::make_unique<Inflater>();
  if (end_ > kCompressedBytes) inflater_->input = std::make_unique<char[]>(capacity_);
  std::memcpy(inflater_->input.get(), buffer_.get(), end_);
  inflater_->end = end_;
  end_ = 0;
  if (inflateInit2(&inflater_->stream, kGzipOnly) != Z_OK) {
    return absl::ResourceExhaustedError(absl::StrCat("reading ", name_, ": no memory for zlib"));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> LineReader::ReadDescriptor(char* to, size_t size) {
  pollfd wait[] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  while (true) {
    // A blocking read would miss a stop that comes just before it. A signal may end the wait early.
    if (stop_fd_ >= 0 && poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) return absl::CancelledError(absl::StrCat("reading ", name_, ": stopped"));
    const ssize_t got = read(fd_, to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      poll(wait, 2, -1);
    } else if (errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("reading ", name_, ", after line ", lines_given_));
    }
  }
}

// Reads first if no compressed bytes are left.
absl::Status LineReader::FillInflated() {
  Inflater& in = *inflater_;
  if (in.next == in.end && !in.more) {
    const absl::StatusOr<size_t> got = ReadDescriptor(in.input.get(), kCompressedBytes);
    if (!got.ok()) return got.status();
    in.next = 0;
    in.end = *got;
    if (*got == 0) {
      at_end_ = true;
      return in.in_member ? Damaged("the compressed data is cut off") : absl::OkStatus();
    }
  }
  if (!in.in_member) {
    if (in.input[in.next] == '\0') {
      in.padded = true;
      ++in.next;
      return absl::OkStatus();
    }
    if (in.padded) return Damaged("something follows the compressed data");
    inflateReset(&in.stream);
    in.in_member = true;
  }
  z_stream& stream = in.stream;
  stream.next_in = reinterpret_cast<Bytef*>(&in.input[in.next]);
  stream.avail_in = static_cast<uInt>(in.end - in.next);
  stream.next_out = reinterpret_cast<Bytef*>(&buffer_[end_]);
  stream.avail_out = static_cast<uInt>(std::min<size_t>(capacity_ - end_, UINT32_MAX / 2));
  const uInt room = stream.avail_out;
  const int result = inflate(&stream, Z_NO_FLUSH);
  in.next = in.end - stream.avail_in;
  in.more = stream.avail_out == 0;
  end_ += room - stream.avail_out;
  if (result == Z_STREAM_END) {
    in.in_member = false;
    in.more = false;
  } else if (result != Z_OK && result != Z_BUF_ERROR) {
    return Damaged(
        absl::StrCat("the compressed data is damaged (", stream.msg != nullptr ? stream.msg : "zlib", ")"));
  }
  return absl::OkStatus();
}

}  // namespace lethe::lines
