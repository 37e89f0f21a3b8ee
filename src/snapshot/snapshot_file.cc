#include "src/snapshot/snapshot_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "xxhash.h"

namespace lethe {
namespace {

absl::Status Failed(absl::string_view doing, absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("snapshot ", path, ": ", doing));
}

uint64_t Checksum(const void* content, size_t size, int64_t offset) {
  return XXH3_64bits_withSeed(content, size, static_cast<uint64_t>(offset));
}

// A rename is safe only when the folder is.
absl::Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("opening its folder", path);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  errno = error;
  return error == 0 ? absl::OkStatus() : Failed("syncing its folder", path);
}

}  // namespace

absl::StatusOr<SnapshotWriter> SnapshotWriter::Create(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("snapshot: no path is given");
  const std::string temporary = absl::StrCat(path, ".new");
  // A crash may have left it.
  if (unlink(temporary.c_str()) != 0 && errno != ENOENT) return Failed("removing an old one", temporary);
  SnapshotWriter writer(path, temporary, -1);  // before there is a file to be left behind
  writer.fd_ = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (writer.fd_ < 0) return Failed("creating it", temporary);
  return writer;
}

SnapshotWriter::SnapshotWriter(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

SnapshotWriter::SnapshotWriter(SnapshotWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      offset_(other.offset_) {}

SnapshotWriter SnapshotWriter::Onto(int descriptor) { return SnapshotWriter("", "in memory", descriptor); }

SnapshotWriter::~SnapshotWriter() {
  if (fd_ < 0 || path_.empty()) return;
  close(fd_);
  unlink(temporary_.c_str());
}

absl::Status SnapshotWriter::Write(const void* bytes, size_t size) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = write(fd_, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(absl::StrCat("writing at byte ", offset_), temporary_);
    from += written;
    size -= static_cast<size_t>(written);
    offset_ += written;
  }
  return absl::OkStatus();
}

absl::Status SnapshotWriter::WritePiece(absl::string_view content) {
  const uint64_t checksum = Checksum(content.data(), content.size(), offset_);
  if (absl::Status status = Write(content.data(), content.size()); !status.ok()) return status;
  return Write(&checksum, sizeof(checksum));
}

absl::Status SnapshotWriter::RewritePiece(int64_t offset, absl::string_view content) {
  const uint64_t checksum = Checksum(content.data(), content.size(), offset);
  const int64_t end = std::exchange(offset_, offset);
  if (lseek(fd_, offset, SEEK_SET) < 0) return Failed("going back in it", temporary_);
  absl::Status status = Write(content.data(), content.size());
  if (status.ok()) status = Write(&checksum, sizeof(checksum));
  if (status.ok() && lseek(fd_, end, SEEK_SET) < 0) status = Failed("going on in it", temporary_);
  offset_ = end;
  return status;
}

absl::Status SnapshotWriter::Finish() {
  if (path_.empty()) {
    fd_ = -1;
    return absl::OkStatus();
  }
  if (fsync(fd_) != 0) return Failed("syncing it", temporary_);
  // Some file systems tell only here that a write has failed.
  if (close(std::exchange(fd_, -1)) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    errno = error;
    return Failed("putting it in its place", path_);
  }
  return SyncFolderOf(path_);
}

absl::StatusOr<SnapshotReader> SnapshotReader::Open(const std::string& path, std::function<bool()> go_on) {
  SnapshotReader reader(path, std::move(go_on));
  // A pipe without a writer must not make us wait.
  reader.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (reader.fd_ < 0) return Failed("opening it", path);
  struct stat about = {};
  if (fstat(reader.fd_, &about) != 0) return Failed("looking at it", path);
  if (!S_ISREG(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot ", path, ": is not a file"));
  }
  reader.bytes_ = about.st_size;
  posix_fadvise(reader.fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  return reader;
}

SnapshotReader::SnapshotReader(std::string path, std::function<bool()> go_on)
    : path_(std::move(path)), go_on_(std::move(go_on)) {}

SnapshotReader::SnapshotReader(SnapshotReader&& other) noexcept
    : path_(std::move(other.path_)),
      go_on_(std::move(other.go_on_)),
      fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      offset_(other.offset_) {}

SnapshotReader::~SnapshotReader() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SnapshotReader::Damaged(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("snapshot ", path_, ": ", what,
                   "; it cannot be used: delete it, and let the filter be rebuilt from its log"));
}

absl::Status SnapshotReader::Annotate(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat("snapshot ", path_, ": ", status.message()));
}

absl::Status SnapshotReader::Read(void* to, size_t size) {
  char* next = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = read(fd_, next, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(absl::StrCat("reading at byte ", offset_), path_);
    if (got == 0) return Damaged(absl::StrCat("was cut at byte ", offset_, " while it was read"));
    next += got;
    size -= static_cast<size_t>(got);
    offset_ += got;
  }
  return absl::OkStatus();
}

bool SnapshotReader::BeginsWith(absl::string_view letters) const {
  std::string begin(letters.size(), '\0');
  return pread(fd_, begin.data(), begin.size(), 0) == static_cast<ssize_t>(begin.size()) && begin == letters;
}

absl::Status SnapshotReader::ReadPiece(absl::Span<char> content, absl::string_view what) {
  if (go_on_ && !go_on_()) {
    return Annotate(absl::CancelledError(absl::StrCat("reading was cancelled at byte ", offset_)));
  }
  const int64_t begin = offset_;
  const int64_t end = begin + static_cast<int64_t>(content.size()) + kChecksumBytes;
  if (end > bytes_) {
    return Damaged(absl::StrCat("is cut: it ends at byte ", bytes_, ", in the ", what,
                                ", which goes from byte ", begin, " to ", end));
  }
  uint64_t checksum = 0;
  if (absl::Status status = Read(content.data(), content.size()); !status.ok()) return status;
  const uint64_t expected = Checksum(content.data(), content.size(), begin);
  if (absl::Status status = Read(&checksum, sizeof(checksum)); !status.ok()) return status;
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  checksum = expected;
#endif
  if (checksum == expected) return absl::OkStatus();
  return Damaged(absl::StrCat("is damaged in the ", what, ", between bytes ", begin, " and ", end));
}

absl::Status SnapshotReader::ReadMemory(absl::Span<char> memory, absl::string_view what) {
  for (size_t done = 0; done < memory.size(); done += kPieceBytes) {
    if (absl::Status status = ReadPiece(memory.subspan(done, kPieceBytes), what); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace lethe
