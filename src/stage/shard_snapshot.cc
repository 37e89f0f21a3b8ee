// A shard in a snapshot: the field list below, those of its audit, and then what
// src/stage/snapshot_format.h says.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/snapshot/fields.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/shard.h"

namespace lethe {
namespace {

// Of the first piece; all of its fields are there always.
constexpr size_t kShardBytes = (6 + 13) * 8;
constexpr size_t kSecondOpinionBytes = (2 + 4) * 8;

struct Sizes {
  int index = 0;
  int64_t books = 0;
  int64_t memory = 0;
};

template <typename SizesLike, typename Fields>
void TransferSizes(SizesLike& sizes, int shard, Fields& fields) {
  fields.Int(sizes.index, shard, shard);
  fields.Int(sizes.books, 0, FilterImage::kMostBytesOfBooks);
  fields.Count(sizes.memory);
}

template <typename Spans>
int64_t BytesOf(const Spans& memory) {
  size_t bytes = 0;
  for (const auto& span : memory) bytes += span.size();
  return static_cast<int64_t>(bytes);
}

static_assert(PassedIds::kCopyPieceBytes == kPieceBytes);  // so that its pieces are those of WriteMemory

absl::Status WriteSizeAndBooks(int64_t bytes, absl::string_view books, SnapshotWriter* writer) {
  FieldWriter size;
  size.Count(bytes);
  return writer->WritePiece(absl::StrCat(size.bytes(), books));
}

}  // namespace

template <typename Self, typename Fields>
void Shard::TransferCounts(Self& self, Fields& fields) {
  fields.Count(self.unique_);
  fields.Count(self.duplicates_);
  fields.Count(self.replayed_);
}

// But for the ids of the audit.
absl::StatusOr<Shard::Image> Shard::Describe(int index, absl::StatusOr<FilterImage> image) const {
  if (!image.ok()) return image.status();
  const Sizes sizes = {index, static_cast<int64_t>(image->books.size()), BytesOf(image->memory)};
  FieldWriter fields;
  TransferSizes(sizes, index, fields);
  TransferCounts(*this, fields);
  audit_.Save(&fields);
  if (!fields.ok()) return absl::InternalError(absl::StrCat("shard ", index, ": counts beyond all bounds"));
  return Image{{fields.bytes(), std::move(image->books)}, *std::move(image), {}, {}};
}

absl::Status Shard::Save(int index, SnapshotWriter* writer) const {
  const std::lock_guard lock(mutex_);
  const absl::StatusOr<Image> image = Describe(index, filter_->Image());
  if (!image.ok()) return image.status();
  for (const std::string& piece : image->pieces) {
    if (absl::Status status = writer->WritePiece(piece); !status.ok()) return status;
  }
  for (const absl::Span<const char> span : image->filter.memory) {
    if (absl::Status status = writer->WriteMemory(span); !status.ok()) return status;
  }
  if (absl::Status status = Audit::SaveIds(audit_.CopyIds(), writer); !status.ok()) return status;
  if (!second_opinion_) return absl::OkStatus();
  const absl::StatusOr<std::string> books = DescribeSecondOpinion();
  if (!books.ok()) return books.status();
  const absl::Span<const char> lines = second_opinion_->memory();
  if (absl::Status status = WriteSizeAndBooks(static_cast<int64_t>(lines.size()), *books, writer);
      !status.ok())
    return status;
  return writer->WriteMemory(lines);
}

// But for the bytes of its lines, which come first.
absl::StatusOr<std::string> Shard::DescribeSecondOpinion() const {
  FieldWriter fields;
  fields.Count(suspects_);
  second_opinion_->Transfer(fields);
  if (!fields.ok()) return absl::InternalError("second opinion: counts beyond all bounds");
  return fields.bytes();
}

absl::StatusOr<Shard::Image> Shard::BeginImage(int index) const {
  const std::lock_guard lock(mutex_);
  absl::StatusOr<Image> image = Describe(index, filter_->BeginCopy());
  if (!image.ok()) return image.status();
  image->audited = audit_.CopyIds();
  if (!second_opinion_) return image;
  absl::StatusOr<std::string> books = DescribeSecondOpinion();
  if (!books.ok()) return books.status();
  image->second_opinion = {*std::move(books), {}};
  return image;
}

absl::Status Shard::Copy(const Image& image, absl::Span<const char> memory, char* to) const {
  const std::lock_guard lock(mutex_);
  if (filter_->CopyMemory(image.filter, memory, to)) return absl::OkStatus();
  return absl::AbortedError("the filter has changed its shape meanwhile; begin the snapshot anew");
}

absl::StatusOr<bool> Shard::CopySecondOpinion(int64_t most_bytes, SecondOpinionImage* image) const {
  const std::lock_guard lock(mutex_);
  switch (second_opinion_->GoOn(&image->lines, most_bytes)) {
    case PassedIds::CopyState::kGoesOn:
      return false;
    case PassedIds::CopyState::kWhole:
      return true;
    case PassedIds::CopyState::kBroken:
      break;
  }
  return absl::AbortedError("the second opinion has moved too many ids meanwhile; begin the snapshot anew");
}

absl::Status Shard::Write(const SecondOpinionImage& image, SnapshotWriter* writer) {
  if (absl::Status status = WriteSizeAndBooks(image.lines.bytes, image.books, writer); !status.ok())
    return status;
  for (const std::string& piece : image.lines.pieces) {
    if (absl::Status status = writer->WritePiece(piece); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Shard::Restore(int index, SnapshotReader* reader) {
  const std::lock_guard lock(mutex_);
  std::string piece(kShardBytes, '\0');
  const std::string where = absl::StrCat("shard ", index);
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(piece), where); !status.ok()) return status;
  FieldReader fields(piece);
  Sizes sizes;
  Audit::SavedIds audited;
  TransferSizes(sizes, index, fields);
  TransferCounts(*this, fields);
  if (!audit_.Restore(&fields, &audited) || !fields.Ended()) {
    return reader->Damaged(absl::StrCat("says what cannot be of ", where));
  }
  if (sizes.books + sizes.memory > reader->remaining()) {
    return reader->Damaged(absl::StrCat("is cut: it ends at byte ", reader->file_bytes(), ", in ", where));
  }
  std::string books(static_cast<size_t>(sizes.books), '\0');
  const std::string in_books = absl::StrCat("books of ", where);
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(books), in_books); !status.ok()) return status;
  const absl::StatusOr<std::vector<absl::Span<char>>> memory = filter_->Restore(books, sizes.memory);
  if (absl::IsDataLoss(memory.status())) return reader->Damaged(memory.status().message());
  if (!memory.ok()) return reader->Annotate(memory.status());
  if (BytesOf(*memory) != sizes.memory) return reader->Damaged("has another filter's memory");
  const std::string in_memory = absl::StrCat("memory of ", where);
  for (const absl::Span<char> span : *memory) {
    if (absl::Status status = reader->ReadMemory(span, in_memory); !status.ok()) return status;
  }
  if (!filter_->Restored()) {
    return reader->Damaged(absl::StrCat("holds impossible lines in the ", in_memory));
  }
  if (absl::Status status = audit_.RestoreIds(audited, reader); !status.ok()) return status;
  return second_opinion_ ? RestoreSecondOpinion(where, reader) : absl::OkStatus();
}

absl::Status Shard::RestoreSecondOpinion(absl::string_view where, SnapshotReader* reader) {
  const std::string what = absl::StrCat("second opinion of ", where);
  std::string piece(kSecondOpinionBytes, '\0');
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(piece), what); !status.ok()) return status;
  FieldReader fields(piece);
  int64_t bytes = 0;
  fields.Count(bytes);
  fields.Count(suspects_);
  second_opinion_->Transfer(fields);
  if (!fields.Ended()) return reader->Damaged(absl::StrCat("says what cannot be of the ", what));
  if (bytes > reader->remaining()) {
    return reader->Damaged(absl::StrCat("is cut: it ends at byte ", reader->file_bytes(), ", in the ", what));
  }
  const absl::StatusOr<absl::Span<char>> memory = second_opinion_->MakeRoom(bytes);
  if (absl::IsDataLoss(memory.status())) return reader->Damaged(memory.status().message());
  if (!memory.ok()) return reader->Annotate(memory.status());
  if (absl::Status status = reader->ReadMemory(*memory, what); !status.ok()) return status;
  return second_opinion_->Restored() ? absl::OkStatus()
                                     : reader->Damaged(absl::StrCat("holds impossible times in the ", what));
}

}  // namespace lethe
