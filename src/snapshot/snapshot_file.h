// A snapshot's file: pieces with checksums, written so that the old file stays until the new one is safe.
//
// A piece is its content, then eight bytes, little-endian: XXH3-64 of the content, seeded with the offset of
// the content in the file. So a piece is also found to be wrong if it stands in another's place. What the
// pieces are is in snapshot_format.h.
#ifndef LETHE_SRC_SNAPSHOT_SNAPSHOT_FILE_H_
#define LETHE_SRC_SNAPSHOT_SNAPSHOT_FILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lethe {

// Memory is written and read in pieces of this many bytes (the last one may be shorter): large enough for
// the disk, and small enough to be checked while it is in the cache.
inline constexpr size_t kPieceBytes = size_t{1} << 20;
inline constexpr int64_t kChecksumBytes = 8;

// Writes PATH.new, which only its owner can read, and gives it the name PATH at the end. Move-only; one that
// is destroyed before Finish() leaves PATH as it was, and no PATH.new. Thread safety: none; one writer per
// path at a time.
class SnapshotWriter {
 public:
  static absl::StatusOr<SnapshotWriter> Create(const std::string& path);
  SnapshotWriter(SnapshotWriter&& other) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) = delete;
  ~SnapshotWriter();

  // To a file that is open, empty, and the caller's: Finish() neither syncs nor renames it.
  static SnapshotWriter Onto(int descriptor);

  absl::Status WritePiece(absl::string_view content);
  // In the place of a piece of the same size that was written at this offset.
  absl::Status RewritePiece(int64_t offset, absl::string_view content);

  // The file's bytes so far.
  int64_t offset() const { return offset_; }

  // Syncs the file, renames it and syncs its folder. When it returns OK the snapshot survives a power cut.
  absl::Status Finish();

 private:
  SnapshotWriter(std::string path, std::string temporary, int fd);
  absl::Status Write(const void* bytes, size_t size);

  std::string path_;       // empty if the file is the caller's
  std::string temporary_;  // its name in errors, too
  int fd_;                 // -1 after a move or Finish()
  int64_t offset_ = 0;
};

// Move-only. Thread safety: none.
class SnapshotReader {
 public:
  // `go_on` is asked before each piece; a no is Cancelled.
  static absl::StatusOr<SnapshotReader> Open(const std::string& path, std::function<bool()> go_on = nullptr);
  SnapshotReader(SnapshotReader&& other) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) = delete;
  ~SnapshotReader();

  // Fills `content` and checks it. DataLoss if the file ends before, or if the checksum is another; `what`
  // says what should have been read. The content is not to be used then.
  absl::Status ReadPiece(absl::Span<char> content, absl::string_view what);
  absl::Status ReadMemory(absl::Span<char> memory, absl::string_view what);

  // Whether the file begins so, wherever reading has come to.
  bool BeginsWith(absl::string_view letters) const;

  int64_t offset() const { return offset_; }
  int64_t remaining() const { return bytes_ - offset_; }
  int64_t file_bytes() const { return bytes_; }

  // DataLoss, with the file and what to do about it.
  absl::Status Damaged(absl::string_view what) const;
  // The file, before a message of another kind.
  absl::Status Annotate(const absl::Status& status) const;

 private:
  SnapshotReader(std::string path, std::function<bool()> go_on);
  absl::Status Read(void* to, size_t size);

  std::string path_;
  std::function<bool()> go_on_;
  int fd_ = -1;  // after a move, too
  int64_t bytes_ = 0;
  int64_t offset_ = 0;
};

}  // namespace lethe

#endif  // LETHE_SRC_SNAPSHOT_SNAPSHOT_FILE_H_
