// A shard in a snapshot: the fields below, those of its audit, and then the rest of
// src/stage/snapshot_format.h.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/snapshot/fields.h"
#include "src/snapshot/snapshot_file.h"
#include "src/stage/shard.h"

namespace lethe {
namespace {

// The size of the first piece, which always has all of its fields.
constexpr size_t kShardBytes = (6 + 13) * 8;

struct Sizes {
  int index = 0;
  int64_t state = 0;
  int64_t memory = 0;
};

template <typename SizesLike, typename Fields>
void TransferSizes(SizesLike& sizes, int shard, Fields& fields) {
  fields.Int(sizes.index, shard, shard);
  fields.Int(sizes.state, 0, FilterImage::kMaxStateBytes);
  fields.Count(sizes.memory);
}

template <typename Spans>
int64_t BytesOf(const Spans& memory) {
  size_t bytes = 0;
  for (const auto& span : memory) bytes += span.size();
  return static_cast<int64_t>(bytes);
}

}  // namespace

template <typename Self, typename Fields>
void Shard::TransferCounts(Self& self, Fields& fields) {
  fields.Count(self.unique_);
  fields.Count(self.duplicates_);
  fields.Count(self.replayed_);
}

absl::StatusOr<Shard::Image> Shard::BeginImage(int index) const {
  const MutexLock lock(mutex_);
  if (engine_filter_ == nullptr) return NoSnapshotsOfThisEngine();
  absl::StatusOr<FilterImage> filter = engine_filter_->BeginCopy();
  if (!filter.ok()) return filter.status();
  const Sizes sizes = {index, static_cast<int64_t>(filter->state.size()), BytesOf(filter->memory)};
  FieldWriter fields;
  TransferSizes(sizes, index, fields);
  TransferCounts(*this, fields);
  audit_.Save(&fields);
  if (!fields.ok()) return absl::InternalError(absl::StrCat("shard ", index, ": counts beyond all bounds"));
  return Image{{fields.bytes(), std::move(filter->state)}, *std::move(filter), audit_.CopyIds()};
}

absl::Status Shard::Copy(const Image& image, absl::Span<const char> memory, char* to) const {
  const MutexLock lock(mutex_);
  if (engine_filter_->CopyMemory(image.filter, memory, to)) return absl::OkStatus();
  return absl::AbortedError("the filter changed its shape during the snapshot; begin another");
}

absl::Status Shard::Restore(int index, SnapshotReader* reader) {
  const MutexLock lock(mutex_);
  if (engine_filter_ == nullptr) return NoSnapshotsOfThisEngine();
  std::string piece(kShardBytes, '\0');
  const std::string where = absl::StrCat("shard ", index);
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(piece), where); !status.ok()) return status;
  FieldReader fields(piece);
  Sizes sizes;
  Audit::SavedIds audited;
  TransferSizes(sizes, index, fields);
  TransferCounts(*this, fields);
  if (!audit_.Restore(&fields, &audited)) {
    return reader->Damaged(absl::StrCat("has an impossible size or threshold in the audit of ", where));
  }
  if (!fields.Ended()) return reader->Damaged(absl::StrCat("has a count out of its range in ", where));
  if (sizes.state + sizes.memory > reader->remaining()) {
    return reader->Damaged(absl::StrCat("is cut: it ends at byte ", reader->file_bytes(), ", in ", where));
  }
  std::string state(static_cast<size_t>(sizes.state), '\0');
  const std::string in_state = absl::StrCat("state of ", where);
  if (absl::Status status = reader->ReadPiece(absl::MakeSpan(state), in_state); !status.ok()) return status;
  const absl::StatusOr<std::vector<absl::Span<char>>> memory = engine_filter_->Restore(state, sizes.memory);
  if (absl::IsDataLoss(memory.status())) return reader->Damaged(memory.status().message());
  if (!memory.ok()) return reader->Annotate(memory.status());
  if (BytesOf(*memory) != sizes.memory) return reader->Damaged("has another filter's memory");
  const std::string in_memory = absl::StrCat("memory of ", where);
  for (const absl::Span<char> span : *memory) {
    if (absl::Status status = reader->ReadMemory(span, in_memory); !status.ok()) return status;
  }
  if (!engine_filter_->Restored()) {
    return reader->Damaged(absl::StrCat("holds impossible lines in the ", in_memory));
  }
  return audit_.RestoreIds(audited, reader);
}

}  // namespace lethe
